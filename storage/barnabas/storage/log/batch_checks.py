"""
The checks of batches before they are appended: framing, size, checksum, and offsets
(Kafka's ``analyzeAndValidateRecords``). ``validator`` checks the records in them.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import CorruptMessage, InvalidRecord, MessageTooLarge
from barnabas.protocol.records.batch import (
    ATTRIBUTES_AT,
    COMPRESSION_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    RecordBatch,
    batch_size,
    read_batch,
)
from barnabas.protocol.records.crc32c import crc32c
from barnabas.storage.errors import OffsetsOutOfOrder
from barnabas.storage.producers.append_origin import AppendOrigin

# A member of an enum takes as long to look up as a call, in each batch.
_CLIENT: Final = AppendOrigin.CLIENT
_RAFT_LEADER: Final = AppendOrigin.RAFT_LEADER
_LAST_CODEC: Final = int(CompressionType.ZSTD)

_new_tuple: Final[Callable[..., RecordBatch]] = tuple.__new__
"""The function under ``RecordBatch._make``, which takes twice the time."""


def check_batches(
    records: memoryview,
    partition: object,
    *,
    origin: AppendOrigin,
    leader_epoch: int,
    max_batch_size: int,
) -> list[RecordBatch]:
    """
    Look at the headers of the batches, and at their checksums.

    Bytes behind the last whole batch are left out.

    Args:
        leader_epoch: that of the appender; batches of the metadata log state the same one.
        max_batch_size: in bytes.

    Raises:
        CorruptMessage: framing or checksum is wrong.
        InvalidRecord: a client gives offsets, or the metadata log another epoch than it is in.
        MessageTooLarge: a batch is larger than allowed.
        UnknownCompression: a batch names a codec that does not exist.
    """
    found: list[RecordBatch] = []
    position, end = 0, len(records)
    while position < end and (batch := _next_batch(records, position, end)):
        size = LOG_OVERHEAD + batch.batch_length
        if origin is _CLIENT:
            if batch.base_offset != 0:
                raise InvalidRecord(
                    f"The baseOffset of the record batch in the append to {partition} should be 0, "
                    f"but it is {batch.base_offset}"
                )
        elif origin is _RAFT_LEADER and batch.partition_leader_epoch != leader_epoch:
            raise InvalidRecord(
                "Append from Raft leader did not set the batch epoch correctly, expected "
                f"{leader_epoch} but the batch has {batch.partition_leader_epoch}"
            )
        if size > max_batch_size:
            raise MessageTooLarge(
                f"The record batch size in the append to {partition} is {size} bytes which exceeds "
                f"the maximum configured value of {max_batch_size}."
            )
        if crc32c(records[position + ATTRIBUTES_AT : position + size]) != batch.crc:
            raise CorruptMessage(
                f"Record is corrupt (stored crc = {batch.crc}) in topic partition {partition}."
            )
        if batch.attributes & COMPRESSION_MASK > _LAST_CODEC:
            CompressionType.of(batch.codec)
        found.append(batch)
        position += size
    return found


def _next_batch(records: memoryview, position: int, end: int) -> RecordBatch | None:
    """
    The batch at *position*, or None if there is no whole one.

    Raises:
        CorruptMessage: the framing is wrong.
    """
    if end - position >= HEADER_SIZE:
        header = HEADER.unpack_from(records, position)
        if header[3] == MAGIC and HEADER_SIZE <= header[1] + LOG_OVERHEAD <= end - position:
            return _new_tuple(RecordBatch, (*header, records, position))
    # Something is wrong, or missing; Kafka has an order in which it finds out.
    size = batch_size(records, position, end)
    if 0 < size < HEADER_SIZE:
        raise CorruptMessage(
            f"Record batch is corrupt (the size {size} is smaller than the minimum allowed "
            f"overhead {HEADER_SIZE})"
        )
    return read_batch(records, position) if size else None


def check_order(batches: Sequence[RecordBatch], partition: object) -> None:
    """
    Raises:
        OffsetsOutOfOrder: the offsets that batches bring do not grow.
    """
    last_offsets = [batch.last_offset for batch in batches]
    if any(later <= earlier for earlier, later in pairwise(last_offsets)):
        raise OffsetsOutOfOrder(
            f"Out of order offsets found in append to {partition}: batches end at {last_offsets}"
        )
