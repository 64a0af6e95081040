"""
The segments of a log, in the order of their offsets.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path

from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.threads.deferred_work import run_all


class LogSegments:
    """
    The segments of one log by their base offsets.

    Invariants:

    1. Base offsets grow.
    2. A reader sees the segments as they were at one moment: they are in an immutable tuple, and a
       change puts another one in its place.

    Reading needs no lock. Changes do: the log that owns the segments holds its own.
    """

    __slots__ = ("_state", "topic_partition")

    def __init__(self, topic_partition: object) -> None:
        self.topic_partition = topic_partition
        """The name of the log in errors."""
        self._state: tuple[tuple[int, ...], tuple[LogSegment, ...]] = (), ()

    # Changes.

    def add(self, segment: LogSegment) -> LogSegment | None:
        """
        Add *segment*; return the one with the same base offset that it replaces.
        """
        # Called for each of thousands of segments at a start: it looks at none of the others.
        bases, values = self._state
        at = bisect_left(bases, segment.base_offset)
        is_there = at < len(bases) and bases[at] == segment.base_offset
        rest = at + 1 if is_there else at
        self._state = (
            (*bases[:at], segment.base_offset, *bases[rest:]),
            (*values[:at], segment, *values[rest:]),
        )
        return values[at] if is_there else None

    def remove(self, base_offset: int) -> None:
        """
        Remove the segment of *base_offset*, if there is one.
        """
        self._swap(segment for segment in self.values() if segment.base_offset != base_offset)

    def replace(self, old: Iterable[LogSegment], new: Iterable[LogSegment]) -> None:
        """
        Remove *old* and add *new* in one step.
        """
        gone = {id(segment) for segment in old}
        kept = [segment for segment in self.values() if id(segment) not in gone]
        self._swap(sorted([*kept, *new], key=_base_offset))

    def clear(self) -> None:
        self._swap(())

    def _swap(self, segments: Iterable[LogSegment]) -> None:
        values = tuple(segments)
        self._state = tuple(map(_base_offset, values)), values

    # All of them.

    @property
    def is_empty(self) -> bool:
        return not self._state[0]

    @property
    def number_of_segments(self) -> int:
        return len(self._state[0])

    @property
    def base_offsets(self) -> tuple[int, ...]:
        return self._state[0]

    @property
    def size_in_bytes(self) -> int:
        return sum(segment.size for segment in self.values())

    def values(self) -> tuple[LogSegment, ...]:
        return self._state[1]

    def filter(self, predicate: Callable[[LogSegment], bool]) -> list[LogSegment]:
        return [segment for segment in self.values() if predicate(segment)]

    # Some of them.

    def contains(self, base_offset: int) -> bool:
        return base_offset in self._state[0]

    def get(self, base_offset: int) -> LogSegment | None:
        """
        The segment that begins with *base_offset*.
        """
        bases, values = self._state
        at = bisect_left(bases, base_offset)
        return values[at] if at < len(bases) and bases[at] == base_offset else None

    def floor_segment(self, offset: int) -> LogSegment | None:
        """
        The segment that would hold *offset*: the last that does not begin above it.
        """
        bases, values = self._state
        at = bisect_right(bases, offset)
        return values[at - 1] if at else None

    def lower_segment(self, offset: int) -> LogSegment | None:
        """
        The last segment that begins below *offset*.
        """
        bases, values = self._state
        at = bisect_left(bases, offset)
        return values[at - 1] if at else None

    def higher_segment(self, offset: int) -> LogSegment | None:
        """
        The first segment that begins above *offset*.
        """
        bases, values = self._state
        at = bisect_right(bases, offset)
        return values[at] if at < len(bases) else None

    def higher_segments(self, offset: int) -> tuple[LogSegment, ...]:
        """
        All segments that begin above *offset*.
        """
        bases, values = self._state
        return values[bisect_right(bases, offset) :]

    def values_between(self, start: int, end: int) -> tuple[LogSegment, ...]:
        """
        The segments that may hold offsets from *start* up to *end*, which itself is out.

        Raises:
            ValueError: *end* is below *start*.
        """
        if end < start:
            raise ValueError(
                f"Invalid log segment range: requested segments in {self.topic_partition} from "
                f"offset {start} which is greater than limit offset {end}"
            )
        if start == end:
            return ()
        bases, values = self._state
        return values[max(0, bisect_right(bases, start) - 1) : bisect_left(bases, end)]

    @property
    def last_segment(self) -> LogSegment | None:
        values = self._state[1]
        return values[-1] if values else None

    @property
    def first_segment_base_offset(self) -> int | None:
        bases = self._state[0]
        return bases[0] if bases else None

    @property
    def active_segment(self) -> LogSegment:
        """
        The last segment, which is the one that grows. A log that is loaded has one.
        """
        return self._state[1][-1]

    # Their files.

    def update_parent_dir(self, directory: Path) -> None:
        """
        Follow the directory of the log, which was renamed.
        """
        for segment in self.values():
            segment.update_parent_dir(directory)

    def close(self) -> None:
        """
        Raises:
            KafkaStorageError: a segment could not be closed properly; all others were tried.
        """
        run_all(segment.close for segment in self.values())

    def close_handlers(self) -> None:
        """
        Close all files without writing, as the disk has failed.
        """
        for segment in self.values():
            segment.close_handlers()


def _base_offset(segment: LogSegment) -> int:
    return segment.base_offset
