"""
Values of options with a unit: ``7d`` for ``retention.ms``, ``1GiB`` for ``segment.bytes``.

Kafka's options are plain numbers whose unit is part of the name. People may write another unit on
the command line and in a test; files and requests have Kafka's numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from barnabas.storage.config.option_values import ConfigError
from barnabas.storage.units import DAYS, HOURS, MINUTES, SECONDS, GiB, KiB, MiB

_TIMES: Final[Mapping[str, int]] = {
    "ms": 1,
    "s": SECONDS,
    "sec": SECONDS,
    "m": MINUTES,
    "min": MINUTES,
    "h": HOURS,
    "d": DAYS,
    "w": 7 * DAYS,
}
_SIZES: Final[Mapping[str, int]] = {
    "b": 1,
    "kib": KiB,
    "mib": MiB,
    "gib": GiB,
    "tib": 1024 * GiB,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "tb": 1000**4,
    "k": KiB,
    "m": MiB,
    "g": GiB,
    "t": 1024 * GiB,
}
_UNIT_OF_NAME: Final = (
    (re.compile(r"[._]ms$"), _TIMES, 1),
    (re.compile(r"[._]seconds$"), _TIMES, SECONDS),
    (re.compile(r"[._]minutes$"), _TIMES, MINUTES),
    (re.compile(r"[._]hours$"), _TIMES, HOURS),
    (re.compile(r"[._](bytes|memory|buffer\.size)([._]|$)"), _SIZES, 1),
)
_QUANTITY: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)")


def plain_value(name: str, text: str) -> str:
    """
    The value of the option *name* as Kafka writes it: ``604800000`` for ``retention.ms``, ``7d``.

    A value without a unit is returned unchanged, as is the value of an option that is neither a
    time nor a size.

    Raises:
        ConfigError: the unit does not fit the option, or the value is no whole number of the
            option's own unit.
    """
    found = _QUANTITY.fullmatch(text.strip())
    kind = next((each for each in _UNIT_OF_NAME if each[0].search(name)), None)
    if found is None or kind is None:
        return text
    _, units, own = kind
    amount, unit = found.groups()
    factor = units.get(unit.lower())
    if factor is None:
        known = "ms, s, min, h, d or w" if units is _TIMES else "B, KiB, MiB, GiB, KB, MB or GB"
        raise ConfigError(f"{name}={text}: {unit} is not a unit of {name}; write {known}")
    whole, _, decimals = amount.partition(".")
    scale = 10 ** len(decimals)
    value, rest = divmod(int(whole + decimals) * factor, scale * own)
    if rest:
        raise ConfigError(f"{name}={text} is not a whole number of {_name_of(own, units)}")
    return str(value)


def duration_ms(text: str) -> int | None:
    """
    The ms of a duration such as ``90s`` or ``1.5h``; None if *text* is none.
    """
    found = _QUANTITY.fullmatch(text.strip())
    factor = found and _TIMES.get(found[2].lower())
    return round(float(found[1]) * factor) if found and factor else None


def _name_of(factor: int, units: Mapping[str, int]) -> str:
    if units is _SIZES:
        return "bytes"
    return {1: "ms", SECONDS: "seconds", MINUTES: "minutes", HOURS: "hours"}[factor]
