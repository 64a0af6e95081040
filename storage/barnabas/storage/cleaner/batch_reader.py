"""
Reading all batches of a segment through a buffer of a limited size.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from barnabas.protocol.records.batch import (
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_END,
    RecordBatch,
    batches,
)
from barnabas.storage.errors import CorruptRecord
from barnabas.storage.segment.records import FileRecords

_INT32: Final = Struct(">i")


class ReadBatches(NamedTuple):
    """
    The bytes of one read, and the whole batches in them.
    """

    data: bytes
    batches: list[RecordBatch]


class BatchReader:
    """
    Reads segments piece by piece.

    Invariants:

    1. A read is not larger than the buffer, which grows only for a larger batch and only until the
       end of its segment (Kafka's Cleaner.growBuffersOrFail).
    """

    def __init__(
        self, buffer_bytes: int, max_buffer_bytes: int, throttle: Callable[[int], None]
    ) -> None:
        """
        Args:
            buffer_bytes: the size of a read.
            max_buffer_bytes: up to here it doubles; beyond, it is as large as one batch.
            throttle: called with the number of bytes that were read; it may block.
        """
        self._buffer_bytes = buffer_bytes
        self._max_buffer_bytes = max_buffer_bytes
        self._throttle = throttle

    def read(
        self, records: FileRecords, position: int = 0, *, max_message_bytes: int
    ) -> Iterator[ReadBatches]:
        """
        All batches from *position* on. Their checksums are not looked at.

        Raises:
            CorruptMessage: there is no batch where one should begin, or not all of it.
            KafkaStorageError: the disk failed.
        """
        buffer_bytes = self._buffer_bytes
        while position < records.size:
            data = bytes(records.slice(position, buffer_bytes).read())
            self._throttle(len(data))
            read = list(batches(data))
            if read:
                yield ReadBatches(data, read)
                position += read[-1].end
            else:
                left = records.size - position
                if len(data) < min(buffer_bytes, left):
                    left = len(data)  # The file is shorter than it was when it was opened.
                size = _size_of_first(data, records, position, left)
                largest = max(size, max_message_bytes, self._max_buffer_bytes)
                while buffer_bytes < size:
                    buffer_bytes = min(2 * buffer_bytes, largest)


def _size_of_first(data: bytes, records: FileRecords, position: int, left: int) -> int:
    """
    Bytes of a batch of which only a part was read, where the file has so many *left*.

    Raises:
        CorruptRecord: the segment does not have all of it.
    """
    if left < MAGIC_END:
        raise CorruptRecord(
            f"Could not determine next batch size for log segment {records.path} at position "
            f"{position}",
            path=records.path,
            position=position,
        )
    (length,) = _INT32.unpack_from(data, LENGTH_AT)
    size: int = length + LOG_OVERHEAD
    if size > left:
        raise CorruptRecord(
            f"Log segment may be corrupt, batch size {size} > {left} bytes left in segment for "
            f"log segment {records.path} at position {position}",
            path=records.path,
            position=position,
        )
    return size
