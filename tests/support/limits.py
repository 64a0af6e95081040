"""
The numbers of docs/limits.md, for the tests that assert them.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

LIMITS: Final = Path(__file__).parents[2] / "docs" / "limits.md"

_ROW: Final = re.compile(r"^\| `(?P<name>[a-z0-9-]+)` \| (?P<most>[^|]+) \|", re.MULTILINE)
_QUANTITY: Final = re.compile(r"(?P<number>\d[\d,]*(?:\.\d+)?)(?: (?P<unit>KiB|MiB|GiB|ms|s)\b)?")
_UNITS: Final = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "ms": 0.001, "s": 1}


def stated(name: str) -> float:
    """
    The number in the row *name* of docs/limits.md: bytes, seconds, or a count.
    """
    quantity = _QUANTITY.search(rows()[name])
    assert quantity is not None, f"the row {name} of {LIMITS.name} states no number"
    number = float(quantity["number"].replace(",", ""))
    return number * _UNITS[quantity["unit"]] if quantity["unit"] else number


@cache
def rows() -> dict[str, str]:
    found = {row["name"]: row["most"] for row in _ROW.finditer(LIMITS.read_text())}
    assert found, f"{LIMITS} has no rows"
    return found
