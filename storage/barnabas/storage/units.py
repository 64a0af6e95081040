"""
Units of bytes and of ms, the largest numbers of Java's types, and nouns with a number.
"""

from __future__ import annotations

from typing import Final

KiB: Final = 1024
MiB: Final = 1024**2
GiB: Final = 1024**3
SECONDS: Final = 1_000
MINUTES: Final = 60_000
HOURS: Final = 3_600_000
DAYS: Final = 86_400_000
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1

_PLURALS: Final = {"batch": "batches", "entry": "entries", "more entry": "more entries"}


def counted(number: int, noun: str) -> str:
    """
    ``1 record``, ``1,500 records``, ``2 batches``, ``3 entries``.
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {_PLURALS.get(noun, f'{noun}s')}"
