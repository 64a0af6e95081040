"""
Which records stay when only the latest of each key does.

The rules are those of Kafka's log cleaner (``Cleaner``, ``SkimpyOffsetMap``): the last offset of a
key wins, whatever the timestamps say; a null value (a tombstone) wins too, and stands for nothing;
an empty key is a key as any other; and a record without key does not stay, for nothing could ever
replace it. Brokers do not take such records for a compacted topic, but it may have had another
policy when they came.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from barnabas.pipeline.decoding.varint_columns import Ints

_MERGE_ROWS: Final = 200_000
"""Those that wait are merged when they are so many, and as many as there are keys by then."""

# All keys of a partition together may have more bytes than an offset of 32 bits can count.
_KEY: Final = pa.large_binary()


class LatestOffsets:
    """
    The latest offset of each key that was noted, if offsets only grow from note to note.

    It takes memory for each key: its bytes, and some 50 more.
    """

    def __init__(self) -> None:
        self._keys: list[pa.Array] = [pa.array([], _KEY)]
        self._offsets: list[Ints] = [np.empty(0, np.int64)]
        """The first of each are the keys that are known, each once; what follows waits."""
        self._waiting = 0
        self.records = 0
        self.without_key = 0

    def note(self, rows: pa.RecordBatch) -> None:
        """
        Take the columns ``key`` and ``offset`` of *rows*.
        """
        with_key = rows.filter(rows.column("key").is_valid())
        self.records += rows.num_rows
        self.without_key += rows.num_rows - with_key.num_rows
        self._keys.append(with_key.column("key").cast(_KEY))
        self._offsets.append(with_key.column("offset").to_numpy())
        self._waiting += with_key.num_rows
        # As many as are known already: so each is merged a few times, however many there are.
        if self._waiting >= max(_MERGE_ROWS, len(self._keys[0])):
            self._merge()

    def _merge(self) -> None:
        encoded = pa.concat_arrays(self._keys).dictionary_encode()
        latest = np.empty(len(encoded.dictionary), np.int64)
        # Of those that are assigned to the same place, the last one stays.
        latest[encoded.indices.to_numpy()] = np.concatenate(self._offsets)
        self._keys, self._offsets, self._waiting = [encoded.dictionary], [latest], 0

    def sorted(self) -> Ints:
        """
        The offsets that stay, as long as tombstones do.
        """
        self._merge()
        offsets: Ints = np.sort(self._offsets[0])
        return offsets


def only(rows: pa.RecordBatch, stays: Ints) -> pa.RecordBatch:
    """
    Those of *rows* whose offsets are among *stays*, which are sorted.
    """
    if not len(stays):
        return rows.slice(0, 0)
    offsets = rows.column("offset").to_numpy()
    slots = np.minimum(np.searchsorted(stays, offsets), len(stays) - 1)
    return rows.filter(pa.array(stays[slots] == offsets))
