"""
The order of the keys of a ``java.util.HashMap``, or of a ``HashSet``.

A table of bins, a power of two of them, doubles when it is three quarters full. The bits of the
spread hash code of a key choose its bin. ``put`` adds a key at the end of its bin,
``computeIfAbsent`` at the beginning; it also grows the table late, with the next call. An iterator
walks over the bins, and over each from its beginning. A bin that gets its ninth key (its eighth by
``computeIfAbsent``) doubles a table of less than 64, and becomes a tree in a larger one.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Final, Generic, TypeVar

from barnabas.coordination.groups.assignors.java_order.hashing import (
    DEFAULT_TABLE_SIZE,
    spread,
)
from barnabas.coordination.groups.assignors.java_order.tree_bin import TreeBin

K = TypeVar("K")

_CROWDED: Final = 8
"""
So many keys are in a bin when one more makes a tree of it (``TREEIFY_THRESHOLD``).
"""

_SMALLEST_WITH_TREES: Final = 64
_LARGEST_UNTREEIFIED: Final = 6


class HashOrder(Generic[K]):
    """
    The keys of a ``HashMap``, in the order of an iterator over them.

    The map's values are the business of its user. As long as no bin can be crowded, keys have ranks
    only, by which those of one bin are sorted: below all others for the beginning, above all others
    for the end.
    """

    __slots__ = ("_bins", "_hash_of", "_hashes", "_next_rank", "_ranks", "_threshold", "table_size")

    def __init__(
        self,
        hash_of: Callable[[K], int],
        table_size: int = DEFAULT_TABLE_SIZE,
        keys: Iterable[K] = (),
    ) -> None:
        """
        Args:
            hash_of: the hash code of a key as an unsigned number.
            keys: these are put into the map.
        """
        self._hash_of = hash_of
        self.table_size = table_size
        self._threshold = 3 * table_size // 4
        self._ranks: dict[K, int] = {}
        self._next_rank = 0
        self._hashes: dict[K, int] = {}
        """The spread hash codes of all keys, if there are bins."""
        self._bins: list[list[K] | TreeBin[K] | None] | None = None
        for key in keys:
            self.put(key)

    def __len__(self) -> int:
        return len(self._ranks)

    def __iter__(self) -> Iterator[K]:
        if self._bins is None:
            yield from self._by_rank()
            return
        for keys in self._bins:
            if keys is not None:
                yield from keys

    def _by_rank(self) -> list[K]:
        ranks, hash_of, mask = self._ranks, self._hash_of, self.table_size - 1
        if len(ranks) < 2:
            return list(ranks)
        return sorted(ranks, key=lambda key: (spread(hash_of(key)) & mask, ranks[key]))

    def put(self, key: K) -> None:
        """
        Add a key as ``put``, ``putIfAbsent`` and ``HashSet.add`` do.
        """
        if key in self._ranks:
            return
        self._add(key, at_end=True)
        if len(self._ranks) > self._threshold:
            self._grow()

    def compute_if_absent(self, key: K) -> bool:
        """
        Add a key as ``computeIfAbsent`` does, and say whether it was absent.
        """
        if len(self._ranks) > self._threshold:
            self._grow()
        if key in self._ranks:
            return False
        self._add(key, at_end=False)
        return True

    def _add(self, key: K, *, at_end: bool) -> None:
        if self._bins is None and len(self._ranks) + 1 >= _CROWDED:
            self._bins = self._make_bins()
        self._next_rank += 1
        self._ranks[key] = self._next_rank if at_end else -self._next_rank
        if self._bins is None:
            return
        hash_code = self._hashes[key] = spread(self._hash_of(key))
        place = hash_code & self.table_size - 1
        keys = self._bins[place]
        if keys is None:
            self._bins[place] = [key]
        elif isinstance(keys, TreeBin):
            keys.add(key)
        else:
            keys.insert(len(keys) if at_end else 0, key)
            if len(keys) >= _CROWDED + at_end:
                self._crowded(keys, place)

    def remove(self, key: K) -> None:
        """
        Remove a key that is there.
        """
        del self._ranks[key]
        if self._bins is None:
            return
        place = self._hashes.pop(key) & self.table_size - 1
        keys = self._bins[place]
        assert keys is not None, "the bin has the key"
        if not isinstance(keys, TreeBin):
            keys.remove(key)
        elif not keys.remove(key):
            self._bins[place] = list(keys)

    # Bins

    def _make_bins(self) -> list[list[K] | TreeBin[K] | None]:
        bins: list[list[K] | TreeBin[K] | None] = [None] * self.table_size
        self._hashes = {key: spread(self._hash_of(key)) for key in self._ranks}
        mask = self.table_size - 1
        for place, keys in groupby(self._by_rank(), lambda key: self._hashes[key] & mask):
            bins[place] = list(keys)
        return bins

    def _crowded(self, keys: list[K], place: int) -> None:
        if self.table_size < _SMALLEST_WITH_TREES:
            self._grow()
        else:
            assert self._bins is not None, "there is a crowd in one"
            self._bins[place] = self._tree(keys)

    def _grow(self) -> None:
        """
        Double the table; the keys of a bin keep their order in the two that it becomes.
        """
        size = self.table_size
        if self._bins is not None:
            bins: list[list[K] | TreeBin[K] | None] = [None] * (2 * size)
            for place, keys in enumerate(self._bins):
                if keys is not None:
                    low = [key for key in keys if not self._hashes[key] & size]
                    high = [key for key in keys if self._hashes[key] & size]
                    bins[place] = self._half(low, keys)
                    bins[place + size] = self._half(high, keys)
            self._bins = bins
        self.table_size = 2 * size
        self._threshold = 3 * size // 2

    def _half(self, keys: list[K], whole: list[K] | TreeBin[K]) -> list[K] | TreeBin[K] | None:
        """
        One of the two bins that *whole* becomes.
        """
        if not isinstance(whole, TreeBin) or len(keys) <= _LARGEST_UNTREEIFIED:
            return keys or None
        return whole if len(keys) == len(whole) else self._tree(keys)

    def _tree(self, keys: list[K]) -> TreeBin[K]:
        return TreeBin(keys, self._hashes.__getitem__)
