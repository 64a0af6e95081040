"""
Batches made by the broker: of coordinators, markers, compaction, and in tests.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final, TypedDict, Unpack

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.compression import CompressionType, compress
from barnabas.protocol.records.batch.layout import (
    ATTRIBUTES_AT,
    CONTROL_FLAG,
    CRC_AT,
    DELETE_HORIZON_FLAG,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
)
from barnabas.protocol.records.crc32c import crc32c
from barnabas.protocol.records.record import NO_SEQUENCE, Record, SimpleRecord, encode_records

_UINT32: Final = Struct(">I")
_CONTROL_KEY: Final = Struct(">hh")


class BatchOptions(TypedDict, total=False):
    """
    The header fields of a batch. The defaults are those of a plain producer.
    """

    partition_leader_epoch: int
    compression: CompressionType
    compression_level: int | None
    log_append_time: int | None
    """The one timestamp of all records, in ms; None for those that they bring."""
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    delete_horizon_ms: int | None


def build_batch(
    records: Iterable[SimpleRecord], *, base_offset: int = 0, **options: Unpack[BatchOptions]
) -> bytearray:
    """
    A batch of *records*, numbered from *base_offset* on.
    """
    numbered = [
        Record(offset, timestamp, key, value, headers)
        for offset, (timestamp, key, value, headers) in enumerate(records, base_offset)
    ]
    return build_batch_with_offsets(numbered, base_offset=base_offset, **options)


def build_batch_with_offsets(
    records: Iterable[Record],
    *,
    base_offset: int,
    last_offset: int | None = None,
    **options: Unpack[BatchOptions],
) -> bytearray:
    """
    A batch of *records* that keep their offsets, from *base_offset* to *last_offset*.

    A batch from which compaction took records covers the same offsets as before. *last_offset* is
    that of the last record unless it is given.

    The base timestamp is the first record's, or the delete horizon, as Kafka's
    MemoryRecordsBuilder has it.
    """
    records = list(records)
    if last_offset is None:
        last_offset = records[-1].offset if records else base_offset - 1
    base_timestamp = options.get("delete_horizon_ms")
    if base_timestamp is None:
        base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    return seal_batch(
        encode_records(records, base_offset, base_timestamp),
        len(records),
        base_offset=base_offset,
        last_offset_delta=last_offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max((record.timestamp for record in records), default=NO_TIMESTAMP),
        **options,
    )


def seal_batch(
    payload: Buffer,
    record_count: int,
    *,
    base_offset: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    **options: Unpack[BatchOptions],
) -> bytearray:
    """
    A batch around records that are encoded already, but not compressed.
    """
    codec = options.get("compression", CompressionType.NONE)
    log_append_time = options.get("log_append_time")
    if codec:
        payload = compress(codec, payload, options.get("compression_level"))
    batch = bytearray(HEADER_SIZE + len(payload))
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LOG_OVERHEAD,
        options.get("partition_leader_epoch", NO_PARTITION_LEADER_EPOCH),
        MAGIC,
        0,
        codec | _flags(options),
        last_offset_delta,
        base_timestamp,
        max_timestamp if log_append_time is None else log_append_time,
        options.get("producer_id", NO_PRODUCER_ID),
        options.get("producer_epoch", NO_PRODUCER_EPOCH),
        options.get("base_sequence", NO_SEQUENCE),
        record_count,
    )
    batch[HEADER_SIZE:] = payload
    _UINT32.pack_into(batch, CRC_AT, crc32c(memoryview(batch)[ATTRIBUTES_AT:]))
    return batch


def _flags(options: BatchOptions) -> int:
    return (
        (options.get("log_append_time") is not None) * LOG_APPEND_TIME_FLAG
        | options.get("is_transactional", False) * TRANSACTIONAL_FLAG
        | options.get("is_control", False) * CONTROL_FLAG
        | (options.get("delete_horizon_ms") is not None) * DELETE_HORIZON_FLAG
    )


def control_batch(
    control_type: int,
    value: bytes,
    timestamp: int,
    *,
    base_offset: int = 0,
    **options: Unpack[BatchOptions],
) -> bytearray:
    """
    A batch with the one control record *control_type*, whose key is its version (0) and its type.

    See ``control_records`` for the types and their values.
    """
    record = SimpleRecord(timestamp, _CONTROL_KEY.pack(0, control_type), value)
    options["is_control"] = True
    return build_batch([record], base_offset=base_offset, **options)
