"""
The forecast for a group, in words and as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from math import inf
from typing import Any, Final

from barnabas.storage.explain.units import duration, moment, rounded_size
from barnabas.storage.forecast.commits import Movement
from barnabas.storage.forecast.deletions import Deletion
from barnabas.storage.forecast.forecast import Forecast, ForecastVerdict, Loss
from barnabas.storage.units import HOURS, MINUTES, SECONDS, counted

Json = dict[str, Any]

_UNITS: Final = (("second", SECONDS), ("minute", MINUTES), ("hour", HOURS))


def forecast_parts(found: Forecast) -> tuple[list[str], list[str], list[str]]:
    """
    Where the group is, how quickly it reads, and what will be deleted before that.
    """
    return [*_place(found)], [*_pace(found)], [*_outcome(found)]


def _place(found: Forecast) -> Iterator[str]:
    pace = found.pace
    yield f"Its offset is {pace.offset:,}, committed at {moment(pace.committed_ms)}."
    if found.already_deleted:
        yield (
            f"{counted(found.already_deleted, 'record')} from there on"
            f" {'was' if found.already_deleted == 1 else 'were'} deleted unread; the log starts at"
            f" {found.position:,}."
        )
    elif found.position > pace.offset:
        yield f"At its pace it has reached {found.position:,} since."
    if found.unread:
        yield (f"{counted(found.unread, 'record')} {'is' if found.unread == 1 else 'are'} unread.")


def _pace(found: Forecast) -> Iterator[str]:
    pace = found.pace
    if not found.unread:
        return
    if pace.movement is Movement.MOVES:
        since = "" if pace.since_ms is None else f", measured from {moment(pace.since_ms)} on"
        yield f"It reads {pace_words(pace.records_per_ms)}{since}."
    elif pace.movement is Movement.STANDS:
        yield f"It has stood still for {duration(found.now_ms - pace.committed_ms)}."
    else:
        yield "Its pace is unknown: one commit is known, and a pace takes two."


def pace_words(records_per_ms: float) -> str:
    """
    ``12.5 records a second``, ``3 records an hour``: in the first unit with at least one record.
    """
    for unit, ms in _UNITS:
        number = round(records_per_ms * ms, 1)
        if number >= 1 or unit == "hour":
            text = f"{number:,.1f}".removesuffix(".0")
            return f"{text} record{'' if text == '1' else 's'} a{'n' * (unit == 'hour')} {unit}"
    raise AssertionError("the last unit takes every pace")


def _outcome(found: Forecast) -> Iterator[str]:
    if found.verdict is ForecastVerdict.NOTHING_UNREAD:
        yield "Nothing: it has read all records."
    elif found.verdict is ForecastVerdict.NEVER_DELETED:
        yield "Nothing: neither retention.ms nor retention.bytes deletes the unread records."
    elif found.verdict is ForecastVerdict.LOSS:
        yield loss_sentence(found)
    else:
        if found.reaches_end_ms is not None:
            yield (
                f"Nothing: it reaches offset {found.position + found.unread:,}, the end,"
                f" {_when(found, found.reaches_end_ms)}, and reads each segment before that is"
                " deleted."
            )
        if found.next_deletion is not None:
            yield f"{_deleted(found, found.next_deletion)}."


def loss_sentence(found: Forecast) -> str:
    """
    What will be deleted unread, and when. The forecast is one of a loss.
    """
    loss = found.loss
    assert loss is not None
    records = f"{counted(loss.records, 'record')} from {loss.first_offset:,} on"
    until = "" if loss.ends_ms == loss.begins_ms else f", the last {_when(found, loss.ends_ms)}"
    lost = f"{rounded_size(loss.size)} ({records}) will be deleted unread"
    return f"{_race(found, loss)}: {lost}{until}."


def _race(found: Forecast, loss: Loss) -> str:
    if loss.reaches_ms == inf:
        return _deleted(found, loss.deletion)
    return (
        f"At its pace it reaches offset {loss.deletion.end_offset:,}"
        f" {_when(found, loss.reaches_ms)}; before that,"
        f" {_deleted(found, loss.deletion).lower()}"
    )


def _deleted(found: Forecast, deletion: Deletion) -> str:
    assert deletion.rule is not None, "a rule deletes it"
    return (
        f"Segment {deletion.base_offset:,} is deleted {_when(found, deletion.time_ms)}"
        f" ({deletion.rule.value})"
    )


def _when(found: Forecast, time_ms: float) -> str:
    left_ms = round(time_ms) - found.now_ms
    return f"in {duration(left_ms)}" if left_ms > 0 else "at the next check"


def forecast_json(found: Forecast) -> Json:
    """
    The same as facts: times in ms since 1970, sizes in bytes, null for what is not known or never
    happens.
    """
    pace, loss, deletion = found.pace, found.loss, found.next_deletion
    is_known = pace.movement is not Movement.UNKNOWN
    return {
        "verdict": found.verdict.name.lower(),
        "offset": pace.offset,
        "committed_ms": pace.committed_ms,
        "position": found.position,
        "unread_records": found.unread,
        "already_deleted_records": found.already_deleted,
        "pace": pace.movement.name.lower(),
        "records_per_second": pace.records_per_ms * SECONDS if is_known else None,
        "pace_since_ms": pace.since_ms,
        "reaches_end_ms": _ms(found.reaches_end_ms),
        "next_deletion": None
        if deletion is None
        else {
            "segment": deletion.base_offset,
            "deleted_ms": _ms(deletion.time_ms),
            "rule": _rule(deletion),
        },
        "loss": None
        if loss is None
        else {
            "first_offset": loss.first_offset,
            "records": loss.records,
            "bytes": loss.size,
            "segment": loss.deletion.base_offset,
            "segment_end_offset": loss.deletion.end_offset,
            "reaches_ms": _ms(loss.reaches_ms),
            "begins_ms": _ms(loss.begins_ms),
            "ends_ms": _ms(loss.ends_ms),
            "rule": _rule(loss.deletion),
        },
        "words": [*chain(*forecast_parts(found))],
    }


def _rule(deletion: Deletion) -> str | None:
    return None if deletion.rule is None else deletion.rule.name.lower()


def _ms(time_ms: float | None) -> int | None:
    return None if time_ms is None or time_ms == inf else round(time_ms)
