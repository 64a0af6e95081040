"""
Numbers, sizes and times for people.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.units import (
    DAYS,
    HOURS,
    LONG_MAX,
    MINUTES,
    SECONDS,
    GiB,
    KiB,
    MiB,
    counted,
)

_UNITS: Final = (
    ("day", DAYS),
    ("hour", HOURS),
    ("minute", MINUTES),
    ("second", SECONDS),
    ("ms", 1),
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


def size(number: int) -> str:
    """
    ``16,350 bytes``; from 1 MiB on ``1.5 MiB (1,572,864 bytes)``.
    """
    exact = counted(number, "byte")
    return f"{rounded_size(number)} ({exact})" if number >= MiB else exact


def rounded_size(number: int) -> str:
    """
    ``900 bytes``, ``16 KiB``, ``1.5 GiB``.
    """
    for unit, bytes_of_unit in (("GiB", GiB), ("MiB", MiB), ("KiB", KiB)):
        if number >= bytes_of_unit:
            return f"{number / bytes_of_unit:.1f}".removesuffix(".0") + f" {unit}"
    return counted(number, "byte")


def duration(ms: int) -> str:
    """
    ``10 minutes``, ``1 day 2 hours``, ``9 minutes 5 seconds``, ``250 ms``: the two largest units.
    """
    if ms < 0:
        return f"-{duration(-ms)}"
    if ms >= LONG_MAX:
        return "forever"
    parts: list[str] = []
    rest = ms
    for unit, ms_of_unit in _UNITS:
        number, rest = divmod(rest, ms_of_unit)
        if number or parts:
            parts.append(f"{number:,} ms" if unit == "ms" else counted(number, unit))
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if not part.startswith("0 ")) or "0 ms"


def moment(ms: int) -> str:
    """
    ``2023-11-14T22:13:20Z``, with milliseconds if there are any. Times before 1970 and behind the
    year 9999 are numbers: ``253402300800000 ms``.
    """
    if not 0 <= ms <= _LATEST_MS:
        return f"{ms} ms"
    at = _EPOCH + timedelta(milliseconds=ms)
    text = at.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return f"{text}.{ms % 1000:03d}Z" if ms % 1000 else f"{text}Z"


def parse_moment(text: str) -> int:
    """
    The ms since 1970 of *text*: an ISO 8601 time, in UTC unless it has a zone, or a number of ms.

    Raises:
        ConfigError: it is neither.
    """
    if re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{text!r} is not a time: write 2026-01-31T12:00:00Z, or ms since 1970"
        ) from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return (at - _EPOCH) // timedelta(milliseconds=1)
