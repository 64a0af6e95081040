"""
A process that compacts, and dies at one of the steps with which it changes files.

Run as ``python -m tests.pipeline.compact.killed_at LOGS TO STEP``. If it comes to its end, it
prints how many steps there were.
"""

from __future__ import annotations

import sys

from barnabas.pipeline.jobs.compact.job import compact
from tests.pipeline.archive.killed_at import Killer


def main(logs: str, to: str, step: str) -> None:
    killer = Killer(to, int(step))
    sys.addaudithook(killer)
    compact(None, logs, to)
    print(killer.steps)


if __name__ == "__main__":
    main(*sys.argv[1:])
