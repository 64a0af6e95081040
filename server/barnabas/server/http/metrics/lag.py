"""
The lag of a consumer: the records between its offset and the end of a log.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log
    from barnabas.storage.segment.segment import LogSegment


class Lag(NamedTuple):
    """
    Records that are not consumed yet, and about how many bytes they have.
    """

    records: int
    size: int


def lag_behind(log: Log, offset: int) -> Lag:
    """
    The lag of a consumer at *offset* of *log*, without the records that retention has deleted.

    No file is read. The bytes are those of the segments behind the one with *offset*, and of that
    one in proportion to its offsets.
    """
    offset = max(offset, log.log_start_offset)
    end = log.high_watermark
    if offset >= end:
        return Lag(0, 0)
    segments = log.segments.values()
    at = max(0, bisect_right(segments, offset, key=_base_offset) - 1)
    size = sum(segment.size for segment in segments[at + 1 :])
    first = segments[at]
    last = segments[at + 1].base_offset if at + 1 < len(segments) else log.log_end_offset
    part = (last - offset) / max(1, last - first.base_offset)
    return Lag(end - offset, size + round(first.size * min(1.0, max(0.0, part))))


def _base_offset(segment: LogSegment) -> int:
    return segment.base_offset
