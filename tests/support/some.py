"""
Loops of assertions over at least one value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def some(values: Iterable[T]) -> list[T]:
    """
    *values*, which must not be empty: a loop of assertions over nothing would prove nothing.
    """
    found = list(values)
    assert found, "there is nothing to look at"
    return found
