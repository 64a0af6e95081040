"""
Counts by name, of which none is 0. A ``Counter`` does the same: to make one takes as long as to
apply a record, and each group has four.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TypeAlias

Tally: TypeAlias = dict[str, int]


def count(tally: Tally, name: str) -> None:
    """
    Count *name* once more.
    """
    tally[name] = tally.get(name, 0) + 1


def discount(tally: Tally, name: str) -> None:
    """
    Count *name* once less; without effect if it is not counted.
    """
    left = tally.get(name, 0) - 1
    if left > 0:
        tally[name] = left
    else:
        tally.pop(name, None)
