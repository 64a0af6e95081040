"""
Copies a topic with rsyslog, by its modules imkafka and omkafka.
"""

import os
import sys
from pathlib import Path

CONFIGURATION = """
global(workDirectory="{directory}")
module(load="imkafka")
module(load="omkafka")
template(name="value" type="string" string="%rawmsg%")
input(
  type="imkafka" topic="{source}" broker="{bootstrap}" consumergroup="copier" ruleset="copy"
  confParam=["auto.offset.reset=earliest", "session.timeout.ms=2000", "heartbeat.interval.ms=500"]
)
ruleset(name="copy") {{
  action(
    type="omkafka" topic="{target}" broker="{bootstrap}" template="value"
    confParam=["enable.idempotence=true", "reconnect.backoff.max.ms=200"]
    resubmitOnFailure="on" action.resumeRetryCount="-1"
  )
}}
"""

bootstrap, source, target = sys.argv[1:]
directory = Path.cwd()
configuration = directory / "rsyslog.conf"
configuration.write_text(
    CONFIGURATION.format(directory=directory, bootstrap=bootstrap, source=source, target=target)
)
os.environ["PATH"] += ":/usr/sbin"
os.execvp("rsyslogd", ["rsyslogd", "-n", "-f", str(configuration), "-i", str(directory / "pid")])
