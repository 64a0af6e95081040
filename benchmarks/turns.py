"""
Who runs when.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def turns(all_of_them: Sequence[T], number: int) -> list[T]:
    """
    The order of round *number*: another one is first each time, for whoever follows somebody finds
    the machine as that one has left it.
    """
    first = number % len(all_of_them)
    return [*all_of_them[first:], *all_of_them[:first]]
