"""
Batches in a buffer, read where they lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from barnabas.protocol.compression import LARGEST_BYTES, CompressionType, decompress_chunks
from barnabas.protocol.errors import CorruptMessage
from barnabas.protocol.records.batch.layout import (
    ATTRIBUTES_AT,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER,
    HEADER_SIZE,
    LENGTH_AT,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    MAGIC_END,
    NO_PRODUCER_ID,
    SMALLEST_LENGTH,
    TRANSACTIONAL_FLAG,
    TimestampType,
)
from barnabas.protocol.records.crc32c import crc32c
from barnabas.protocol.records.outline import RecordOutline, outlines
from barnabas.protocol.records.record import (
    NO_SEQUENCE,
    Record,
    increment_sequence,
    iter_records,
    iter_records_in_pieces,
)
from barnabas.protocol.records.rules import RecordRules
from barnabas.protocol.records.scan import RecordScan
from barnabas.protocol.structs import NamedTuple

_INT32: Final = Struct(">i")


class RecordBatch(NamedTuple):
    """
    The header of one batch, read once, and the buffer in which the batch lies.

    Invariants:

    1. What is in the tuple was read when it was made; a later change of the buffer is not seen.
    2. ``size`` is at least that of the header, whatever the length field said.
    3. The records are not looked at before ``records``.
    """

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    buffer: memoryview
    position: int

    @property
    def size(self) -> int:
        """
        Bytes of the whole batch.
        """
        return LOG_OVERHEAD + self.batch_length

    @property
    def end(self) -> int:
        """
        Where in the buffer the next batch begins.
        """
        return self.position + LOG_OVERHEAD + self.batch_length

    @property
    def data(self) -> memoryview:
        """
        The bytes of the batch, not copied.
        """
        return self.buffer[self.position : self.end]

    @property
    def payload(self) -> memoryview:
        """
        The bytes behind the header, still compressed if the batch is, not copied.
        """
        return self.buffer[self.position + HEADER_SIZE : self.end]

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """
        Sequence of the last record, or -1 where the batch has none.
        """
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def codec(self) -> int:
        """
        The number of the codec, also if there is no such codec.
        """
        return self.attributes & COMPRESSION_MASK

    @property
    def compression(self) -> CompressionType:
        """
        Raises:
            UnknownCompression: the number is 5 to 7.
        """
        return CompressionType.of(self.attributes & COMPRESSION_MASK)

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType(self.attributes >> 3 & 1)

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """
        When tombstones and markers in the batch may go; it then stands in for the base timestamp.
        """
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None

    def computed_crc(self) -> int:
        return crc32c(self.buffer[self.position + ATTRIBUTES_AT : self.end])

    def is_valid(self) -> bool:
        """
        Whether the checksum fits the bytes.
        """
        return self.crc == self.computed_crc()

    def ensure_valid(self) -> None:
        """
        Raises:
            CorruptMessage: the checksum does not fit.
        """
        if not self.is_valid():
            raise CorruptMessage(
                f"Record is corrupt (stored crc = {self.crc}, computed crc = {self.computed_crc()})"
            )

    def scan(self, rules: RecordRules | None = None, *, exact: bool = True) -> RecordScan:
        """
        A finished walk over the records, in constant memory.

        Raises:
            CorruptCompressedData: the compressed stream is broken.
        """
        log_append_time = self.attributes & LOG_APPEND_TIME_FLAG
        scan = RecordScan(
            self.record_count,
            self.base_timestamp,
            log_append_time=self.max_timestamp if log_append_time else None,
            rules=rules,
            exact=exact,
        )
        if scan.done:
            return scan
        if self.attributes & COMPRESSION_MASK:
            scan.walk_chunks(decompress_chunks(self.compression, self.payload))
        else:
            scan.walk(self.payload)
        return scan

    def records(self, most_bytes: int = LARGEST_BYTES) -> Iterator[Record]:
        """
        The records with absolute offsets and timestamps, in the memory of one decompressed piece
        and the largest record.

        Args:
            most_bytes: that compressed records may become.

        Raises:
            InvalidRecord: the records do not have the form or the number that they should.
            CorruptCompressedData: the compressed stream is broken, or becomes too large. Records
                before that are yielded.
        """
        if self.record_count == 0:
            return iter(())
        log_append_time = self.attributes & LOG_APPEND_TIME_FLAG
        if self.codec:
            return iter_records_in_pieces(
                decompress_chunks(self.compression, self.payload, most_bytes=most_bytes),
                self.record_count,
                base_offset=self.base_offset,
                base_timestamp=self.base_timestamp,
                log_append_time=self.max_timestamp if log_append_time else None,
            )
        return iter_records(
            self.payload,
            self.record_count,
            base_offset=self.base_offset,
            base_timestamp=self.base_timestamp,
            log_append_time=self.max_timestamp if log_append_time else None,
        )

    def outlines(self, most_bytes: int = LARGEST_BYTES) -> Iterator[RecordOutline]:
        """
        The records without keys, values and headers, in the memory of one decompressed piece.

        Args:
            most_bytes: that compressed records may become.

        Raises:
            InvalidRecord: the records do not have the form or the number that they should.
            CorruptCompressedData: the compressed stream is broken, or becomes too large.
        """
        if self.record_count == 0:
            return iter(())
        return self.outlines_of(
            decompress_chunks(self.compression, self.payload, most_bytes=most_bytes)
        )

    def outlines_of(self, pieces: Iterable[bytes]) -> Iterator[RecordOutline]:
        """
        Likewise, of the records in *pieces*, where the buffer has the header alone.
        """
        log_append_time = self.attributes & LOG_APPEND_TIME_FLAG
        return outlines(
            pieces,
            self.record_count,
            base_offset=self.base_offset,
            base_timestamp=self.base_timestamp,
            log_append_time=self.max_timestamp if log_append_time else None,
        )

    def __repr__(self) -> str:
        return (
            f"<RecordBatch {self.base_offset}-{self.last_offset} size={self.size}"
            f" records={self.record_count} attributes={self.attributes:#x}"
            f" producer={self.producer_id}/{self.producer_epoch}/{self.base_sequence}>"
        )


def batch_size(view: memoryview, position: int, end: int) -> int:
    """
    Bytes of the batch at *position*, or 0 if the bytes up to *end* do not hold all of it.

    As in Kafka's ByteBufferLogInputStream, the length is judged as soon as it is there, and the
    magic byte as soon as that is.

    Raises:
        CorruptMessage: no batch has this length or this magic byte.
    """
    remaining = end - position
    if remaining < LOG_OVERHEAD:
        return 0
    (length,) = _INT32.unpack_from(view, position + LENGTH_AT)
    if length < SMALLEST_LENGTH:
        raise CorruptMessage(
            f"Record size {length} is less than the minimum record overhead ({SMALLEST_LENGTH})"
        )
    if remaining < MAGIC_END:
        return 0
    magic = view[position + MAGIC_AT]
    if magic > MAGIC:
        raise CorruptMessage(f"Invalid magic found in record: {magic - (magic >> 7 << 8)}")
    size: int = length + LOG_OVERHEAD
    return size if size <= remaining else 0


def read_batch(view: memoryview, position: int = 0) -> RecordBatch:
    """
    The batch at *position*, of which at least the header must be in *view*.

    Raises:
        CorruptMessage: the batch is smaller than its header, or of a version that does not exist.
    """
    header = HEADER.unpack_from(view, position)
    if header[3] != MAGIC:
        raise CorruptMessage(f"Batch has magic {header[3]}, which is not supported")
    if header[1] < HEADER_SIZE - LOG_OVERHEAD:
        raise CorruptMessage(
            f"Record batch is corrupt (the size {header[1] + LOG_OVERHEAD} is smaller than the "
            f"minimum allowed overhead {HEADER_SIZE})"
        )
    return RecordBatch._make((*header, view, position))
