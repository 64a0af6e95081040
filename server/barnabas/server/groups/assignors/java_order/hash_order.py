"""
The order of the keys of a ``java.util.HashMap``, or of a ``HashSet``.

A table of bins, a power of two of them, doubles when it is three quarters full. The bits of the
spread hash code of a key choose its bin. ``put`` adds a key at the end of its bin,
``computeIfAbsent`` at the beginning; it also grows the table late, with the next call. An iterator
walks over the bins, and over each from its beginning. A bin that gets its ninth key (its eighth by
``computeIfAbsent``) doubles a table of less than 64, and becomes a tree in a larger one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, TypeVar

from barnabas.server.groups.assignors.java_order.hashing import (
    DEFAULT_TABLE_SIZE,
    spread,
)
from barnabas.server.groups.assignors.java_order.tree_bin import TreeBin

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

    The map's values are the business of its user.
    """

    __slots__ = ("_bins", "_hash_of", "_keys", "_mask", "_threshold")

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
        self._keys: dict[K, int] = {}
        self._bins: list[list[K] | TreeBin[K] | None] = [None] * table_size
        self._mask = table_size - 1
        self._threshold = 3 * table_size // 4
        for key in keys:
            self.put(key)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: K) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[K]:
        for keys in self._bins:
            if keys is not None:
                yield from keys

    @property
    def table_size(self) -> int:
        return len(self._bins)

    def put(self, key: K) -> None:
        """
        Add a key as ``put``, ``putIfAbsent`` and ``HashSet.add`` do.
        """
        if key in self._keys:
            return
        hash_code = spread(self._hash_of(key))
        self._keys[key] = hash_code
        place = hash_code & self._mask
        keys = self._bins[place]
        if keys is None:
            self._bins[place] = [key]
        elif isinstance(keys, TreeBin):
            keys.add(key)
        else:
            keys.append(key)
            if len(keys) > _CROWDED:
                self._crowded(place)
        if len(self._keys) > self._threshold:
            self._grow()

    def compute_if_absent(self, key: K) -> bool:
        """
        Add a key as ``computeIfAbsent`` does, and say whether it was absent.
        """
        if len(self._keys) > self._threshold:
            self._grow()
        if key in self._keys:
            return False
        hash_code = spread(self._hash_of(key))
        self._keys[key] = hash_code
        place = hash_code & self._mask
        keys = self._bins[place]
        if keys is None:
            self._bins[place] = [key]
        elif isinstance(keys, TreeBin):
            keys.add(key)
        else:
            keys.insert(0, key)
            if len(keys) >= _CROWDED:
                self._crowded(place)
        return True

    def remove(self, key: K) -> None:
        """
        Remove a key that is there.
        """
        place = self._keys.pop(key) & self._mask
        keys = self._bins[place]
        assert keys is not None, "the bin has the key"
        if not isinstance(keys, TreeBin):
            keys.remove(key)
        elif not keys.remove(key):
            self._bins[place] = list(keys)

    def _crowded(self, place: int) -> None:
        if len(self._bins) < _SMALLEST_WITH_TREES:
            self._grow()
        else:
            keys = self._bins[place]
            assert keys is not None, "it is crowded"
            self._bins[place] = self._tree(keys)

    def _grow(self) -> None:
        """
        Double the table; the keys of a bin keep their order in the two that it becomes.
        """
        size = len(self._bins)
        bins: list[list[K] | TreeBin[K] | None] = [None] * (2 * size)
        for place, keys in enumerate(self._bins):
            if keys is not None:
                low = [key for key in keys if not self._keys[key] & size]
                high = [key for key in keys if self._keys[key] & size]
                bins[place] = self._half(low, keys)
                bins[place + size] = self._half(high, keys)
        self._bins = bins
        self._mask = 2 * size - 1
        self._threshold = 3 * size // 2

    def _half(self, keys: list[K], whole: list[K] | TreeBin[K]) -> list[K] | TreeBin[K] | None:
        """
        One of the two bins that *whole* becomes.
        """
        if not isinstance(whole, TreeBin) or len(keys) <= _LARGEST_UNTREEIFIED:
            return keys or None
        return whole if len(keys) == len(whole) else self._tree(keys)

    def _tree(self, keys: Iterable[K]) -> TreeBin[K]:
        hashes = self._keys
        return TreeBin(keys, hashes.__getitem__)
