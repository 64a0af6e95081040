"""
Strings as Java hashes and orders them.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate, repeat
from operator import mul
from typing import Final

from barnabas.coordination.text_memory import is_short

_WORD: Final = 0xFFFF_FFFF
_POWERS: Final = list(accumulate(repeat(31, 255), lambda power, by: power * by & _WORD, initial=1))
_POWERS_DOWN: Final = _POWERS[::-1]


def string_hash(text: str) -> int:
    """
    ``String.hashCode`` as an unsigned number.
    """
    return _remembered(text) if is_short(text) else _string_hash(text)


@lru_cache(maxsize=16_384)
def _remembered(text: str) -> int:
    return _string_hash(text)


def _string_hash(text: str) -> int:
    if text.isascii() and len(text) <= len(_POWERS_DOWN):
        first = len(_POWERS_DOWN) - len(text)
        total: int = sum(map(mul, text.encode(), _POWERS_DOWN[first:]))
        return total & _WORD
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _WORD
    return value


def string_rank(text: str) -> bytes:
    """
    The UTF-16 units of *text*: a key that orders strings as ``String.compareTo`` does.
    """
    return text.encode("utf-16-be", "surrogatepass")
