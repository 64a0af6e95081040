"""
A classic member of a consumer group, as a process of its own: it can be closed, or killed.

Run as ``python -m tests.interop.group_member LIBRARY BOOTSTRAP GROUP PROTOCOL TOPIC INSTANCE``;
INSTANCE may be ``-``. It prints what `tests.interop.consumer_member` prints. SIGTERM closes the
consumer properly.
"""

from __future__ import annotations

import signal
import sys
from typing import Any

from tests.interop.clients.sessions import SESSIONS

SESSION_TIMEOUT_MS = 6000
HEARTBEAT_MS = 500


class Stop:
    """
    Whether somebody has sent a SIGTERM.
    """

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, *_: Any) -> None:
        self.asked = True


def main(
    library: str, bootstrap: str, group: str, _protocol: str, topic: str, instance: str
) -> None:
    """
    Read and commit until the process is stopped.
    """
    stop = Stop()
    told: set[int] | None = None
    pending: dict[int, int] = {}
    with SESSIONS[library](bootstrap) as session:
        reader = session.reader(
            topic,
            group_id=group,
            group_instance_id=None if instance == "-" else instance,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=30_000,
            max_poll_records=500,
        )
        while not stop.asked:
            try:
                seen = reader.poll()
                assigned = reader.assigned()
                if assigned != told:
                    told = assigned
                    names = ",".join(f"{topic}:{each}" for each in sorted(assigned))
                    print("assigned", names or "-", flush=True)
                for record in seen:
                    print("read", topic, record.partition, record.offset, flush=True)
                    pending[record.partition] = record.offset + 1
                pending = {each: pending[each] for each in pending if each in assigned}
                if pending:
                    reader.commit(pending)
                pending = {}
            except session.errors as error:
                # The broker is away; what is pending is committed later.
                print(repr(error), file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
