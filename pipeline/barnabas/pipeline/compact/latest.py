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
import pyarrow.compute as pc

from barnabas.pipeline.varint_columns import Ints

_MERGE_ROWS: Final = 200_000
"""Those that wait are merged when they are so many, and as many as there are keys by then."""

# All keys of a partition together may have more bytes than an offset of 32 bits can count.
_SCHEMA: Final = pa.schema([("key", pa.large_binary()), ("offset", pa.int64())])


class LatestOffsets:
    """
    The latest offset of each key that was noted.

    It takes memory for each key: its bytes, and some 50 more.
    """

    def __init__(self) -> None:
        self._known = _SCHEMA.empty_table()
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self.records = 0
        self.without_key = 0

    def note(self, rows: pa.RecordBatch) -> None:
        """
        Take the columns ``key`` and ``offset`` of *rows*.
        """
        table = pa.Table.from_batches([rows]).select(["key", "offset"])
        with_key = table.filter(pc.is_valid(table.column("key")))
        self.records += len(table)
        self.without_key += len(table) - len(with_key)
        self._waiting.append(with_key.cast(_SCHEMA))
        self._waiting_rows += len(with_key)
        # As many as are known already: so each is merged a few times, however many there are.
        if self._waiting_rows >= max(_MERGE_ROWS, len(self._known)):
            self._merge()

    def _merge(self) -> None:
        table = pa.concat_tables([self._known, *self._waiting])
        latest = table.group_by("key", use_threads=False).aggregate([("offset", "max")])
        columns = [latest.column("key"), latest.column("offset_max")]
        self._known = pa.table(columns, schema=_SCHEMA)
        self._waiting, self._waiting_rows = [], 0

    def sorted(self) -> Ints:
        """
        The offsets that stay, as long as tombstones do.
        """
        self._merge()
        offsets: Ints = np.sort(self._known.column("offset").to_numpy())
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
