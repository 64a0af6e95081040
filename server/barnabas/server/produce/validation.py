"""
What a produce request may carry for a partition: one whole batch of format version 2.

These are the checks that Kafka makes before the log sees the records
(``ProduceRequest.validateRecords``). What is in the batch is checked by the log.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from struct import Struct
from typing import Final

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.errors import InvalidRecord, UnknownServerError, UnsupportedCompressionType
from barnabas.protocol.records.batch import (
    ATTRIBUTES_AT,
    COMPRESSION_MASK,
    HEADER_SIZE,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    MAGIC_END,
    TRANSACTIONAL_FLAG,
    batch_size,
)

ZSTD: Final = 4
FIRST_ZSTD_VERSION: Final = 7
LARGEST_LENGTH: Final = 2**31 - 1 - LOG_OVERHEAD

_SHAPE: Final = Struct(f">{LENGTH_AT}xi{MAGIC_AT - LOG_OVERHEAD}xb{ATTRIBUTES_AT - MAGIC_AT - 1}xh")
"""Length, magic, attributes."""


def check_records(records: Buffer | None, version: int) -> memoryview:
    """
    Let through one batch, with or without the beginning of another behind it.

    Raises:
        InvalidRecord: there is no whole batch, or another behind it, or it is of an old format.
        CorruptMessage: the framing of the batches is broken.
        UnknownServerError: the size of the batch does not fit into an int32, where Kafka fails.
        UnsupportedCompressionType: zstd before version 7 of the API.
    """
    if records is None:
        raise InvalidRecord(f"Produce v{version} must have records for each partition")
    if not isinstance(records, memoryview):
        records = memoryview(records)
    end = len(records)
    if end >= HEADER_SIZE:
        length, magic, attributes = _SHAPE.unpack_from(records)
        if (
            magic == MAGIC
            and length == end - LOG_OVERHEAD
            and (version >= FIRST_ZSTD_VERSION or attributes & COMPRESSION_MASK < ZSTD)
        ):
            return records  # one whole batch, as nearly always
    size = _first_batch_size(records)
    if not size:
        raise InvalidRecord(f"Produce v{version} must have at least one batch per partition")
    if records[MAGIC_AT] != MAGIC:
        raise InvalidRecord(f"Produce v{version} takes batches of format 2 only")
    if version < FIRST_ZSTD_VERSION and records[ATTRIBUTES_AT + 1] & COMPRESSION_MASK == ZSTD:
        raise UnsupportedCompressionType(f"Produce v{version} may not use zstd")
    if end != size and batch_size(records, size, end):
        raise InvalidRecord(f"Produce v{version} takes exactly one batch per partition")
    return records


def is_transactional(records: Buffer | None) -> bool:
    """
    Whether there is a whole first batch, and it belongs to a transaction.

    Raises:
        CorruptMessage: the framing of the first batch is broken.
        UnknownServerError: the size of the batch does not fit into an int32, where Kafka fails.
    """
    if records is None:
        return False
    view = records if isinstance(records, memoryview) else memoryview(records)
    end = len(view)
    if end >= HEADER_SIZE:
        length, magic, attributes = _SHAPE.unpack_from(view)
        if magic == MAGIC and length == end - LOG_OVERHEAD:
            return bool(attributes & TRANSACTIONAL_FLAG)
    return (
        _first_batch_size(view) > 0
        and view[MAGIC_AT] == MAGIC
        and view[ATTRIBUTES_AT + 1] & TRANSACTIONAL_FLAG != 0
    )


def check_codec(records: Buffer | None) -> None:
    """
    Let through a batch whose codec exists, and what ``check_records`` refuses. Kafka looks for zstd
    before version 7 of the API, and fails at a codec that does not exist.

    Raises:
        UnknownServerError: the first batch is whole and has a codec that does not exist.
    """
    if records is None:
        return
    view = records if isinstance(records, memoryview) else memoryview(records)
    if _first_batch_size(view) > 0 and view[MAGIC_AT] == MAGIC:
        codec = view[ATTRIBUTES_AT + 1] & COMPRESSION_MASK
        if codec > ZSTD:
            raise UnknownServerError(f"There is no codec {codec}")


def _first_batch_size(records: memoryview) -> int:
    """
    Bytes of the first batch, 0 if not all of it is there.
    """
    end = len(records)
    size = batch_size(records, 0, end)
    if not size and end >= MAGIC_END:
        length = int.from_bytes(records[LENGTH_AT:LOG_OVERHEAD])
        if length > LARGEST_LENGTH:
            raise UnknownServerError(f"A batch cannot have {length} bytes")
    return size
