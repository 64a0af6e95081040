"""
Binary search among the entries of an index.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Final

WARM_BYTES: Final = 8192
"""The end of an index that is searched first: lookups near the log's end touch these pages only."""

Unpack = Callable[[memoryview, int], tuple[Any, ...]]


class SearchResult(Enum):
    """
    Which entry a search is to find, relative to its target.
    """

    LARGEST_LOWER_BOUND = 1
    SMALLEST_UPPER_BOUND = 2


def search(
    view: memoryview,
    entries: int,
    target: int,
    result: SearchResult,
    *,
    unpack: Unpack,
    width: int,
    shift: int,
) -> int:
    """
    The slot of the entry that is nearest to *target*, or -1 if there is none on that side.

    The steps are those of Kafka's AbstractIndex, warm section first. So is the answer, also where
    entries do not grow: an upper bound may be the entry behind one that equals the target.

    Args:
        unpack: reads the compared number, *shift* bytes into an entry of *width* bytes.
    """
    if entries == 0:
        return -1
    low, high = max(0, entries - 1 - WARM_BYTES // width), entries - 1
    if unpack(view, low * width + shift)[0] >= target:
        if unpack(view, shift)[0] > target:
            return -1 if result is SearchResult.LARGEST_LOWER_BOUND else 0
        low, high = 0, low
    while low < high:
        middle = (low + high + 1) >> 1
        (found,) = unpack(view, middle * width + shift)
        if found > target:
            high = middle - 1
        elif found < target:
            low = middle
        else:
            return middle
    if result is SearchResult.LARGEST_LOWER_BOUND:
        return low
    return -1 if low == entries - 1 else low + 1
