"""
Rebuilding a produced batch that cannot be stored as it came.

This happens where the topic has another codec than the producer used, or where compressed records
do not have the offset deltas 0, 1, 2, ... The new batch is that of Kafka's MemoryRecordsBuilder:
deltas from 0 on, the first record's timestamp as its base, no delete horizon, the same producer.

Records whose deltas are right already, and which look as Kafka writes them, are copied as one
piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.compression import CompressionType, decompress, decompress_chunks
from barnabas.protocol.errors import UnknownServerError
from barnabas.protocol.records.batch import (
    LOG_APPEND_TIME_FLAG,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    RecordBatch,
    seal_batch,
)
from barnabas.protocol.records.record import Record, encode_records
from barnabas.protocol.records.scan import WINDOW_BYTES, RecordScan
from barnabas.protocol.records.walk import RegularityWalk
from barnabas.storage.threads.decompressed import DECOMPRESSED, BudgetShare
from barnabas.storage.threads.turns import ThreadTurns, offered


def rebuild_batch(
    batch: RecordBatch,
    scan: RecordScan,
    *,
    codec: CompressionType,
    level: int | None,
    turns: ThreadTurns | None = None,
) -> bytearray:
    """
    The records of *batch* in a batch that begins with offset 0, with the timestamps they have.

    Args:
        scan: of the records, all of which are good.
        turns: offered to other threads.

    Raises:
        UnknownServerError: the producer or a timestamp of the batch is not valid.
            Kafka has no better answer either.
    """
    check_producer(batch)
    with DECOMPRESSED.share() as share:
        payload: Buffer | None = None
        if (
            scan.consecutive
            and scan.first_timestamp_delta == 0
            and not batch.attributes & LOG_APPEND_TIME_FLAG
        ):
            payload = _regular_records(batch, turns, share)
        return _rebuilt(batch, scan, payload, (codec, level), turns)


def _rebuilt(
    batch: RecordBatch,
    scan: RecordScan,
    payload: Buffer | None,
    compression: tuple[CompressionType, int | None],
    turns: ThreadTurns | None,
) -> bytearray:
    """
    Args:
        payload: the records as they are; None if each is to be written anew.
        compression: the codec and the level.
    """
    codec, level = compression
    base_timestamp = batch.base_timestamp
    if payload is None:
        # One by one: the objects of all of them would take a multiple of their bytes.
        records = _checked(batch.records() if turns is None else offered(batch.records(), turns))
        first = next(records)
        base_timestamp = first.timestamp
        payload = encode_records(chain([first], records), 0, base_timestamp)
    return seal_batch(
        payload,
        batch.record_count,
        base_offset=0,
        last_offset_delta=batch.record_count - 1,
        base_timestamp=base_timestamp,
        max_timestamp=scan.max_timestamp,
        compression=codec,
        compression_level=level,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
    )


def _decompress(batch: RecordBatch, turns: ThreadTurns | None, share: BudgetShare) -> Buffer:
    if turns is None or not batch.compression:
        return decompress(batch.compression, batch.payload)
    # To join hundreds of MiB at the end would be one step.
    payload = bytearray()
    for chunk in offered(decompress_chunks(batch.compression, batch.payload), turns):
        share.take(len(chunk))
        payload += chunk
    return payload


def check_producer(batch: RecordBatch) -> None:
    if batch.producer_id == NO_PRODUCER_ID:
        if batch.is_transactional:
            raise UnknownServerError(
                "Cannot write transactional messages without a valid producer ID"
            )
        return
    if batch.producer_epoch == NO_PRODUCER_EPOCH:
        raise UnknownServerError("Invalid negative producer epoch")
    if batch.base_sequence < 0 and not batch.is_control:
        raise UnknownServerError("Invalid negative sequence number used")


def _regular_records(
    batch: RecordBatch, turns: ThreadTurns | None, share: BudgetShare
) -> Buffer | None:
    """
    The records of *batch* as they are, or None if Kafka would write them in another way or not at
    all.
    """
    payload = _decompress(batch, turns, share)
    view = memoryview(payload)
    position, left, size = 0, batch.record_count, WINDOW_BYTES
    while left:
        if turns is not None:
            turns.offer()
        walk = RegularityWalk(bytes(view[position : position + size]), left)
        walk.step()
        least_timestamp = batch.base_timestamp + walk.least_timestamp_delta
        if not walk.all_regular or least_timestamp < NO_TIMESTAMP:
            return None
        position += walk.record_end
        left -= walk.walked
        size = max(WINDOW_BYTES, walk.next_size)
    return payload


def _checked(records: Iterable[Record]) -> Iterator[Record]:
    for offset, record in enumerate(records):
        if record.timestamp < NO_TIMESTAMP:
            raise UnknownServerError(f"Invalid negative timestamp {record.timestamp}")
        yield record._replace(offset=offset)
