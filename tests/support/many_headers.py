"""
A batch whose one record has very many headers.
"""

from __future__ import annotations

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import RecordBatch, read_batch, seal_batch
from barnabas.protocol.records.varints import append_varint


def headers_batch(count: int, codec: CompressionType, timestamp: int = 0) -> bytearray:
    """
    The bytes of a batch with one record, which has *count* headers without name and value.
    """
    body = bytearray(b"\0\0\0\1\1")  # attributes, deltas, no key, no value
    append_varint(body, count)
    body += b"\0\1" * count
    records = bytearray()
    append_varint(records, len(body))
    return seal_batch(
        records + body,
        1,
        base_offset=0,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        compression=codec,
    )


def batch_with_headers(count: int, codec: CompressionType) -> RecordBatch:
    return read_batch(memoryview(headers_batch(count, codec)))
