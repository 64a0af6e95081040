"""
The order of the numbers in a ``HashSet<Integer>``.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from barnabas.coordination.groups.assignors.java_order.hash_order import HashOrder
from barnabas.coordination.groups.assignors.java_order.hashing import (
    DEFAULT_TABLE_SIZE,
    copied,
    grown,
)

_NEVER_CROWDED: Final = 8
_SPREAD_CHANGES: Final = 1 << 16
"""
Numbers below it are their own spread hash codes.
"""


def copied_order(numbers: Sequence[int]) -> Sequence[int]:
    """
    The order of ``new HashSet<>(numbers)``.
    """
    if len(numbers) < 2:
        return numbers
    low, high = min(numbers), max(numbers)
    size = copied(len(numbers))
    if _may_crowd(len(numbers), low, high, size):
        return list(HashOrder(_identity, size, numbers))
    return _by_bin(numbers, high, size)


def added_order(numbers: Sequence[int]) -> Sequence[int]:
    """
    The order of a ``new HashSet<>()`` that numbers are added to.
    """
    if len(numbers) < 2:
        return numbers
    if len(numbers) > _NEVER_CROWDED:
        return PartitionSet(numbers=numbers).ordered()
    return _by_bin(numbers, max(numbers), DEFAULT_TABLE_SIZE)


class PartitionSet:
    """
    The numbers of partitions in the order of a ``HashSet<Integer>``.

    As long as no bin of its table can be crowded, it is known by the order in which the numbers
    came, and the table is not made.
    """

    __slots__ = ("_high", "_low", "_numbers", "_order", "_table_size")

    def __init__(self, table_size: int = DEFAULT_TABLE_SIZE, numbers: Sequence[int] = ()) -> None:
        """
        Args:
            numbers: these are added one by one.
        """
        self._table_size = table_size
        self._numbers: dict[int, None] = {}
        self._order: HashOrder[int] | None = None
        self._low = _SPREAD_CHANGES
        self._high = -1
        self.add_all(numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, number: int) -> bool:
        return number in self._numbers

    def add_all(self, numbers: Sequence[int]) -> None:
        """
        Add numbers that are not there yet.
        """
        if not numbers:
            return
        count = len(self._numbers) + len(numbers)
        low, high = min(numbers), max(numbers)
        # Without gaps each gets a bin of its own in the end, whatever happens on the way.
        is_run = not self._numbers and high - low + 1 == len(numbers) and high < _SPREAD_CHANGES
        low, high = min(low, self._low), max(high, self._high)
        if self._order is None and (is_run or not _may_crowd(count, low, high, self._table_size)):
            self._numbers.update(dict.fromkeys(numbers))
            self._low, self._high = low, high
            self._table_size = grown(self._table_size, count)
        else:
            for number in numbers:
                self.add(number)

    def add(self, number: int) -> None:
        numbers = self._numbers
        if number in numbers:
            return
        self._low = min(self._low, number)
        self._high = max(self._high, number)
        if self._order is None and _may_crowd(
            len(numbers) + 1, self._low, self._high, self._table_size
        ):
            self._order = HashOrder(_identity, self._table_size, numbers)
        numbers[number] = None
        if self._order is not None:
            self._order.put(number)
        else:
            self._table_size = grown(self._table_size, len(numbers))

    def remove(self, number: int) -> None:
        """
        Remove a number that is there.
        """
        del self._numbers[number]
        if self._order is not None:
            self._order.remove(number)

    def ordered(self) -> list[int]:
        """
        The numbers in the order of an iterator.
        """
        if self._order is not None:
            return list(self._order)
        return _by_bin(self._numbers, self._high, self._table_size)


def _by_bin(numbers: Iterable[int], high: int, table_size: int) -> list[int]:
    """
    Numbers in the order of bins that are not crowded; those of one bin keep their order.
    """
    if high < min(table_size, _SPREAD_CHANGES):
        return sorted(numbers)
    mask = table_size - 1
    return sorted(numbers, key=lambda number: (number ^ number >> 16) & mask)


def _may_crowd(count: int, low: int, high: int, table_size: int) -> bool:
    """
    Whether one of so many numbers may be the ninth in its bin.

    Neighbours have bins of their own in a table that is as large as the distance between the lowest
    and the highest number.
    """
    return count > _NEVER_CROWDED and (high - low >= table_size or high >= _SPREAD_CHANGES)


def _identity(number: int) -> int:
    return number
