"""
When segments leave, and how old their records are by then.

When and why is not decided here: `barnabas.storage.explain` asks the functions that a running
broker asks. What is added is what that means for a record, whose life begins with its timestamp.
"""

from __future__ import annotations

from functools import partial

from barnabas.pipeline.jobs.report.facts import BatchCounts, Life, Pin
from barnabas.storage.explain.known import BrokerTimes
from barnabas.storage.explain.logs import ReadOnlyLogs, patiently
from barnabas.storage.explain.report import PartitionReport, report_on
from barnabas.storage.explain.retention import SegmentLifetime
from barnabas.storage.log.retention import Reason
from barnabas.storage.topic_partition import TopicPartition


def explained(
    logs: ReadOnlyLogs, partition: TopicPartition, times: BrokerTimes, now_ms: int
) -> PartitionReport:
    """
    What there is to say of a partition at that moment.

    Raises:
        ExplainError: its log cannot be read.
    """
    return patiently(partial(_explained, logs, partition, times, now_ms))


def _explained(
    logs: ReadOnlyLogs, partition: TopicPartition, times: BrokerTimes, now_ms: int
) -> PartitionReport:
    return report_on(logs.open(partition), times, now_ms)


def life_of(lifetime: SegmentLifetime, counts: BatchCounts | None) -> Life:
    """
    How long the records of a segment can be read.

    The oldest record is taken to be one that a batch begins with, as headers tell no other.
    """
    if counts is None or counts.first_ms is None or not lifetime.has_timestamps:
        return Life(None, None)
    earliest, latest = lifetime.unreadable
    return Life(
        None if earliest is None else max(0, earliest - lifetime.largest_timestamp),
        None if latest is None else max(0, latest - counts.first_ms),
    )


def pin_of(lifetime: SegmentLifetime, now_ms: int) -> Pin:
    """
    What keeps a segment.
    """
    if lifetime.goes_by is not None:
        return Pin.NOTHING
    held = _held(lifetime)
    if held is not None:
        return held
    if lifetime.due_with != lifetime.base_offset:
        return Pin.OLDER_SEGMENT
    if lifetime.largest_timestamp > now_ms:
        return Pin.FUTURE
    if not lifetime.has_timestamps:
        return Pin.FILE_TIME
    return Pin.ACTIVE if lifetime.is_active else Pin.AGE


def _held(lifetime: SegmentLifetime) -> Pin | None:
    """
    What keeps a segment for a time that nobody knows.
    """
    reasons = {stance.reason for stance in lifetime.stances}
    if lifetime.is_empty and lifetime.is_active:
        return Pin.EMPTY
    if Reason.ABOVE_HIGH_WATERMARK in reasons:
        return Pin.HIGH_WATERMARK
    if lifetime.due_ms is None:
        return Pin.NO_LIMIT
    return Pin.NOBODY_LOOKS if lifetime.check_interval_ms is None else None
