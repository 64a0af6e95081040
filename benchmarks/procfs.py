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
    "tree_seconds",
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
    its child, where ``tree_seconds`` still finds what it has used, instead of that of process 1.

    Raises:
        OSError: the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "this process cannot adopt orphans")


def tree_seconds(pid: int) -> float:
    """
    The processor time of a process and of all that it started, also of those that have ended,
    unless their parent ended before them; see ``adopt_orphans``.
    """
    # Who ends just after its parent was looked at is missed once, and nobody is counted twice.
    return max(_tree_seconds(pid) for _ in range(2))


def _tree_seconds(pid: int) -> float:
    process = Path(f"/proc/{pid}")
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        children = " ".join(file.read_text() for file in process.glob("task/*/children"))
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(_tree_seconds(int(child)) for child in children.split())


@contextmanager
def spent_by(pid: int) -> Iterator[Spent]:
    """
    What passes, and what the process uses, in the body; known at its end.
    """
    spent = Spent()
    cpu, began = cpu_seconds(pid), time.perf_counter()
    yield spent
    spent.seconds, spent.cpu = time.perf_counter() - began, cpu_seconds(pid) - cpu


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
