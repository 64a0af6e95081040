"""
A batch as it is shown: its fields, whatever version it has, and its records.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from barnabas.protocol.records.batch import (
    COMPRESSION_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
)
from barnabas.protocol.records.crc32c import crc32c
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.dump.failure import (
    INVALID_RECORD,
    OUT_OF_BOUNDS,
    DumpFailure,
)
from barnabas.storage.dump.java_text import int64
from barnabas.storage.dump.log_slice import FileBatch
from barnabas.storage.dump.record_reader import RecordReader, increment_sequence
from barnabas.storage.dump.streams import codec_name, decompressed

_HEADER: Final = Struct(">qiibIhiqqqhii")
_CRC_FROM: Final = 21

CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"
NO_TIMESTAMP_TYPE: Final = "NoTimestampType"


class BatchView(NamedTuple):
    """
    The header of a batch of version 2, or of a later one, which Kafka's tool reads in the same way.
    """

    batch: FileBatch
    base_offset: int
    partition_leader_epoch: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        return int64(self.base_offset + self.last_offset_delta)

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None

    @property
    def timestamp_name(self) -> str:
        return LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_FLAG else CREATE_TIME

    @property
    def codec_name(self) -> str:
        """
        Raises:
            DumpFailure: there is no codec of this number.
        """
        return codec_name(self.attributes)

    def is_valid(self) -> bool:
        """
        Whether the batch is as large as its header at least, and fits its checksum.
        """
        size = self.batch.size
        return size >= HEADER_SIZE and self.crc == crc32c(self.batch.read(size)[_CRC_FROM:])

    def records(self) -> RecordReader:
        """
        A reader of the records; all of a compressed batch were read once already.

        Raises:
            DumpFailure: as Kafka fails on them; of a batch that is not compressed, the reader does.
        """
        if self.batch.size < HEADER_SIZE:
            raise DumpFailure(OUT_OF_BOUNDS)
        payload = self.batch.read(self.batch.size)[HEADER_SIZE:]
        compressed = self.attributes & COMPRESSION_MASK != 0 and self.record_count != 0
        if compressed:
            data = decompressed(self.attributes, payload)
        else:
            data = bytes(payload) if self.record_count else b""
        if self.record_count < 0:
            raise DumpFailure(
                INVALID_RECORD,
                f"Found invalid record count {self.record_count} in magic v{self.batch.magic} "
                "batch",
            )
        if compressed:
            whole = self._reader(data, streamed=True)
            while whole.advance():
                pass
        return self._reader(data, streamed=compressed)

    def _reader(self, data: bytes, *, streamed: bool) -> RecordReader:
        log_append_time = self.attributes & LOG_APPEND_TIME_FLAG
        return RecordReader(
            data,
            0,
            self.record_count,
            base_offset=self.base_offset,
            base_timestamp=self.base_timestamp,
            base_sequence=self.base_sequence,
            log_append_time=self.max_timestamp if log_append_time else None,
            streamed=streamed,
        )


def view(batch: FileBatch) -> BatchView:
    """
    Raises:
        DumpFailure: the file ends before the header does.
    """
    fields = _HEADER.unpack_from(batch.read(HEADER_SIZE))
    attributes = fields[5] & 0xFF
    return BatchView(batch, fields[0], fields[2], fields[4], attributes, *fields[6:])
