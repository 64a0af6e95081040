"""
Loops of assertions that may not run over nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def some(values: Iterable[T]) -> list[T]:
    """
    All *values*, of which there has to be one: assertions about each prove nothing otherwise.
    """
    found = list(values)
    assert found, "there is nothing to look at"
    return found
