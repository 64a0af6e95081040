"""
The record at an offset, and the later records of its key in a compacted log.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from barnabas.protocol.compression import LARGEST_BYTES
from barnabas.protocol.records.batch import HEADER_SIZE, MAGIC, MAGIC_AT, RecordBatch, read_batch
from barnabas.protocol.records.control import ControlRecordType
from barnabas.protocol.records.record import Record
from barnabas.protocol.structs import struct
from barnabas.storage.errors import CorruptRecord, KafkaError
from barnabas.storage.explain.lookup import OffsetPath
from barnabas.storage.log.log import Log
from barnabas.storage.segment.segment import LogSegment


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


def record_at(
    log: Log, path: OffsetPath, uncleanable_offset: int | None, most_bytes: int = LARGEST_BYTES
) -> RecordAt:
    """
    Args:
        uncleanable_offset: the end of the next cleaning; None if the log is not compacted.
        most_bytes: that a batch, and its records without compression, may have to be read.

    Raises:
        CorruptRecord: the bytes at the position of a batch are not a batch.
    """
    found = flaw = None
    if path.size > most_bytes:
        batch = _header_at(path)
        flaw = f"it has {path.size} bytes, and only {most_bytes} are read"
    else:
        batch = next(path.segment.log.batches(path.position))
        try:
            # The sizes come first: a batch without the record is not held in memory.
            for index, outline in enumerate(batch.outlines(most_bytes)):
                if outline.offset == path.offset:
                    found = next(islice(batch.records(most_bytes), index, None))
                    break
        except KafkaError as error:
            flaw = str(error) or type(error).__name__
    control_type = None
    if found is not None and batch.is_control:
        control_type = ControlRecordType.of(found.key).name
    later = None
    key = None if found is None or batch.is_control else found.key
    if key is not None and uncleanable_offset is not None:
        later = _later_values(log, path, key, uncleanable_offset, most_bytes)
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


def _header_at(path: OffsetPath) -> RecordBatch:
    """
    The header of a batch, without its records.

    Raises:
        CorruptRecord: the batch is of an old format, whose header says too little.
    """
    data = path.segment.log.slice(path.position, min(path.size, HEADER_SIZE)).read()
    if data[MAGIC_AT] != MAGIC:
        raise CorruptRecord(
            f"a message of an old format with {path.size} bytes is not read",
            path=path.segment.log.path,
            position=path.position,
        )
    return read_batch(memoryview(data))


def _batches(segment: LogSegment, start: int, most_bytes: int) -> Iterator[RecordBatch | None]:
    """
    Yield the batches of a segment from the position *start* on, and None for a larger one.
    """
    if most_bytes >= LARGEST_BYTES:
        yield from segment.log.batches(start)
        return
    for header in segment.log.headers(start):
        yield None if header.size > most_bytes else segment.log.batch_at(header)


def _later_values(
    log: Log, path: OffsetPath, key: bytes, uncleanable_offset: int, most_bytes: int
) -> LaterValues:
    count, unreadable, is_tombstone = 0, 0, False
    first: int | None = None
    last: int | None = None
    for segment in (path.segment, *log.segments.higher_segments(path.segment.base_offset)):
        start = path.position if segment is path.segment else 0
        for batch in _batches(segment, start, most_bytes):
            if batch is None:
                unreadable += 1
                continue
            if batch.is_control:
                continue
            try:
                # Only numbers are kept: a key may have very many records.
                for record in batch.records(most_bytes):
                    if record.key == key and record.offset > path.offset:
                        count += 1
                        first = record.offset if first is None else first
                        last, is_tombstone = record.offset, record.value is None
            except KafkaError:
                unreadable += 1
    is_cleanable = first is not None and first < uncleanable_offset
    return LaterValues(count, last, is_tombstone, is_cleanable, unreadable)
