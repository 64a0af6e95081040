"""
When segments leave, and how old their records are by then.

When and why is not decided here: `barnabas.storage.explain` asks the functions that a running
broker asks. What is added is what that means for a record, whose life begins with its timestamp.
"""

from __future__ import annotations

from functools import partial

from barnabas.pipeline.jobs.report.facts import Counts, Life, Pin
from barnabas.storage.explain.command import patiently
from barnabas.storage.explain.known import BrokerTimes
from barnabas.storage.explain.leaving import SegmentLifetime
from barnabas.storage.explain.looking import Shelf
from barnabas.storage.explain.report import PartitionReport, report_on
from barnabas.storage.log.retention import Reason
from barnabas.storage.state_files.file_names import TopicPartition


def explained(
    shelf: Shelf, partition: TopicPartition, times: BrokerTimes, now_ms: int
) -> PartitionReport:
    """
    What there is to say of a partition at that moment.

    Raises:
        ExplainError: its log cannot be read.
    """
    return patiently(partial(_explained, shelf, partition, times, now_ms))


def _explained(
    shelf: Shelf, partition: TopicPartition, times: BrokerTimes, now_ms: int
) -> PartitionReport:
    return report_on(shelf.open(partition), times, now_ms)


def life_of(departure: SegmentLifetime, counts: Counts | None) -> Life:
    """
    How long the records of a segment can be read.

    The oldest record is taken to be one that a batch begins with, as headers tell no other.
    """
    if counts is None or counts.first_ms is None or not departure.has_timestamps:
        return Life(None, None)
    earliest, latest = departure.unreadable
    return Life(
        None if earliest is None else max(0, earliest - departure.largest_timestamp),
        None if latest is None else max(0, latest - counts.first_ms),
    )


def pin_of(departure: SegmentLifetime, now_ms: int) -> Pin:
    """
    What keeps a segment.
    """
    if departure.goes_by is not None:
        return Pin.NOTHING
    held = _held(departure)
    if held is not None:
        return held
    if departure.due_with != departure.base_offset:
        return Pin.OLDER_SEGMENT
    if departure.largest_timestamp > now_ms:
        return Pin.FUTURE
    if not departure.has_timestamps:
        return Pin.FILE_TIME
    return Pin.ACTIVE if departure.is_active else Pin.AGE


def _held(departure: SegmentLifetime) -> Pin | None:
    """
    What keeps a segment for a time that nobody knows.
    """
    reasons = {stance.reason for stance in departure.stances}
    if departure.is_empty and departure.is_active:
        return Pin.EMPTY
    if Reason.ABOVE_HIGH_WATERMARK in reasons:
        return Pin.HIGH_WATERMARK
    if departure.due_ms is None:
        return Pin.NO_LIMIT
    return Pin.NOBODY_LOOKS if departure.check_interval_ms is None else None
