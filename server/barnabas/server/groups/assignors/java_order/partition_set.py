"""
The order of the numbers in a ``HashSet<Integer>``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from barnabas.server.groups.assignors.java_order.hash_order import HashOrder
from barnabas.server.groups.assignors.java_order.hashing import (
    DEFAULT_TABLE_SIZE,
    copied,
    grown,
    spread,
)

_NEVER_CROWDED: Final = 8
_SPREAD_CHANGES: Final = 1 << 16


def copied_order(numbers: Sequence[int]) -> Sequence[int]:
    """
    The order of ``new HashSet<>(numbers)``.
    """
    if len(numbers) < 2:
        return numbers
    low, high = min(numbers), max(numbers)
    size = copied(len(numbers))
    if high < size:
        return sorted(numbers)
    if high < _SPREAD_CHANGES and (high - low < size or len(numbers) <= _NEVER_CROWDED):
        mask = size - 1
        return sorted(numbers, key=lambda number: number & mask)
    return list(HashOrder(_identity, size, numbers))


class PartitionSet:
    """
    The numbers of partitions in the order of a ``HashSet<Integer>``.

    As long as no bin of its table can be crowded it is known by the order in which the numbers
    came, and the table is not made.
    """

    __slots__ = ("_high", "_low", "_numbers", "_order", "_table_size")

    def __init__(self, table_size: int = DEFAULT_TABLE_SIZE) -> None:
        self._table_size = table_size
        self._numbers: dict[int, None] = {}
        self._order: HashOrder[int] | None = None
        self._low = _SPREAD_CHANGES
        self._high = -1

    @classmethod
    def copy_of(cls, numbers: Iterable[int]) -> PartitionSet:
        """
        ``new HashSet<>(numbers)``.
        """
        copy = cls()
        copy._numbers = dict.fromkeys(numbers)
        count = len(copy._numbers)
        if count:
            copy._low, copy._high = min(copy._numbers), max(copy._numbers)
        size = copy._table_size = copied(count)
        if count > _NEVER_CROWDED and copy._may_crowd():
            copy._order = HashOrder(_identity, size, copy._numbers)
        return copy

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, number: int) -> bool:
        return number in self._numbers

    def add(self, number: int) -> None:
        numbers = self._numbers
        if number in numbers:
            return
        self._low = min(self._low, number)
        self._high = max(self._high, number)
        if self._order is None and self._may_crowd():
            self._order = HashOrder(_identity, self._table_size, numbers)
        numbers[number] = None
        if self._order is not None:
            self._order.put(number)
        else:
            self._table_size = grown(self._table_size, len(numbers))

    def remove(self, number: int) -> bool:
        """
        Remove a number, and say whether it was there.
        """
        if number not in self._numbers:
            return False
        del self._numbers[number]
        if self._order is not None:
            self._order.remove(number)
        return True

    def ordered(self) -> list[int]:
        """
        The numbers in the order of an iterator.
        """
        if self._order is not None:
            return list(self._order)
        if self._high < min(self._table_size, _SPREAD_CHANGES):
            return sorted(self._numbers)
        mask = self._table_size - 1
        return sorted(self._numbers, key=lambda number: spread(number) & mask)

    def _may_crowd(self) -> bool:
        """
        Whether one more number may be the ninth in its bin.
        """
        if len(self._numbers) < _NEVER_CROWDED:
            return False
        return self._high - self._low >= self._table_size or self._high >= _SPREAD_CHANGES


def _identity(number: int) -> int:
    return number
