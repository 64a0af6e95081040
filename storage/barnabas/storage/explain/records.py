"""
The record at an offset, and the later records of its key in a compacted log.
"""

from __future__ import annotations

from itertools import islice

from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.control import ControlRecordType
from barnabas.protocol.records.record import Record
from barnabas.protocol.structs import struct
from barnabas.storage.errors import KafkaError
from barnabas.storage.explain.lookup import OffsetPath
from barnabas.storage.log.log import Log


@struct
class RecordAt:
    """
    The batch for an offset, and the record in it.
    """

    batch: RecordBatch
    record: Record | None
    """None if compaction has removed it, or the batch cannot be read."""
    flaw: str | None
    """Why the batch cannot be read."""
    control_type: str | None
    """The type of a control record."""
    is_aborted: bool
    """Whether it belongs to an aborted transaction."""
    is_undecided: bool
    """Whether it is not below the last stable offset."""
    later: LaterValues | None
    """None if the log is not compacted, or the record has no key."""

    @property
    def is_tombstone(self) -> bool:
        return self.record is not None and self.record.value is None and not self.batch.is_control


@struct
class LaterValues:
    """
    The later records of the same key.
    """

    count: int
    last_offset: int | None
    last_is_tombstone: bool
    is_cleanable: bool
    """Whether a cleaning would read one of them now."""
    unreadable_batches: int
    """The number of batches that may have more of them."""


def record_at(log: Log, path: OffsetPath, uncleanable_offset: int | None) -> RecordAt:
    """
    Args:
        uncleanable_offset: the end of the next cleaning; None if the log is not compacted.

    Raises:
        CorruptRecord: the bytes at the position of a batch are not a batch.
    """
    batch = next(path.segment.log.batches(path.position))
    found, flaw = None, None
    try:
        # The sizes come first: a batch without the record is not held in memory.
        for index, outline in enumerate(batch.outlines()):
            if outline.offset == path.offset:
                found = next(islice(batch.records(), index, None))
                break
    except KafkaError as error:
        flaw = str(error) or type(error).__name__
    control_type = None
    if found is not None and batch.is_control:
        control_type = ControlRecordType.of(found.key).name
    later = None
    key = None if found is None or batch.is_control else found.key
    if key is not None and uncleanable_offset is not None:
        later = _later_values(log, path, key, uncleanable_offset)
    return RecordAt(
        batch,
        found,
        flaw,
        control_type,
        is_aborted=_is_aborted(log, path.offset, batch),
        is_undecided=path.offset >= log.last_stable_offset,
        later=later,
    )


def _is_aborted(log: Log, offset: int, batch: RecordBatch) -> bool:
    if not batch.is_transactional or batch.is_control:
        return False
    return any(
        txn.producer_id == batch.producer_id and txn.first_offset <= offset <= txn.last_offset
        for txn in log.collect_aborted_transactions(offset, offset + 1)
    )


def _later_values(log: Log, path: OffsetPath, key: bytes, uncleanable_offset: int) -> LaterValues:
    count, unreadable, is_tombstone = 0, 0, False
    first: int | None = None
    last: int | None = None
    for segment in (path.segment, *log.segments.higher_segments(path.segment.base_offset)):
        start = path.position if segment is path.segment else 0
        for batch in segment.log.batches(start):
            if batch.is_control:
                continue
            try:
                # Only numbers are kept: a key may have very many records.
                for record in batch.records():
                    if record.key == key and record.offset > path.offset:
                        count += 1
                        first = record.offset if first is None else first
                        last, is_tombstone = record.offset, record.value is None
            except KafkaError:
                unreadable += 1
    is_cleanable = first is not None and first < uncleanable_offset
    return LaterValues(count, last, is_tombstone, is_cleanable, unreadable)
