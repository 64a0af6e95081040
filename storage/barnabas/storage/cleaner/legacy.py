"""
Cleaning messages of the format versions 0 and 1.

Their records that stay are written as a batch of the current format, so that a compacted log loses
its old messages one after the other. They have no delete horizon: their tombstones are removed by
the time of the last write to their segment (Kafka's Cleaner and MemoryRecords.filterTo).
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.records.batch import LegacyBatch, build_batch_with_offsets
from barnabas.protocol.records.record import Record
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.cleaner.offset_map import OffsetMap
from barnabas.storage.threads.decompressed import BudgetShare

RECORD_BYTES: Final = 300
"""About the memory of a record beside its key and value."""
WRITTEN: Final = 2
"""How often a key and a value are in memory: in their record, and in the batch that is written."""


class LegacyRetention(NamedTuple):
    """
    The records that stay of a message, or of those in a wrapper.
    """

    messages_read: int
    invalid: int
    """Records that are removed because they have no key."""
    kept: list[Record]


def look_at_legacy(
    batch: LegacyBatch, offset_map: OffsetMap, share: BudgetShare, *, keep_tombstones: bool
) -> LegacyRetention:
    """
    Find out which records stay.

    Args:
        share: counts those that do.

    Raises:
        InvalidRecord: the records are not whole or not consistent.
        CorruptCompressedData: the compressed stream is broken.
    """
    latest = int(offset_map.latest_offset)
    read = invalid = 0
    kept: list[Record] = []
    for record in batch.records():
        read += 1
        if record.offset > latest:
            stays = True
        elif record.key is None:
            stays = False
            invalid += 1
        else:
            stays = (record.value is not None or keep_tombstones) and record.offset >= int(
                offset_map.get(record.key)
            )
        if stays:
            size = len(record.key or b"") + len(record.value or b"")
            share.take(RECORD_BYTES + WRITTEN * size)
            kept.append(record)
    return LegacyRetention(read, invalid, kept)


def rebuild_legacy(batch: LegacyBatch, kept: list[Record], horizon_ms: int | None) -> bytearray:
    """
    A batch of the current format with the *kept* records.

    Args:
        horizon_ms: the time from which on tombstones among them may be removed; None for never.
    """
    has_tombstones = any(record.value is None for record in kept)
    return build_batch_with_offsets(
        kept,
        base_offset=kept[0].offset,
        compression=batch.compression,
        log_append_time=batch.max_timestamp if batch.timestamp_type else None,
        delete_horizon_ms=horizon_ms if has_tombstones else None,
    )
