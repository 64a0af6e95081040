"""
The answer to a question, as facts.
"""

from __future__ import annotations

from barnabas.protocol.compression import LARGEST_BYTES
from barnabas.protocol.structs import fresh, replace, struct
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.cleaning import Cleaning, Horizons, cleaning_of, horizons_in
from barnabas.storage.explain.endings import Ending, ending_of
from barnabas.storage.explain.groups import GroupReport
from barnabas.storage.explain.known import BrokerTimes, ExplainError, unreadable
from barnabas.storage.explain.logs import READ_ERRORS, ReadOnlyLog
from barnabas.storage.explain.lookup import OffsetPath, TimePath, find_offset, find_time
from barnabas.storage.explain.records import RecordAt, record_at
from barnabas.storage.explain.retention import SegmentLifetime, segment_lifetimes
from barnabas.storage.explain.units import moment
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.state_files.file_names import CLUSTER_METADATA_TOPIC


@struct
class SegmentReport:
    """
    One segment and its lifetime; ``PartitionReport.ending`` is the reason for its end.
    """

    segment: LogSegment
    first_batch_timestamp: int
    """In ms; ``LONG_MAX`` without batches."""
    lifetime: SegmentLifetime
    horizons: Horizons | None
    """None unless the segment is chosen: they take a read of all its batches."""


@struct
class PartitionReport:
    """
    A partition, and the segment, time or offset that the user asks for.
    """

    opened: ReadOnlyLog
    times: BrokerTimes
    now_ms: int
    segments: tuple[SegmentReport, ...]
    cleaning: Cleaning | None
    chosen: SegmentReport | None = None
    """The segment that the user asks for, or that has the record."""
    time_path: TimePath | None = None
    offset_path: OffsetPath | None = None
    record: RecordAt | None = None
    groups: tuple[GroupReport, ...] | None = None
    """None unless the user asks for them: all commits are read for that."""
    endings: dict[int, Ending] = fresh(factory=dict)
    """By base offset, those that ``ending`` was asked for."""

    def ending(self, each: SegmentReport) -> Ending:
        """
        The reason for the end of a segment. It takes several looks at files, and most questions are
        about few segments of thousands.

        Raises:
            ExplainError: the files cannot be read.
        """
        base_offset = each.segment.base_offset
        ending = self.endings.get(base_offset)
        if ending is None:
            try:
                ending = ending_of(self.opened, each.segment)
            except READ_ERRORS as error:
                raise unreadable(f"{each.segment.log.path}", error) from error
            self.endings[base_offset] = ending
        return ending

    @property
    def config(self) -> LogConfig:
        """
        The configuration of the log, with the suppositions of ``--set``.
        """
        return self.opened.settings.config

    @property
    def is_metadata(self) -> bool:
        """
        Whether it is the log of the cluster's metadata, which has its own retention.
        """
        return self.opened.partition.topic == CLUSTER_METADATA_TOPIC


def report_on(opened: ReadOnlyLog, times: BrokerTimes, now_ms: int) -> PartitionReport:
    """
    A whole partition.

    Raises:
        ExplainError: its files cannot be read.
    """
    log = opened.log
    try:
        segments = log.segments.values()
        room = ending_of(opened, segments[-1]).room
        leaving = segment_lifetimes(log, room, times, now_ms)
        began = [segment.first_batch_timestamp() for segment in segments]
        cleaning = cleaning_of(opened, now_ms)
    except READ_ERRORS as error:
        raise unreadable(f"The log in {opened.path}", error) from error
    reports = tuple(
        SegmentReport(*each, None) for each in zip(segments, began, leaving, strict=True)
    )
    return PartitionReport(opened, times, now_ms, reports, cleaning)


def report_on_segment(report: PartitionReport, base_offset: int) -> PartitionReport:
    """
    Raises:
        ExplainError: no segment has that base offset.
    """
    for each in report.segments:
        if each.segment.base_offset == base_offset:
            return _choose(report, each)
    holding = [each for each in report.segments if each.segment.base_offset < base_offset]
    there = ", ".join(f"{each.segment.base_offset}" for each in report.segments[:20])
    more = ", ..." if len(report.segments) > 20 else ""
    sentence = f"No segment of {report.opened.partition} begins with offset {base_offset}"
    if holding and base_offset < holding[-1].lifetime.end_offset:
        raise ExplainError(
            f"{sentence}; that offset is in segment {holding[-1].segment.base_offset}"
        )
    raise ExplainError(f"{sentence}; these do: {there}{more}")


def report_on_offset(
    report: PartitionReport, offset: int, most_bytes: int = LARGEST_BYTES
) -> PartitionReport:
    """
    Args:
        most_bytes: that a batch, and its records without compression, may have to be read.

    Raises:
        ExplainError: the log does not have this offset, or cannot be read.
    """
    log = report.opened.log
    base, end = log.first_segment_base_offset, log.log_end_offset
    partition = report.opened.partition
    if end == log.log_start_offset and base == end:
        raise ExplainError(f"{partition} has no records; the next one gets offset {end}")
    if not base <= offset < end:
        raise ExplainError(
            f"Offset {offset} is out of range: {partition} has offsets"
            f" {log.log_start_offset} to {end - 1}"
        )
    try:
        path = find_offset(log, offset)
        plan = None if report.cleaning is None else report.cleaning.plan
        uncleanable = None if plan is None else plan.uncleanable_offset
        record = None if path is None else record_at(log, path, uncleanable, most_bytes)
    except (*READ_ERRORS, StopIteration) as error:
        raise unreadable(f"Offset {offset} of {partition}", error) from error
    if path is None or record is None:
        raise ExplainError(
            f"Compaction has removed offset {offset} of {partition} and all offsets behind it"
        )
    chosen = _report_of(report, path.segment)
    return replace(_choose(report, chosen), offset_path=path, record=record)


def report_on_time(
    report: PartitionReport, timestamp: int, most_bytes: int = LARGEST_BYTES
) -> PartitionReport:
    """
    Args:
        most_bytes: as in ``report_on_offset``.

    Raises:
        ExplainError: all records are older, or the log cannot be read.
    """
    log, partition = report.opened.log, report.opened.partition
    try:
        path = find_time(log, timestamp)
    except READ_ERRORS as error:
        raise unreadable(f"{partition}", error) from error
    if path is None:
        latest = log.largest_record_timestamp()
        there = (
            "no record has a timestamp" if latest is None else f"the latest is of {moment(latest)}"
        )
        raise ExplainError(f"{partition} has no record of {moment(timestamp)} or later: {there}")
    if path.found is None:
        return replace(_choose(report, _report_of(report, path.segment)), time_path=path)
    return replace(report_on_offset(report, path.found.offset, most_bytes), time_path=path)


def _report_of(report: PartitionReport, segment: LogSegment) -> SegmentReport:
    return next(each for each in report.segments if each.segment is segment)


def _choose(report: PartitionReport, chosen: SegmentReport) -> PartitionReport:
    if report.cleaning is None:
        return replace(report, chosen=chosen)
    try:
        horizons = horizons_in(chosen.segment, report.now_ms)
    except READ_ERRORS as error:
        raise unreadable(f"{chosen.segment.log.path}", error) from error
    return replace(report, chosen=replace(chosen, horizons=horizons))
