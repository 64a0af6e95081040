"""
Record batches of format version 2, as they travel and as they lie in a segment.

::

     0  int64   base offset             27  int64   base timestamp (or the delete horizon)
     8  int32   length = size - 12      35  int64   max timestamp
    12  int32   partition leader epoch  43  int64   producer id
    16  int8    magic = 2               51  int16   producer epoch
    17  uint32  CRC-32C of [21, size)   53  int32   base sequence
    21  int16   attributes              57  int32   record count
    23  int32   last offset delta       61  ...     records, plain or one compressed stream

    attributes: bits 0-2 codec, 3 log append time, 4 transactional, 5 control, 6 delete horizon

The broker writes base offset and leader epoch over what the producer sent; the checksum begins
behind them so that it stays as it was. Everything here works on the caller's buffer: a batch is
read and changed in place. ``records`` reads its content.

``legacy`` describes the messages of old brokers.
"""

from __future__ import annotations

from barnabas.protocol.records.batch.build import (
    BatchOptions,
    build_batch,
    build_batch_with_offsets,
    control_batch,
    seal_batch,
)
from barnabas.protocol.records.batch.layout import (
    ATTRIBUTES_AT,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    CRC_AT,
    DELETE_HORIZON_FLAG,
    HEADER,
    HEADER_SIZE,
    KNOWN_ATTRIBUTES,
    LEADER_EPOCH_AT,
    LENGTH_AT,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    MAGIC_END,
    MAX_TIMESTAMP_AT,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    SMALLEST_LENGTH,
    TRANSACTIONAL_FLAG,
    TimestampType,
    assign,
    set_max_timestamp,
)
from barnabas.protocol.records.batch.legacy import LegacyBatch, read_legacy_batch
from barnabas.protocol.records.batch.sequence import batches, stored_batch
from barnabas.protocol.records.batch.view import RecordBatch, batch_size, read_batch
from barnabas.protocol.records.record import (
    LAST_SEQUENCE,
    NO_SEQUENCE,
    decrement_sequence,
    increment_sequence,
)

__all__ = [
    "ATTRIBUTES_AT",
    "COMPRESSION_MASK",
    "CONTROL_FLAG",
    "CRC_AT",
    "DELETE_HORIZON_FLAG",
    "HEADER",
    "HEADER_SIZE",
    "KNOWN_ATTRIBUTES",
    "LAST_SEQUENCE",
    "LEADER_EPOCH_AT",
    "LENGTH_AT",
    "LOG_APPEND_TIME_FLAG",
    "LOG_OVERHEAD",
    "MAGIC",
    "MAGIC_AT",
    "MAGIC_END",
    "MAX_TIMESTAMP_AT",
    "NO_PARTITION_LEADER_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "SMALLEST_LENGTH",
    "TRANSACTIONAL_FLAG",
    "BatchOptions",
    "LegacyBatch",
    "RecordBatch",
    "TimestampType",
    "assign",
    "batch_size",
    "batches",
    "build_batch",
    "build_batch_with_offsets",
    "control_batch",
    "decrement_sequence",
    "increment_sequence",
    "read_batch",
    "read_legacy_batch",
    "seal_batch",
    "set_max_timestamp",
    "stored_batch",
]
