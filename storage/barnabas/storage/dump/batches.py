"""
Batches of all versions as Apache Kafka's tool reads them, broken ones included.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import InvalidRecord, OutOfBounds
from barnabas.protocol.records.batch import (
    COMPRESSION_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    RecordBatch,
    TimestampType,
)
from barnabas.protocol.records.batch.legacy import LegacyRecord
from barnabas.protocol.records.record import RecordReader
from barnabas.protocol.records.varints import int64
from barnabas.storage.dump.failure import ILLEGAL_ARGUMENT, DumpFailure
from barnabas.storage.dump.files import FileBatch
from barnabas.storage.dump.streams import decompressed

_LEGACY_HEADER_SIZES: Final = {0: 6, 1: 14}
_TIMESTAMP_NAMES: Final = {
    None: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


def timestamp_name(record: RecordBatch | LegacyRecord) -> str:
    return _TIMESTAMP_NAMES[record.timestamp_type]


def codec_name(record: RecordBatch | LegacyRecord) -> str:
    """
    Raises:
        UnknownCompression: no codec has this number.
    """
    return CompressionType.of(record.attributes & COMPRESSION_MASK).name.lower()


class DumpedBatch(RecordBatch):
    """
    A batch of version 2, or of a later one, which Kafka's tool reads in the same way.
    """

    __slots__ = ()

    @property
    def last_offset(self) -> int:
        return int64(self.base_offset + self.last_offset_delta)

    def is_valid(self) -> bool:
        """
        Whether the batch is not smaller than its header, and its checksum is right.
        """
        return self.size >= HEADER_SIZE and super().is_valid()

    def reader(self) -> RecordReader:
        """
        A reader of the records. If they are compressed, all have been read once without an error.

        Raises:
            InvalidRecord, DumpFailure: the records are broken. The reader raises it if they are not
                compressed.
        """
        if self.size < HEADER_SIZE:
            raise OutOfBounds
        compressed = self.codec != 0 and self.record_count != 0
        data = b""
        if compressed:
            data = decompressed(self.compression, self.payload)
        elif self.record_count:
            data = bytes(self.payload)
        if self.record_count < 0:
            raise InvalidRecord(
                f"Found invalid record count {self.record_count} in magic v{self.magic} batch"
            )
        if compressed:
            whole = self._reader(data)
            while whole.advance():
                pass
        return self._reader(data)

    def _reader(self, data: bytes) -> RecordReader:
        log_append_time = self.attributes & LOG_APPEND_TIME_FLAG
        return RecordReader(
            data,
            self.record_count,
            base_offset=self.base_offset,
            base_timestamp=self.base_timestamp,
            base_sequence=self.base_sequence,
            log_append_time=self.max_timestamp if log_append_time else None,
            streamed=self.codec != 0,
        )


def read_batch(found: FileBatch) -> DumpedBatch:
    """
    Raises:
        DumpFailure: the file ends before the header does.
    """
    found.read(HEADER_SIZE)
    view = found.read(max(found.size, HEADER_SIZE))
    return DumpedBatch._make((*HEADER.unpack_from(view), view, 0))


def read_message(found: FileBatch) -> LegacyRecord:
    """
    The message of version 0 or 1 that is a batch of its own.

    Raises:
        DumpFailure: no version has this number.
    """
    if found.magic not in _LEGACY_HEADER_SIZES:
        raise DumpFailure(ILLEGAL_ARGUMENT, f"Invalid magic used in LegacyRecord: {found.magic}")
    found.read(LOG_OVERHEAD + _LEGACY_HEADER_SIZES[found.magic])
    return LegacyRecord(found.offset, found.read(found.size)[LOG_OVERHEAD:])


def last_offset(found: FileBatch) -> int:
    """
    Raises:
        DumpFailure: the file ends before the header of the batch does.
    """
    if found.magic < 2:
        return found.offset
    base_offset, _, _, _, _, _, delta, *_ = HEADER.unpack_from(found.read(HEADER_SIZE))
    return int64(base_offset + delta)
