"""
The pace of a group in a partition, by the offsets that it has committed.

::

    offset                           . o     o  kept commits, SPACING_MS apart
                            o . . . .        .  replaced by the next one
              o . . . . . .
              |------------- the pace -------|-- extrapolated --| now

A group that has not moved for longer than it used to stands still, whatever its pace was.
"""

from __future__ import annotations

from copy import copy
from enum import Enum
from math import inf
from typing import Final

from barnabas.protocol.structs import NamedTuple, struct
from barnabas.storage.units import HOURS, MINUTES

MOST_COMMITS: Final = 8
"""
So many commits of a group in a partition are kept.
"""
SPACING_MS: Final = 10 * MINUTES
"""
The least time between two of them, but for the last. A pace is that of the last 70 to 80 minutes.
"""
PATIENCE_MS: Final = 5 * MINUTES
"""
A group that is expected to move stands still after that time at the earliest: consumers may process
the records of one poll for as long (``max.poll.interval.ms``).
"""
GAPS: Final = 2
"""
It stands still once it has not moved for so many times its longest pause so far.
"""
ALONE_MS: Final = HOURS
"""
The same for a group of which one commit is known, and so no pause.
"""


class Movement(Enum):
    """
    What is known of the pace of a group.
    """

    MOVES = "it has moved lately"
    STANDS = "it has not moved for longer than it used to"
    UNKNOWN = "one commit is known, and a pace takes two"


class Commit(NamedTuple):
    """
    A committed offset, and the time in ms at which it was first seen.
    """

    offset: int
    time_ms: int


@struct
class Pace:
    """
    Where a group is, and how quickly it reads.
    """

    movement: Movement
    offset: int
    """The committed one."""
    committed_ms: int
    position: int
    """The offset that it has reached by now, if it has kept its pace since its last commit."""
    records_per_ms: float
    """0 if it is not known."""
    since_ms: int | None
    """The first commit of the measurement, or the last move of a group that stands still."""


class CommitHistory:
    """
    The last moves of a group in a partition.

    Invariants:

    1. There is at least one commit; offsets and times grow.
    2. At most ``MOST_COMMITS`` are kept, ``SPACING_MS`` apart but for the last one.
    """

    __slots__ = ("_commits", "_confirmed_ms", "_longest_gap_ms", "_rested_ms")

    def __init__(self, offset: int, time_ms: int) -> None:
        self.begin_again(offset, time_ms)

    def begin_again(self, offset: int, time_ms: int) -> None:
        """
        Forget all commits: the group has come to *offset* by another way than by reading.
        """
        self._commits = [Commit(offset, time_ms)]
        self._confirmed_ms = time_ms
        self._longest_gap_ms = 0
        self._rested_ms = 0
        """How long it had stood still before."""

    @property
    def offset(self) -> int:
        """
        The last committed offset.
        """
        return self._commits[-1].offset

    def copied(self) -> CommitHistory:
        """
        A history that may be changed without this one.
        """
        copied = copy(self)
        copied._commits = list(self._commits)
        return copied

    def add(self, offset: int, time_ms: int, log_start_offset: int = 0) -> None:
        """
        Note that *offset* was the committed one at *time_ms*.

        A group that has moved back, as by a reset of its offsets, or that had stood still, has no
        pace until it moves again.
        One that the start of the log has overtaken has read on from there; the jump is no reading.
        """
        if self.offset < log_start_offset <= offset:
            jump = log_start_offset - self.offset
            self._commits = [Commit(each.offset + jump, each.time_ms) for each in self._commits]
        commits = self._commits
        last = commits[-1]
        if offset == last.offset:
            self._confirmed_ms = max(self._confirmed_ms, time_ms)
            return
        if offset < last.offset or time_ms < self._confirmed_ms:
            self.begin_again(offset, time_ms)
            return
        gap_ms = time_ms - last.time_ms
        if self._stands(time_ms):
            self.begin_again(offset, time_ms)
            self._rested_ms = gap_ms
            return
        self._longest_gap_ms = max(self._longest_gap_ms, gap_ms)
        self._confirmed_ms = time_ms
        before_ms = commits[-2].time_ms if len(commits) > 1 else -inf
        if time_ms == last.time_ms or last.time_ms - before_ms < SPACING_MS:
            commits[-1] = Commit(offset, time_ms)
        else:
            commits.append(Commit(offset, time_ms))
            del commits[:-MOST_COMMITS]

    def _stands(self, seen_ms: int) -> bool:
        commits = self._commits
        still_ms = seen_ms - commits[-1].time_ms
        if len(commits) > 1:
            return still_ms > max(PATIENCE_MS, GAPS * self._longest_gap_ms)
        # That it commits the same offset again says so earlier.
        confirmed_ms = self._confirmed_ms - commits[-1].time_ms
        rest_ms = GAPS * self._rested_ms
        return confirmed_ms > max(PATIENCE_MS, rest_ms) or still_ms > max(ALONE_MS, rest_ms)

    def pace(self, seen_ms: int) -> Pace:
        """
        The pace as of *seen_ms*, up to which every commit would have been seen.
        """
        first, last = self._commits[0], self._commits[-1]
        if self._stands(seen_ms):
            still = Movement.STANDS
            return Pace(still, last.offset, last.time_ms, last.offset, 0.0, last.time_ms)
        if first is last:
            unknown = Movement.UNKNOWN
            return Pace(unknown, last.offset, last.time_ms, last.offset, 0.0, None)
        rate = (last.offset - first.offset) / (self._confirmed_ms - first.time_ms)
        position = last.offset + int(rate * max(0, seen_ms - self._confirmed_ms))
        return Pace(Movement.MOVES, last.offset, last.time_ms, position, rate, first.time_ms)
