"""
The headers of batches in a slice that was found by a read.

A consumer gets the bytes and looks at the headers itself. For share groups the broker has to: a
member acquires offsets, and what it is sent begins and ends with the batches that have them.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from struct import Struct
from typing import Final

from barnabas.protocol.records.batch import (
    CONTROL_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    NO_PRODUCER_ID,
    SMALLEST_LENGTH,
    TRANSACTIONAL_FLAG,
    RecordBatch,
    batches,
    read_legacy_batch,
)
from barnabas.protocol.records.control import ControlRecordType
from barnabas.storage.errors import CorruptRecord
from barnabas.storage.segment.fetch_data import FileSlice

_HEADER: Final = Struct(">qi4xb4xhi16xq")
"""Base offset, length, magic, attributes, last offset delta, producer id."""
_CHUNK: Final = 4 * 1024


class FetchedBatch:
    """
    A batch in a slice: its offsets, and where it is in the file.
    """

    __slots__ = (
        "base_offset",
        "is_abort_marker",
        "is_transactional",
        "last_offset",
        "position",
        "producer_id",
        "size",
    )

    def __init__(
        self,
        base_offset: int,
        last_offset: int,
        *,
        position: int = 0,
        size: int = 0,
        producer_id: int = NO_PRODUCER_ID,
        is_transactional: bool = False,
        is_abort_marker: bool = False,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.position = position
        self.size = size
        self.producer_id = producer_id
        self.is_transactional = is_transactional
        self.is_abort_marker = is_abort_marker

    def __repr__(self) -> str:
        return f"<FetchedBatch {self.base_offset}-{self.last_offset}>"


def fetched_batches(
    records: FileSlice, *, last_known: int, most: int, nowait: bool = False
) -> list[FetchedBatch]:
    """
    The whole batches of a slice, up to the one with the offset *most* behind *last_known*.

    Raises:
        CorruptRecord: there is no batch where one should begin.
        WouldBlock: with *nowait*, the page cache lacks bytes that have to be looked at.
        KafkaStorageError: the disk failed, or the log was closed since.
    """
    file, position, size = records
    end = position + size
    found: list[FetchedBatch] = []
    last_wanted = -1
    chunk: bytes | bytearray = b""
    chunk_at = position
    while position + LOG_OVERHEAD <= end:
        at = position - chunk_at
        if at + _HEADER.size > len(chunk):
            # Behind a batch that is larger than a chunk, only the next header.
            wanted = _HEADER.size if at > _CHUNK else _CHUNK
            chunk = file.read(position, wanted, nowait=nowait)
            if len(chunk) < _HEADER.size:
                chunk = chunk.ljust(_HEADER.size, b"\0")
            chunk_at, at = position, 0
        base_offset, length, magic, attributes, delta, producer_id = _HEADER.unpack_from(chunk, at)
        if length < SMALLEST_LENGTH:
            raise CorruptRecord(
                f"Found record size {length} smaller than the smallest one",
                path=file.path,
                position=position,
            )
        length += LOG_OVERHEAD
        if position + length > end:
            break
        if magic < MAGIC:
            batch = _whole(FileSlice(file, position, length), nowait)
            found.append(
                FetchedBatch(batch.base_offset, batch.last_offset, position=position, size=length)
            )
        else:
            found.append(
                FetchedBatch(
                    base_offset,
                    base_offset + delta,
                    position=position,
                    size=length,
                    producer_id=producer_id,
                    is_transactional=bool(attributes & TRANSACTIONAL_FLAG),
                    is_abort_marker=bool(attributes & CONTROL_FLAG)
                    and _is_abort_marker(FileSlice(file, position, length), nowait),
                )
            )
        if last_wanted < 0:
            last_wanted = max(last_known, found[0].base_offset) + most
        if found[-1].last_offset >= last_wanted:
            break
        position += length
    return found


def _whole(records: FileSlice, nowait: bool) -> RecordBatch:
    data = memoryview(records.read(nowait=nowait))
    if data[MAGIC_AT] < MAGIC:
        return read_legacy_batch(data)
    (batch,) = batches(data)
    return batch


def _is_abort_marker(records: FileSlice, nowait: bool) -> bool:
    for record in _whole(records, nowait).records(most_headers=0):
        return ControlRecordType.of(record.key) is ControlRecordType.ABORT
    return False
