"""
What keeps a segment, and when it goes, in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.leaving import SegmentLifetime, Stance
from barnabas.storage.explain.units import duration, moment
from barnabas.storage.log.retention import UNLIMITED, Reason, RetentionRule

METADATA_STAYS: Final = ("It is the metadata of the cluster, for which retention does not count.",)
METADATA_GOES: Final = (
    "A snapshot of the metadata that reaches beyond it lets it go, with the one before"
    " (metadata.max.retention.bytes, metadata.max.retention.ms).",
)


def keeping_sentences(departure: SegmentLifetime, config: LogConfig, now_ms: int) -> list[str]:
    """
    Why a segment is still here.
    """
    if departure.goes_by is RetentionRule.LOG_START_OFFSET:
        return ["It is below the log start offset, and no check has come since."]
    if departure.goes_by is RetentionRule.RETENTION_BYTES:
        return ["The log is large enough without it for retention.bytes; no check has come since."]
    if departure.goes_by is RetentionRule.RETENTION_MS:
        return [f"{_age(departure, now_ms)}, and {_retention_ms(config)}; no check has come since."]
    if not config.delete:
        policy = ",".join(config.cleanup_policy) or "empty"
        return [f"cleanup.policy is {policy}: neither its age nor the size of the log lets it go."]
    return list(_kept_by(departure, config, now_ms))


def _kept_by(departure: SegmentLifetime, config: LogConfig, now_ms: int) -> Iterator[str]:
    by_rule = {stance.rule: stance for stance in departure.stances}
    if departure.is_empty and departure.is_active:
        yield "It is the active segment, and has no records that could grow old."
        return
    reasons = {stance.reason for stance in departure.stances}
    if Reason.ABOVE_HIGH_WATERMARK in reasons:
        yield "It reaches beyond the high watermark: its end is not known to be replicated."
        return
    if config.retention_ms == UNLIMITED and departure.bytes_missing is None:
        yield "retention.ms and retention.bytes are -1: age and size do not matter."
        return
    yield _by_time(departure, by_rule[RetentionRule.RETENTION_MS], config, now_ms)
    size = _by_size(departure, by_rule[RetentionRule.RETENTION_BYTES], config)
    if size:
        yield size


def _by_time(departure: SegmentLifetime, stance: Stance, config: LogConfig, now_ms: int) -> str:
    if config.retention_ms == UNLIMITED:
        return "retention.ms is -1: it never grows too old."
    if stance.stopped_at is not None:
        sentence = (
            f"Segment {stance.stopped_at:,} before it has to stay, and the oldest goes first."
        )
        if departure.due_with == stance.stopped_at:
            return sentence
        return f"{sentence} {_age(departure, now_ms, own=True)}; {_retention_ms(config)}."
    if stance.reason is Reason.IN_THE_FUTURE:
        ahead = duration(departure.largest_timestamp - now_ms)
        return (
            f"Its latest record is of {moment(departure.largest_timestamp)}, {ahead} from now: it"
            " is not old yet, and neither is anything behind it."
        )
    return f"{_age(departure, now_ms)}; {_retention_ms(config)}."


def _age(departure: SegmentLifetime, now_ms: int, *, own: bool = False) -> str:
    at = departure.largest_timestamp
    age = f"{duration(now_ms - at)} old" if at <= now_ms else f"{duration(at - now_ms)} from now"
    if departure.has_timestamps:
        return f"{'Its own' if own else 'Its'} latest record is of {moment(at)}, {age}"
    return f"Its records have no timestamps, so its file counts, which is of {moment(at)}, {age}"


def _retention_ms(config: LogConfig) -> str:
    return f"retention.ms is {duration(config.retention_ms)}"


def _by_size(departure: SegmentLifetime, stance: Stance, config: LogConfig) -> str:
    missing = departure.bytes_missing
    if missing is None:
        return ""
    if stance.stopped_at is None and stance.value is not None:
        return (
            f"Without it the log would have {stance.value:,} bytes, {missing:,} less than"
            f" retention.bytes, {config.retention_bytes:,}."
        )
    return f"For retention.bytes, {config.retention_bytes:,}, the log lacks {missing:,} bytes."


def leaving_sentences(departure: SegmentLifetime, config: LogConfig, now_ms: int) -> list[str]:
    """
    When a segment goes, at the earliest and the latest.
    """
    if departure.check_interval_ms is None and config.delete:
        return ["Never: the log is compacted, so the cleaner would look, and it is switched off."]
    return list(_leaving(departure, config, now_ms))


def _leaving(departure: SegmentLifetime, config: LogConfig, now_ms: int) -> Iterator[str]:
    if departure.unreadable.earliest_ms is None:
        if departure.is_empty and departure.is_active:
            yield "Not by itself: the last segment stays as long as it is empty."
        elif departure.due_ms is not None:
            yield f"Not before the high watermark has passed it; then from {_from(departure)} on."
        else:
            yield _never(config)
    elif departure.goes_by is not None:
        yield f"With the next check ({_checks(departure, config)})."
        yield _soon(departure)
    elif departure.is_active and departure.latest_due_ms != departure.due_ms:
        yield from _while_it_grows(departure, config)
        yield _files(departure)
    else:
        together = (
            ""
            if departure.due_with == departure.base_offset
            else f", with segment {departure.due_with:,}"
        )
        yield (
            f"With the first check from {_from(departure)} on{together}"
            f" ({_checks(departure, config)})."
        )
        yield _window(departure)
        yield _files(departure)
    if departure.bytes_missing and departure.goes_by is None:
        yield _when_grown(departure)
    if departure.goes_by is None and departure.base_offset < departure.log_start_offset:
        yield (
            f"What is below the log start offset, {departure.log_start_offset:,}, cannot be read"
            " already; all of it goes once DeleteRecords has moved that to"
            f" {departure.end_offset:,}{' and it has ended' if departure.is_active else ''}."
        )


def _when_grown(departure: SegmentLifetime) -> str:
    sooner = "Sooner, once" if departure.unreadable.earliest_ms is not None else "By its size, once"
    if departure.is_active:
        return f"{sooner} it has ended and {departure.bytes_missing:,} bytes came behind it."
    return f"{sooner} {departure.bytes_missing:,} more bytes were appended to the log."


def _never(config: LogConfig) -> str:
    if config.delete and config.retention_bytes > UNLIMITED:
        return "Not by its age."
    if config.delete:
        return "Never by itself: neither retention.ms nor retention.bytes sets a limit."
    if config.compact:
        return "As a whole never; compaction takes records out of it."
    return "Only with DeleteRecords, once that has moved the log start offset to its end."


def _while_it_grows(departure: SegmentLifetime, config: LogConfig) -> Iterator[str]:
    yield (
        f"If no more records come, with the first check from {_from(departure)} on"
        f" ({_checks(departure, config)}). Each later record that comes here moves that on."
    )
    if departure.unreadable.latest_ms is None:
        yield "The clock decides how long records come here, so nothing says until when at most."
    else:
        latest = moment(departure.unreadable.latest_ms)
        yield f"At the very latest its records can be read until {latest}."


def _from(departure: SegmentLifetime) -> str:
    return "now" if departure.due_ms is None else moment(departure.due_ms)


def _window(departure: SegmentLifetime) -> str:
    earliest, latest = departure.unreadable
    assert earliest is not None, "there is no window without it"
    assert latest is not None, "only an active segment has no latest moment"
    return (
        f"So its records can be read until {moment(earliest)} at least, and until {moment(latest)}"
        " at most."
    )


def _soon(departure: SegmentLifetime) -> str:
    latest, removed = departure.unreadable.latest_ms, departure.removed.latest_ms
    assert latest is not None, "what is due goes with the next check"
    assert removed is not None, "the same"
    later = duration(departure.file_delete_delay_ms)
    return (
        f"So its records can be read until {moment(latest)} at most, and its files are removed"
        f" {later} after that, by {moment(removed)}."
    )


def _files(departure: SegmentLifetime) -> str:
    if departure.file_delete_delay_ms == 0:
        return "Its files are removed at once."
    later = duration(departure.file_delete_delay_ms)
    earliest, latest = departure.removed
    assert earliest is not None, "there is no window without it"
    if latest is None:
        return f"Its files are removed {later} after that."
    return (
        f"Its files are removed {later} after that, between {moment(earliest)} and"
        f" {moment(latest)}."
    )


def _checks(departure: SegmentLifetime, config: LogConfig) -> str:
    every = duration(departure.check_interval_ms or 0)
    if config.compact:
        return f"the cleaner makes one every {every} while it has nothing to clean"
    return f"there is one every {every}"
