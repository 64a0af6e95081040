"""
The time of the machine in a process whose tests freeze or move theirs.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from barnabas.storage.clock import time_ns


def real_ms() -> int:
    """
    Milliseconds since 1970 UTC.
    """
    # It replaces C functions, of each copy of the module: its own way around is the only one.
    time_machine = sys.modules.get("time_machine")
    if time_machine is not None:
        with suppress(ValueError):  # no test travels
            return int(time_machine.escape_hatch.time.time_ns()) // 1_000_000
    return time_ns() // 1_000_000
