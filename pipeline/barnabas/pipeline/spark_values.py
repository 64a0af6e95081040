"""
Sizes and times, written as Spark's users write them.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

_SIZE: Final = re.compile(r"([0-9]+)\s*([a-z]*)")
_UNITS: Final = {
    name: 1 << (10 * power)
    for power, names in enumerate(("", "k", "m", "g", "t", "p"))
    for name in (names, f"{names}b")
}
"""Those of Spark's ``JavaUtils.byteStringAs``."""

_TIME: Final = re.compile(
    r"([0-9]{4,5})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[T ]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{1,9}))?)?\s*(\S.*)?)?"
)
"""What Spark casts to a timestamp (``SparkDateTimeUtils.stringToTimestamp``), if it has a day."""
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2}):?([0-9]{2})?")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


def parse_size(text: str) -> int:
    """
    The bytes of *text*: a whole number, with a unit behind it as in ``64m``, ``64mb`` or ``1g``.

    Raises:
        ValueError: it is none.
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError(text)
    return int(match[1]) * _UNITS[match[2]]


def parse_time(text: str, zone: tzinfo) -> int:
    """
    The ms since 1970 of *text*: a number of them, or an ISO 8601 time; rounded up.

    Args:
        zone: that of a time without one.

    Raises:
        ValueError: it is neither, or there is no such day, hour or zone.
    """
    text = text.strip()
    if re.fullmatch(r"[0-9]+", text):
        return int(text)
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    *numbers, fraction, zone_name = match.groups()
    year, month, day, hour, minute, second = (int(number or 0) for number in numbers)
    at = datetime(year, month, day, hour, minute, second)
    ns = int((fraction or "").ljust(9, "0"))
    own_zone = parse_zone(zone_name) if zone_name else zone
    return (at.replace(tzinfo=own_zone) - _EPOCH) // _MS + -(-ns // 1_000_000)


def parse_zone(name: str) -> tzinfo:
    """
    A time zone by its name or offset: ``Z``, ``UTC``, ``+01:00``, ``Europe/Berlin``.

    Raises:
        ValueError: there is none.
    """
    if name.upper() in ("Z", "UTC", "GMT", "UT"):
        return UTC
    match = _OFFSET.fullmatch(name)
    if match is not None:
        sign = -1 if match[1] == "-" else 1
        return timezone(sign * timedelta(hours=int(match[2]), minutes=int(match[3] or 0)))
    try:
        return ZoneInfo(name)
    except (KeyError, OSError) as error:
        raise ValueError(name) from error
