"""
A batch whose one record has very many headers.
"""

from __future__ import annotations

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import RecordBatch, read_batch
from barnabas.protocol.records.varints import append_varint
from tests.support.record_bytes import sealed


def headers_batch(count: int, codec: CompressionType, timestamp: int = 0) -> bytearray:
    body = bytearray(b"\0\0\0\1\1")  # attributes, deltas, no key, no value
    append_varint(body, count)
    body += b"\0\1" * count
    records = bytearray()
    append_varint(records, len(body))
    return sealed(records + body, timestamp=timestamp, compression=codec)


def batch_with_headers(count: int, codec: CompressionType) -> RecordBatch:
    return read_batch(memoryview(headers_batch(count, codec)))
