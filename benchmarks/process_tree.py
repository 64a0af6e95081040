"""
The processor time of a process and of all that it starts, as Linux tells from outside.

A process's time goes to its parent when that waits for it. There are processes that nobody waits
for: the daemon of PySpark ignores SIGCHLD, so that the kernel drops what its workers have used as
soon as they end (wait(2), NOTES). A sum over what is alive would then become less. So each reading
remembers what it has seen of each process, and keeps it when the process is gone and its parent has
not taken it over.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["ProcessTree"]

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_TRIES: Final = 100
"""Processes do not end again and again while a few others are looked at."""


class _Process(NamedTuple):
    """
    One of all that were ever there: a pid is given anew, but not at the same tick.
    """

    pid: int
    start_ticks: int


class _Used(NamedTuple):
    """
    What ``/proc/PID/stat`` says, in ticks.
    """

    parent: int
    own: int
    waited_for: int
    """Of the children that it has waited for, and of theirs."""

    @property
    def total(self) -> int:
        return self.own + self.waited_for


class ProcessTree:
    """
    A process and all that is below it; see ``adopt_orphans`` for those whose parent ends first.

    What a process that nobody waits for uses between the last reading and its end is lost.

    Args:
        pid: of the process.
        without: pids of processes that do not count, nor what is below them, as long as they run.
    """

    def __init__(self, pid: int, without: Collection[int] = ()) -> None:
        self._pid = pid
        self._without = without
        self._seen: Mapping[_Process, _Used] = {}
        self._lost = 0

    def seconds(self) -> float:
        """
        The processor time of all so far. A later reading is never less.
        """
        now = self._snapshot()
        self._lost += self._lost_since(now)
        self._seen = now
        return (sum(used.total for used in now.values()) + self._lost) / _TICKS_PER_S

    def _snapshot(self) -> dict[_Process, _Used]:
        for _ in range(_TRIES):
            members = self._members()
            # Who has ended since is with its parent only from then on: then all is read again.
            now = {process: _used(process) for process in members}
            found = {process: used for process, used in now.items() if used is not None}
            if len(found) == len(now):
                return found
        raise RuntimeError(f"the processes below {self._pid} change too fast to be read")

    def _members(self) -> set[_Process]:
        """
        All below the process, and those that were: who has moved meanwhile is not missed.
        """
        there = dict(_all_processes())
        children = defaultdict(list)
        for process, used in there.items():
            children[used.parent].append(process)
        members = {process for process in there if process.pid == self._pid}
        reached = [*members]
        while reached:
            below = [
                child for child in children[reached.pop().pid] if child.pid not in self._without
            ]
            members.update(below)
            reached += below
        return members | (self._seen.keys() & there.keys())

    def _lost_since(self, now: Mapping[_Process, _Used]) -> int:
        """
        What the processes had used that have ended, as far as nobody has it now.
        """
        by_pid = {process.pid: process for process in self._seen}
        left: dict[_Process, int] = defaultdict(int)
        for process in self._seen.keys() - now.keys():
            heir = process
            while heir in self._seen and heir not in now:
                # A process that is the first to end has nobody above it.
                heir = by_pid.get(self._seen[heir].parent, _Process(0, 0))
            left[heir] += self._seen[process].total
        return sum(
            max(0, ticks - (now[heir].waited_for - self._seen[heir].waited_for))
            if heir in now
            else ticks
            for heir, ticks in left.items()
        )


def _all_processes() -> Iterator[tuple[_Process, _Used]]:
    for name in os.listdir("/proc"):
        if name.isdecimal() and (found := _stat(int(name))) is not None:
            yield found


def _used(process: _Process) -> _Used | None:
    """
    None if the process is gone.
    """
    found = _stat(process.pid)
    return found[1] if found is not None and found[0] == process else None


def _stat(pid: int) -> tuple[_Process, _Used] | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The fields are those of proc(5) from the third one on.
    user, system, children_user, children_system = map(int, fields[11:15])
    used = _Used(int(fields[1]), user + system, children_user + children_system)
    return _Process(pid, int(fields[19])), used
