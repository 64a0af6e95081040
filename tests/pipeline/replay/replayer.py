"""
A process that replays an archive and kills itself at one of its calls of the client.

Run as ``python -m tests.pipeline.replay.replayer ARCHIVE TOPIC BOOTSTRAP TO CALL``. CALL is the
last call of a producer; if it is negative, the process dies after it. A process that completes
prints the number of calls.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from confluent_kafka import Producer

from barnabas.pipeline.jobs.replay import sending
from barnabas.pipeline.jobs.replay.job import replay

RECORDS_PER_TRANSACTION = 20

_calls = 0
_last = 0


def _counted(name: str) -> Any:
    def method(self: Producer, *arguments: Any, **more: Any) -> Any:
        global _calls  # noqa: PLW0603  # a process has one count
        _calls += 1
        if _calls == _last:
            os.kill(os.getpid(), signal.SIGKILL)
        result = getattr(super(MortalProducer, self), name)(*arguments, **more)
        if _calls == -_last:
            self.poll(0)
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return method


class MortalProducer(Producer):
    init_transactions = _counted("init_transactions")
    begin_transaction = _counted("begin_transaction")
    produce = _counted("produce")
    send_offsets_to_transaction = _counted("send_offsets_to_transaction")
    commit_transaction = _counted("commit_transaction")


def main(archive: str, topic: str, bootstrap: str, to: str, call: str) -> None:
    global _last  # noqa: PLW0603  # as above
    _last = int(call)
    sending.Producer = MortalProducer  # type: ignore[attr-defined]  # that is the point
    replay(None, archive, topic, bootstrap, to=to, records_per_transaction=RECORDS_PER_TRANSACTION)
    print(_calls)


if __name__ == "__main__":
    main(*sys.argv[1:])
