"""
Values as Java writes them, where Python writes them in another way, and JSON as Jackson writes it.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from itertools import chain
from math import isfinite
from typing import Any, Final
from uuid import UUID

from barnabas.storage.dump.failure import NUMBER_FORMAT, DumpFailure
from barnabas.storage.uuids import uuid_text

_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_LARGEST_LONG: Final = 2**63 - 1
_SMALLEST_TABLE: Final = 16
_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')
_SHORT_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}


def bool_text(value: bool) -> str:
    return "true" if value else "false"


def optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def parse_long(text: str, largest: int = _LARGEST_LONG) -> int:
    """
    Raises:
        DumpFailure: *text* is not a number from -*largest* - 1 up to *largest*.
    """
    if _NUMBER.fullmatch(text) and -largest - 1 <= int(text) <= largest:
        return int(text)
    raise DumpFailure(NUMBER_FORMAT, f'For input string: "{text}"')


def double_text(value: float) -> str:
    """
    A float64 as Java's Double.toString writes it: from 0.001 up to ten million without an exponent.
    """
    if not isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal  # noqa: PLC0415  # few dumps have such a number

    figures = f"{Decimal(repr(value)).normalize():e}"
    if "." not in figures:
        # Java writes two figures at least: the nearest ones.
        figures = f"{value:.1e}"
    mantissa, _, exponent = figures.partition("e")
    return f"{mantissa}E{int(exponent)}"


def utf8_text(data: bytes) -> str:
    """
    *data* as a string, with U+FFFD for bytes that are not UTF-8.

    Java and Python write the same number of them, except for a surrogate: Java writes one.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(b"\xef\xbf\xbd", data).decode(errors="replace")


def json_text(value: Any) -> str:
    """
    *value* in JSON without blanks: bytes in base64, a UUID as Kafka writes it, NaN in quotes.
    """
    if isinstance(value, str):
        return f'"{_ESCAPED.sub(_escape, value)}"'
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__repr__(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json_text(k)}:{json_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(json_text, value)) + "]"
    return _scalar_text(value)


def _scalar_text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return bool_text(value)
    if isinstance(value, UUID):
        return f'"{uuid_text(value)}"'
    if isinstance(value, bytes):
        return f'"{b64encode(value).decode()}"'
    assert isinstance(value, float), f"a {type(value).__name__} does not occur in a record"
    text = double_text(value)
    return text if text[-1].isdigit() else f'"{text}"'


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04X}"


def hash_order(names: Iterable[str]) -> list[str]:
    """
    *names* in the order of a Java HashMap to which ``computeIfAbsent`` has added them.

    It puts a name in front of the others in its bin, and doubles the table one entry later than
    ``put`` does.
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
