"""
What a process costs, and whether anything runs at all, as Linux tells from outside.
"""

from __future__ import annotations

import ctypes
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.broker_process import cpu_seconds, resident_bytes

__all__ = [
    "Spent",
    "adopt_orphans",
    "busy_cores",
    "cpu_seconds",
    "peak_bytes",
    "resident_bytes",
    "spent_by",
    "user_seconds",
]


_PR_SET_CHILD_SUBREAPER: Final = 36
"""Of Linux's ``prctl``."""


@dataclass(slots=True)
class Spent:
    """
    Seconds by the clock, and of processor time.
    """

    seconds: float = 0.0
    cpu: float = 0.0


def adopt_orphans() -> None:
    """
    From now on, what this process has started stays below it: a process whose parent ends becomes
    its child, where a ``ProcessTree`` still finds it, instead of that of process 1.

    Raises:
        OSError: the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "this process cannot adopt orphans")


@contextmanager
def spent_by(pid: int) -> Iterator[Spent]:
    """
    What passes, and what the process uses, in the body; known at its end.
    """
    spent = Spent()
    cpu, began = cpu_seconds(pid), time.perf_counter()
    yield spent
    spent.seconds, spent.cpu = time.perf_counter() - began, cpu_seconds(pid) - cpu


def user_seconds(pid: int) -> float:
    """
    The processor time that the process has used so far for its own code, without the system's.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def peak_bytes(pid: int) -> int:
    """
    The most memory that the process has held so far.
    """
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None, "a process that runs has memory"
    return int(found[1]) * 1024


def busy_cores(for_s: float) -> float:
    """
    How many cores of the machine work, on average over the next *for_s* seconds. The load average
    would still count what has ended.
    """
    before, began = _worked_s(), time.perf_counter()
    time.sleep(for_s)
    return (_worked_s() - before) / (time.perf_counter() - began)


def _worked_s() -> float:
    """
    The processor time of all cores so far, without what they were idle or waited for a disk.
    """
    user, nice, system, _idle, _iowait, *others = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + sum(others)) / os.sysconf("SC_CLK_TCK")
