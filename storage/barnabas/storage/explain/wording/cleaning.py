"""
What the cleaner makes of a log, in words.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.storage.cleaner.plan import Bound, CleaningPlan, CleaningVerdict, DirtyOrigin, Limit
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.cleaning import Cleaning, Horizons, Part
from barnabas.storage.explain.units import counted, duration, moment
from barnabas.storage.segment.segment import LogSegment


def cleaning_sentences(cleaning: Cleaning, config: LogConfig, now_ms: int) -> list[str]:
    """
    Whether the log is due, what would be cleaned, and what bounds that.
    """
    plan = cleaning.plan
    sentences = [_first_dirty(plan), *_range(plan, config), *_verdict(cleaning, config, now_ms)]
    if not cleaning.times.cleaner_enabled:
        sentences.append("But the cleaner is switched off (log.cleaner.enable): nothing happens.")
    return sentences


def _first_dirty(plan: CleaningPlan[LogSegment]) -> str:
    first = plan.first_dirty
    if first.origin is DirtyOrigin.CHECKPOINT:
        return f"Clean up to offset {first.offset:,}, where the last cleaning ended."
    if first.origin is DirtyOrigin.NEVER_CLEANED:
        return f"Dirty from its start, offset {first.offset:,}, on: it was never cleaned."
    why = (
        "now that the log starts later"
        if first.origin is DirtyOrigin.BELOW_LOG_START
        else "as the end of the log was lost"
    )
    return (
        f"Dirty from its start, offset {first.offset:,}, on: the last cleaning ended at"
        f" {first.checkpoint or 0:,}, which says nothing {why}."
    )


def _range(plan: CleaningPlan[LogSegment], config: LogConfig) -> Iterator[str]:
    bound = _bound(plan.bound, config)
    if plan.cleanable_bytes == 0:
        yield f"Nothing can be cleaned: {bound}."
        return
    first, end = plan.cleanable_segments[0].base_offset, plan.uncleanable_offset
    segments = counted(len(plan.cleanable_segments), "segment")
    yield (
        f"What can be cleaned is {segments}, {counted(plan.cleanable_bytes, 'byte')}, from segment"
        f" {first:,} on up to offset {end:,}: {bound}."
    )


def _bound(bound: Bound[LogSegment], config: LogConfig) -> str:
    if bound.limit is Limit.ACTIVE_SEGMENT:
        return f"the active segment, {bound.offset:,}, is never cleaned; it has to end first"
    if bound.limit is Limit.LAST_STABLE_OFFSET:
        return f"a transaction is open from offset {bound.offset:,} on (the last stable offset)"
    age = duration(bound.age_ms or 0)
    return (
        f"the latest record of segment {bound.offset:,} is {age} old, and min.compaction.lag.ms"
        f" is {duration(config.min_compaction_lag_ms)}"
    )


def _verdict(cleaning: Cleaning, config: LogConfig, now_ms: int) -> Iterator[str]:
    plan = cleaning.plan
    ratio = f"{plan.cleanable_bytes:,} of {plan.total_bytes:,} bytes, {plan.ratio:.1%}, are dirty"
    limit = f"min.cleanable.dirty.ratio, {plan.min_ratio:.1%}"
    when = f"the cleaner looks every {duration(cleaning.times.cleaner_backoff_ms)} while it rests"
    if plan.verdict is CleaningVerdict.DIRTY:
        yield f"It is due: {ratio}, more than {limit}; {when}."
    elif plan.verdict is CleaningVerdict.LAG_EXCEEDED:
        yield (
            f"It is due: max.compaction.lag.ms, {duration(config.max_compaction_lag_ms)}, is"
            f" exceeded by {duration(plan.delay.delay_ms)}, whatever is dirty ({plan.ratio:.1%})."
        )
    elif plan.verdict is CleaningVerdict.CLEAN_ENOUGH:
        yield f"It is not due: {ratio}, and that is not more than {limit}."
        if cleaning.due_ms is not None:
            yield (
                f"max.compaction.lag.ms makes it due at {moment(cleaning.due_ms)} at the latest,"
                f" {duration(cleaning.due_ms - now_ms)} from now."
            )


def part_sentence(part: Part, cleaning: Cleaning) -> str:
    """
    What the cleaner has to do with a segment.
    """
    if part is Part.CLEAN:
        return "The cleaner has been here."
    if part is Part.CLEANABLE:
        due = "with the next cleaning" if cleaning.plan.verdict.is_due else "once the log is due"
        return f"It is cleaned {due}: records with a later one of their key go then."
    if part is Part.ACTIVE:
        return "The cleaner leaves it alone until it has ended."
    return "The cleaner does not come here yet."


def horizon_sentence(horizons: Horizons) -> str:
    """
    Which tombstones and markers a cleaning may take out; nothing if there are none.
    """
    if horizons.earliest_ms is None or horizons.latest_ms is None:
        return ""
    batches = counted(horizons.batches, "batch")
    earliest, latest = moment(horizons.earliest_ms), moment(horizons.latest_ms)
    when = earliest if earliest == latest else f"between {earliest} and {latest}"
    return (
        f"Tombstones or markers in {batches} may be taken out, by a cleaning after their horizon:"
        f" {when}; it has passed for {horizons.passed:,}."
    )
