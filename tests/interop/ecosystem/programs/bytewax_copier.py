"""
Copies a topic with Bytewax, whose positions are in a recovery store of its own.
"""

import datetime
import sys
from pathlib import Path

from bytewax._bytewax import cli_main
from bytewax.connectors.kafka import operators as kafka
from bytewax.dataflow import Dataflow
from bytewax.recovery import RecoveryConfig, init_db_dir

bootstrap, source, target = sys.argv[1:]
store = Path("recovery")
if not store.exists():
    store.mkdir()
    init_db_dir(store, 1)
flow = Dataflow("copier")
numbers = kafka.input("numbers", flow, brokers=[bootstrap], topics=[source])
kafka.output("copies", numbers.oks, brokers=[bootstrap], topic=target)
cli_main(
    flow,
    epoch_interval=datetime.timedelta(milliseconds=300),
    recovery_config=RecoveryConfig(store),
)
