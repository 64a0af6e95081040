"""
The plan of the cleaner, in words.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.storage.cleaner.cleanable import (
    Bound,
    CleaningPlan,
    CleaningVerdict,
    DirtyOrigin,
    Limit,
)
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.cleaning import Cleaning, Horizons, LogPart
from barnabas.storage.explain.report import PartitionReport, SegmentReport
from barnabas.storage.explain.units import duration, moment
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.units import counted


def cleaning_sentences(report: PartitionReport) -> list[str]:
    """
    Whether a cleaning is due, its range, and the bound of the range; nothing if the log is not
    compacted.
    """
    cleaning = report.cleaning
    if cleaning is None:
        return []
    plan = cleaning.plan
    sentences = [_first_dirty(plan), *_range(plan, report.config), *_verdict(report, cleaning)]
    if not report.times.cleaner_enabled:
        sentences.append("The cleaner is switched off (log.cleaner.enable): it cleans nothing.")
    return sentences


def _first_dirty(plan: CleaningPlan[LogSegment]) -> str:
    first = plan.first_dirty
    if first.origin is DirtyOrigin.CHECKPOINT:
        return f"It is clean up to offset {first.offset:,}, the end of the last cleaning."
    if first.origin is DirtyOrigin.NEVER_CLEANED:
        return f"It is dirty from its start, offset {first.offset:,}: it was never cleaned."
    why = (
        "below the log start offset"
        if first.origin is DirtyOrigin.BELOW_LOG_START
        else "behind the end of the log"
    )
    return (
        f"It is dirty from its start, offset {first.offset:,}: the last cleaning ended at"
        f" {first.checkpoint or 0:,}, which is now {why}."
    )


def _range(plan: CleaningPlan[LogSegment], config: LogConfig) -> Iterator[str]:
    bound = _bound(plan.bound, config)
    if plan.cleanable_bytes == 0:
        yield f"Nothing can be cleaned: {bound}."
        return
    first, end = plan.cleanable_segments[0].base_offset, plan.uncleanable_offset
    segments = counted(len(plan.cleanable_segments), "segment")
    yield (
        f"A cleaning would read {segments}, {counted(plan.cleanable_bytes, 'byte')}, from segment"
        f" {first:,} up to offset {end:,}: {bound}."
    )


def _bound(bound: Bound[LogSegment], config: LogConfig) -> str:
    if bound.limit is Limit.ACTIVE_SEGMENT:
        return f"the active segment, {bound.offset:,}, is not cleaned before it has ended"
    if bound.limit is Limit.LAST_STABLE_OFFSET:
        return f"a transaction is open from offset {bound.offset:,} on (the last stable offset)"
    age = duration(bound.age_ms or 0)
    return (
        f"the latest record of segment {bound.offset:,} is {age} old, and min.compaction.lag.ms"
        f" is {duration(config.min_compaction_lag_ms)}"
    )


def _verdict(report: PartitionReport, cleaning: Cleaning) -> Iterator[str]:
    plan = cleaning.plan
    ratio = f"{plan.cleanable_bytes:,} of {plan.total_bytes:,} bytes, {plan.ratio:.1%}, are dirty"
    limit = f"min.cleanable.dirty.ratio, {plan.min_ratio:.1%}"
    when = f"an idle cleaner looks every {duration(report.times.cleaner_backoff_ms)}"
    if plan.verdict is CleaningVerdict.DIRTY:
        yield f"It is due: {ratio}, more than {limit}; {when}."
    elif plan.verdict is CleaningVerdict.LAG_EXCEEDED:
        yield (
            f"It is due: max.compaction.lag.ms, {duration(report.config.max_compaction_lag_ms)}, is"
            f" exceeded by {duration(plan.delay.delay_ms)}, and the dirty ratio"
            f" ({plan.ratio:.1%}) does not count."
        )
    elif plan.verdict is CleaningVerdict.CLEAN_ENOUGH:
        yield f"It is not due: {ratio}, not more than {limit}."
        if cleaning.due_ms is not None:
            yield (
                f"max.compaction.lag.ms makes it due at {moment(cleaning.due_ms)} at the latest,"
                f" {duration(cleaning.due_ms - report.now_ms)} from now."
            )


def cleaner_sentences(report: PartitionReport, each: SegmentReport) -> list[str]:
    """
    The sentences about the cleaner and one segment; nothing if the log is not compacted.
    """
    if report.cleaning is None:
        return []
    part = report.cleaning.parts[each.segment.base_offset]
    sentences = [part_sentence(part, report.cleaning)]
    if each.horizons is not None:
        sentences.append(horizon_sentence(each.horizons))
    return sentences


def part_sentence(part: LogPart, cleaning: Cleaning) -> str:
    """
    The relation of a segment to the next cleaning.
    """
    if part is LogPart.CLEAN:
        return "It was cleaned."
    if part is LogPart.CLEANABLE:
        when = "The next cleaning" if cleaning.plan.verdict.is_due else "A cleaning, when due,"
        return f"{when} reads it, and removes records whose key has a later record."
    if part is LogPart.ACTIVE:
        return "It is not cleaned before it has ended."
    return "It is behind the end of the next cleaning."


def horizon_sentence(horizons: Horizons) -> str:
    """
    The tombstones and markers that a cleaning may remove; nothing if there are none.
    """
    if horizons.earliest_ms is None or horizons.latest_ms is None:
        return ""
    batches = counted(horizons.batches, "batch")
    earliest, latest = moment(horizons.earliest_ms), moment(horizons.latest_ms)
    when = earliest if earliest == latest else f"between {earliest} and {latest}"
    return (
        f"A cleaning removes the tombstones or markers in {batches} after their delete horizon:"
        f" {when}; it has passed for {horizons.passed:,}."
    )
