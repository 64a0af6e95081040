"""
Where Java writes values in another way than Python does, and the output shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from math import isfinite
from typing import Final

from barnabas.storage.dump.failure import DumpFailure

_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_LARGEST_LONG: Final = 2**63 - 1
_SMALLEST_TABLE: Final = 16


def int32(value: int) -> int:
    """
    *value* as an int, which wraps around.
    """
    return (value + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def int64(value: int) -> int:
    """
    *value* as a long, which wraps around.
    """
    return (value + (1 << 63) & 0xFFFFFFFFFFFFFFFF) - (1 << 63)


def bool_text(value: bool) -> str:
    return "true" if value else "false"


def optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def parse_long(text: str, largest: int = _LARGEST_LONG) -> int:
    """
    Raises:
        DumpFailure: *text* is no number, or larger than *largest*.
    """
    if _NUMBER.fullmatch(text) and -largest - 1 <= int(text) <= largest:
        return int(text)
    raise DumpFailure("java.lang.NumberFormatException", f'For input string: "{text}"')


def double_text(value: float) -> str:
    """
    A float64 as Double.toString has it: from 0.001 up to ten million without an exponent.
    """
    if not isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal  # noqa: PLC0415  # few dumps have such a number

    figures = f"{Decimal(repr(value)).normalize():e}"
    if "." not in figures:
        # There are two figures at least, and they are those that are nearest.
        figures = f"{value:.1e}"
    mantissa, _, exponent = figures.partition("e")
    return f"{mantissa}E{int(exponent)}"


def utf8_text(data: bytes) -> str:
    """
    *data* as a string, with U+FFFD for what is no UTF-8.

    Java and Python agree on how many of those there are, but for surrogates: Java takes the bytes
    of one together.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(b"\xef\xbf\xbd", data).decode(errors="replace")


_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def hash_order(names: Iterable[str]) -> list[str]:
    """
    *names* in the order in which a HashMap would give them that got each by ``computeIfAbsent``.

    That puts a name in front of those that are in its bin, and makes the table grow only when there
    is one entry more than ``put`` would let there be.
    """
    size = _SMALLEST_TABLE
    bins: dict[int, list[str]] = {}
    for count, name in enumerate(names):
        if count > size * 3 // 4:
            size *= 2
            held, bins = bins, {}
            for other in chain.from_iterable(held.values()):
                bins.setdefault(_spread_hash(other) & size - 1, []).append(other)
        bins.setdefault(_spread_hash(name) & size - 1, []).insert(0, name)
    return [name for number in sorted(bins) for name in bins[number]]


def _spread_hash(text: str) -> int:
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = 31 * value + int.from_bytes(units[at : at + 2], "big") & 0xFFFFFFFF
    return value ^ value >> 16
