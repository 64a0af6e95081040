"""
The segments of a report in columns: a list for each fact, with an entry for each segment.

The names and values are those of ``as_json``, which takes ten times the space.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

from barnabas.storage.explain.as_json import unless_never
from barnabas.storage.explain.endings import Ending
from barnabas.storage.explain.report import PartitionReport, SegmentReport
from barnabas.storage.explain.retention import SegmentLifetime
from barnabas.storage.log.retention import RetentionRule

Columns = dict[str, list[Any]]


def segments_in_columns(report: PartitionReport, *, endings: bool = True) -> Columns:
    """
    The facts about the segments, oldest first.

    Args:
        endings: also the reasons for their ends, which take more time than all else.
    """
    found: Columns = {
        name: [value(each) for each in report.segments] for name, value in _COLUMNS.items()
    }
    if endings:
        reasons = [report.ending(each) for each in report.segments]
        found |= {name: [value(each) for each in reasons] for name, value in _ENDINGS.items()}
    cleaning = report.cleaning
    if cleaning is not None:
        parts = cleaning.parts
        found["part"] = [_name(parts[each.segment.base_offset]) for each in report.segments]
    return found


def _name(member: Enum | None) -> str | None:
    return None if member is None else member.name.lower()


def _rule(lifetime: SegmentLifetime) -> str | None:
    """
    The rule that deletes a segment at the next check, or else later.
    """
    if lifetime.goes_by is not None:
        return _name(lifetime.goes_by)
    if lifetime.unreadable.earliest_ms is not None:
        return _name(RetentionRule.RETENTION_MS)
    return None if lifetime.bytes_missing is None else _name(RetentionRule.RETENTION_BYTES)


_COLUMNS: Final[Mapping[str, Callable[[SegmentReport], Any]]] = {
    "base_offset": lambda each: each.segment.base_offset,
    "end_offset": lambda each: each.lifetime.end_offset,
    "size": lambda each: each.segment.size,
    "first_batch_timestamp": lambda each: unless_never(each.first_batch_timestamp),
    "largest_timestamp": lambda each: each.lifetime.largest_timestamp,
    "has_timestamps": lambda each: each.lifetime.has_timestamps,
    "goes_by": lambda each: _name(each.lifetime.goes_by),
    "rule": lambda each: _rule(each.lifetime),
    "due_ms": lambda each: each.lifetime.due_ms,
    "bytes_missing": lambda each: each.lifetime.bytes_missing,
    "unreadable_earliest_ms": lambda each: each.lifetime.unreadable.earliest_ms,
    "unreadable_latest_ms": lambda each: each.lifetime.unreadable.latest_ms,
    "removed_earliest_ms": lambda each: each.lifetime.removed.earliest_ms,
    "removed_latest_ms": lambda each: each.lifetime.removed.latest_ms,
}
_ENDINGS: Final[Mapping[str, Callable[[Ending], Any]]] = {
    "cause": lambda ending: _name(ending.cause),
    "reason": lambda ending: _name(ending.reason),
    "certainty": lambda ending: _name(ending.certainty),
}
