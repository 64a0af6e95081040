"""
The reasons to keep a segment, and the times of its deletion, in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.report import PartitionReport, SegmentReport
from barnabas.storage.explain.retention import SegmentLifetime, Stance
from barnabas.storage.explain.units import duration, moment
from barnabas.storage.log.retention import UNLIMITED, Reason, RetentionRule

_METADATA_STAYS: Final = "It is metadata of the cluster, which retention.ms does not delete."
_METADATA_GOES: Final = (
    "A later snapshot of the metadata deletes it together with the snapshot before"
    " (metadata.max.retention.bytes, metadata.max.retention.ms)."
)


def keeping_sentences(report: PartitionReport, each: SegmentReport) -> list[str]:
    """
    Why a segment still exists.
    """
    if report.is_metadata:
        return [_METADATA_STAYS]
    lifetime, config, now_ms = each.lifetime, report.config, report.now_ms
    if lifetime.goes_by is RetentionRule.LOG_START_OFFSET:
        return ["It is below the log start offset, and no check has come since."]
    if lifetime.goes_by is RetentionRule.RETENTION_BYTES:
        return [
            f"Without it the log still has retention.bytes, {config.retention_bytes:,}; no check"
            " has come since."
        ]
    if lifetime.goes_by is RetentionRule.RETENTION_MS:
        return [f"{_age(lifetime, now_ms)}, and {_retention_ms(config)}; no check has come since."]
    if not config.delete:
        policy = ",".join(config.cleanup_policy) or "empty"
        return [f"cleanup.policy is {policy}: neither age nor size deletes a segment."]
    return list(_kept_by(lifetime, config, now_ms))


def _kept_by(lifetime: SegmentLifetime, config: LogConfig, now_ms: int) -> Iterator[str]:
    by_rule = {stance.rule: stance for stance in lifetime.stances}
    if lifetime.is_empty and lifetime.is_active:
        yield "It is the active segment, and has no record whose age could count."
        return
    reasons = {stance.reason for stance in lifetime.stances}
    if Reason.ABOVE_HIGH_WATERMARK in reasons:
        yield "It reaches beyond the high watermark: its end may not be replicated."
        return
    if config.retention_ms == UNLIMITED and lifetime.bytes_missing is None:
        yield "retention.ms and retention.bytes are -1: neither age nor size has a limit."
        return
    yield _by_time(lifetime, by_rule[RetentionRule.RETENTION_MS], config, now_ms)
    size = _by_size(lifetime, by_rule[RetentionRule.RETENTION_BYTES], config)
    if size:
        yield size


def _by_time(lifetime: SegmentLifetime, stance: Stance, config: LogConfig, now_ms: int) -> str:
    if config.retention_ms == UNLIMITED:
        return "retention.ms is -1: its age has no limit."
    if stance.stopped_at is not None:
        sentence = f"The older segment {stance.stopped_at:,} is kept, so this one is kept as well."
        if lifetime.due_with == stance.stopped_at:
            return sentence
        return f"{sentence} {_age(lifetime, now_ms, own=True)}; {_retention_ms(config)}."
    if stance.reason is Reason.IN_THE_FUTURE:
        ahead = duration(lifetime.largest_timestamp - now_ms)
        return (
            f"Its latest record is of {moment(lifetime.largest_timestamp)}, {ahead} from now: it"
            " keeps this segment and all later ones."
        )
    return f"{_age(lifetime, now_ms)}; {_retention_ms(config)}."


def _age(lifetime: SegmentLifetime, now_ms: int, *, own: bool = False) -> str:
    at = lifetime.largest_timestamp
    age = f"{duration(now_ms - at)} old" if at <= now_ms else f"{duration(at - now_ms)} from now"
    if lifetime.has_timestamps:
        return f"{'Its own' if own else 'Its'} latest record is of {moment(at)}, {age}"
    return (
        "Its records have no timestamps, so the modification time of its file counts:"
        f" {moment(at)}, {age}"
    )


def _retention_ms(config: LogConfig) -> str:
    return f"retention.ms is {duration(config.retention_ms)}"


def _by_size(lifetime: SegmentLifetime, stance: Stance, config: LogConfig) -> str:
    missing = lifetime.bytes_missing
    if missing is None:
        return ""
    if stance.stopped_at is None and stance.value is not None:
        return (
            f"Without it the log would have {stance.value:,} bytes, {missing:,} less than"
            f" retention.bytes, {config.retention_bytes:,}."
        )
    return (
        f"retention.bytes, {config.retention_bytes:,}, deletes it when the log has {missing:,} more"
        " bytes."
    )


def leaving_sentences(report: PartitionReport, each: SegmentReport) -> list[str]:
    """
    When a segment is deleted, at the earliest and at the latest.
    """
    if report.is_metadata:
        return [_METADATA_GOES]
    lifetime, config = each.lifetime, report.config
    if lifetime.check_interval_ms is None and config.delete:
        return [
            "Never: the cleaner checks compacted logs, and it is switched off (log.cleaner.enable)."
        ]
    return list(_leaving(lifetime, config))


def _leaving(lifetime: SegmentLifetime, config: LogConfig) -> Iterator[str]:
    if lifetime.unreadable.earliest_ms is None:
        if lifetime.is_empty and lifetime.is_active:
            yield "Never while it is empty: retention keeps an empty last segment."
        elif lifetime.due_ms is not None:
            yield f"Not before the high watermark has passed it; then from {_from(lifetime)} on."
        else:
            yield _never(config)
    elif lifetime.goes_by is not None:
        yield f"The next check deletes it ({_checks(lifetime, config)})."
        yield _soon(lifetime)
    elif lifetime.is_active and lifetime.latest_due_ms != lifetime.due_ms:
        yield from _while_it_grows(lifetime, config)
        yield _files(lifetime)
    else:
        together = (
            ""
            if lifetime.due_with == lifetime.base_offset
            else f", together with segment {lifetime.due_with:,}"
        )
        yield (
            f"The first check from {_from(lifetime)} on deletes it{together}"
            f" ({_checks(lifetime, config)})."
        )
        yield _window(lifetime)
        yield _files(lifetime)
    if lifetime.bytes_missing and lifetime.goes_by is None:
        yield _when_grown(lifetime)
    if lifetime.goes_by is None and lifetime.base_offset < lifetime.log_start_offset:
        yield (
            f"Offsets below the log start offset, {lifetime.log_start_offset:,}, can no longer be"
            " read. A check deletes the segment after DeleteRecords has moved that offset to"
            f" {lifetime.end_offset:,}{' and the segment has ended' if lifetime.is_active else ''}."
        )


def _when_grown(lifetime: SegmentLifetime) -> str:
    if lifetime.unreadable.earliest_ms is not None:
        sentence = "retention.bytes deletes it earlier"
    else:
        sentence = "retention.bytes deletes it"
    if lifetime.is_active:
        missing = f"{lifetime.bytes_missing:,} bytes were appended behind it"
        return f"{sentence}, after it has ended and {missing}."
    return f"{sentence}, after {lifetime.bytes_missing:,} more bytes were appended to the log."


def _never(config: LogConfig) -> str:
    if config.delete and config.retention_bytes > UNLIMITED:
        return "Its age does not delete it."
    if config.delete:
        return "Never: neither retention.ms nor retention.bytes sets a limit."
    if config.compact:
        return "Never as a whole: compaction removes single records."
    return "Only after DeleteRecords has moved the log start offset to its end."


def _while_it_grows(lifetime: SegmentLifetime, config: LogConfig) -> Iterator[str]:
    yield (
        f"Without new records, the first check from {_from(lifetime)} on deletes it"
        f" ({_checks(lifetime, config)}). A later record in it postpones that."
    )
    if lifetime.unreadable.latest_ms is None:
        yield "Its last time is unknown: the clock of the broker decides when it ends."
    else:
        latest = moment(lifetime.unreadable.latest_ms)
        yield f"Its records can be read until {latest} at most."


def _from(lifetime: SegmentLifetime) -> str:
    return "now" if lifetime.due_ms is None else moment(lifetime.due_ms)


def _window(lifetime: SegmentLifetime) -> str:
    earliest, latest = lifetime.unreadable
    assert earliest is not None, "there is no window without it"
    assert latest is not None, "only an active segment has no latest moment"
    return (
        f"Its records can be read until {moment(earliest)} at least and {moment(latest)} at most."
    )


def _soon(lifetime: SegmentLifetime) -> str:
    latest, removed = lifetime.unreadable.latest_ms, lifetime.removed.latest_ms
    assert latest is not None, "the next check deletes it"
    assert removed is not None, "the same"
    later = duration(lifetime.file_delete_delay_ms)
    return (
        f"Its records can be read until {moment(latest)} at most. Its files are removed {later}"
        f" later, by {moment(removed)}."
    )


def _files(lifetime: SegmentLifetime) -> str:
    if lifetime.file_delete_delay_ms == 0:
        return "Its files are removed at once."
    later = duration(lifetime.file_delete_delay_ms)
    earliest, latest = lifetime.removed
    assert earliest is not None, "there is no window without it"
    if latest is None:
        return f"Its files are removed {later} later."
    return f"Its files are removed {later} later, between {moment(earliest)} and {moment(latest)}."


def _checks(lifetime: SegmentLifetime, config: LogConfig) -> str:
    every = duration(lifetime.check_interval_ms or 0)
    if config.compact:
        return f"the cleaner checks every {every} while it has nothing to clean"
    return f"one check every {every}"
