"""
``java.util.PriorityQueue``: which of several that rank the same comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class PriorityQueue(Generic[T]):
    """
    A heap in which Java's choice of children decides between equals; ``heapq`` makes others.
    """

    __slots__ = ("_heap", "_rank")

    def __init__(self, rank: Callable[[T], float], items: Iterable[T] = ()) -> None:
        """
        Args:
            rank: the lowest comes first. The rank of an item in the queue must not change.
        """
        self._rank = rank
        self._heap: list[T] = []
        for item in items:
            self.add(item)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, item: T) -> None:
        heap, rank = self._heap, self._rank
        at = len(heap)
        heap.append(item)
        ranked = rank(item)
        while at > 0:
            parent = at - 1 >> 1
            if ranked >= rank(heap[parent]):
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = item

    def poll(self) -> T | None:
        """
        Take the first item out, if there is one.
        """
        heap, rank = self._heap, self._rank
        if not heap:
            return None
        first, last = heap[0], heap.pop()
        if not heap:
            return first
        ranked = rank(last)
        at, count = 0, len(heap)
        while (child := 2 * at + 1) < count:
            if child + 1 < count and rank(heap[child]) > rank(heap[child + 1]):
                child += 1
            if ranked <= rank(heap[child]):
                break
            heap[at] = heap[child]
            at = child
        heap[at] = last
        return first
