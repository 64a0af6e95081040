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
looked at and changed where it lies. What is inside it is the affair of ``records``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import count
from struct import Struct
from typing import Final, NamedTuple, TypedDict, Unpack

from crc32c import crc32c

from barnabas.protocol.compression import CompressionType, compress, decompress
from barnabas.protocol.errors import CorruptMessage
from barnabas.protocol.records import Record, SimpleRecord, encode_records, iter_records

Buffer = bytes | bytearray | memoryview

MAGIC: Final = 2
HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = HEADER.size
LOG_OVERHEAD: Final = 12
"""Bytes before those that the length field counts: base offset and the length itself."""
SMALLEST_LENGTH: Final = 14
"""What the length field of the smallest batch of any version says."""
MAGIC_END: Final = 17
"""A batch of which less than this is there cannot be told from no batch at all."""

LENGTH_AT: Final = 8
LEADER_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
MAX_TIMESTAMP_AT: Final = 35

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40
KNOWN_ATTRIBUTES: Final = 0x7F

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1
LAST_SEQUENCE: Final = 2**31 - 1

_INT64: Final = Struct(">q")
_INT32: Final = Struct(">i")
_UINT32: Final = Struct(">I")
_INT16: Final = Struct(">h")
_CONTROL_KEY: Final = Struct(">hh")


class TimestampType(IntEnum):
    """
    Who gave the records their timestamps. The names in configs are CreateTime and LogAppendTime.
    """

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


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

    def records(self) -> Iterator[Record]:
        """
        The records, decompressed all at once, with absolute offsets and timestamps.

        Raises:
            InvalidRecord: the records do not have the form or the number that they should.
            CorruptCompressedData: the compressed stream is broken.
        """
        if self.record_count == 0:
            return iter(())
        log_append_time = self.attributes & LOG_APPEND_TIME_FLAG
        return iter_records(
            decompress(self.compression, self.payload),
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


def batches(data: Buffer, position: int = 0) -> Iterator[RecordBatch]:
    """
    The whole batches that lie one after the other in *data*, from *position* on.

    What follows the last whole batch is passed over, as in Kafka: a fetch ends where its size ends,
    and a file where the machine stopped.

    Raises:
        CorruptMessage: as ``batch_size`` and ``read_batch``.
    """
    view = data if isinstance(data, memoryview) else memoryview(data)
    end = len(view)
    while size := batch_size(view, position, end):
        yield read_batch(view, position)
        position += size


def assign(view: memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """
    Give the batch at *position* its place in the log. The checksum does not cover these fields.
    """
    _INT64.pack_into(view, position, base_offset)
    _INT32.pack_into(view, position + LEADER_EPOCH_AT, leader_epoch)


def set_max_timestamp(
    view: memoryview, position: int, timestamp_type: TimestampType, max_timestamp: int
) -> None:
    """
    Write the timestamp type and the largest timestamp of the batch at *position*.

    Where both say so already, nothing is touched; else the checksum is computed anew and attribute
    bits without a meaning are cleared (Kafka's DefaultRecordBatch.setMaxTimestamp).
    """
    (attributes,) = _INT16.unpack_from(view, position + ATTRIBUTES_AT)
    (current,) = _INT64.unpack_from(view, position + MAX_TIMESTAMP_AT)
    if current == max_timestamp and (attributes >> 3 & 1) == timestamp_type:
        return
    attributes = attributes & KNOWN_ATTRIBUTES & ~LOG_APPEND_TIME_FLAG | timestamp_type << 3
    _INT16.pack_into(view, position + ATTRIBUTES_AT, attributes)
    _INT64.pack_into(view, position + MAX_TIMESTAMP_AT, max_timestamp)
    (length,) = _INT32.unpack_from(view, position + LENGTH_AT)
    crc = crc32c(view[position + ATTRIBUTES_AT : position + LOG_OVERHEAD + length])
    _UINT32.pack_into(view, position + CRC_AT, crc)


def increment_sequence(sequence: int, increment: int) -> int:
    """
    The sequence *increment* records later: 0 follows the largest int32.
    """
    total = sequence + increment
    return total if total <= LAST_SEQUENCE else total - LAST_SEQUENCE - 1


def decrement_sequence(sequence: int, decrement: int) -> int:
    """
    The sequence *decrement* records earlier.
    """
    total = sequence - decrement
    return total if total >= 0 else total + LAST_SEQUENCE + 1


class BatchOptions(TypedDict, total=False):
    """
    What a batch can be told besides its records. Left out, it is as a plain producer has it.
    """

    partition_leader_epoch: int
    compression: CompressionType
    compression_level: int | None
    log_append_time: int | None
    """The one timestamp of all records, in ms; None for those that they bring."""
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    delete_horizon_ms: int | None


def build_batch(
    records: Iterable[SimpleRecord], *, base_offset: int = 0, **options: Unpack[BatchOptions]
) -> bytearray:
    """
    A batch of *records*, numbered from *base_offset* on.
    """
    numbered = (Record(offset, *record) for offset, record in zip(count(base_offset), records))
    return build_batch_with_offsets(numbered, base_offset=base_offset, **options)


def build_batch_with_offsets(
    records: Iterable[Record],
    *,
    base_offset: int,
    last_offset: int | None = None,
    **options: Unpack[BatchOptions],
) -> bytearray:
    """
    A batch of *records* that keep their offsets, from *base_offset* to *last_offset*.

    A batch from which compaction took records covers the same offsets as before. *last_offset* is
    that of the last record unless it is given.

    The base timestamp is the first record's, or the delete horizon, as Kafka's
    MemoryRecordsBuilder has it.
    """
    records = list(records)
    if last_offset is None:
        last_offset = records[-1].offset if records else base_offset - 1
    base_timestamp = options.get("delete_horizon_ms")
    if base_timestamp is None:
        base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    return seal_batch(
        encode_records(records, base_offset, base_timestamp),
        len(records),
        base_offset=base_offset,
        last_offset_delta=last_offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max((record.timestamp for record in records), default=NO_TIMESTAMP),
        **options,
    )


def seal_batch(
    payload: Buffer,
    record_count: int,
    *,
    base_offset: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    **options: Unpack[BatchOptions],
) -> bytearray:
    """
    A batch around records that are encoded already, but not compressed.
    """
    codec = options.get("compression", CompressionType.NONE)
    log_append_time = options.get("log_append_time")
    if codec:
        payload = compress(codec, payload, options.get("compression_level"))
    batch = bytearray(HEADER_SIZE + len(payload))
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LOG_OVERHEAD,
        options.get("partition_leader_epoch", NO_PARTITION_LEADER_EPOCH),
        MAGIC,
        0,
        codec | _flags(options),
        last_offset_delta,
        base_timestamp,
        max_timestamp if log_append_time is None else log_append_time,
        options.get("producer_id", NO_PRODUCER_ID),
        options.get("producer_epoch", NO_PRODUCER_EPOCH),
        options.get("base_sequence", NO_SEQUENCE),
        record_count,
    )
    batch[HEADER_SIZE:] = payload
    _UINT32.pack_into(batch, CRC_AT, crc32c(memoryview(batch)[ATTRIBUTES_AT:]))
    return batch


def _flags(options: BatchOptions) -> int:
    return (
        (options.get("log_append_time") is not None) * LOG_APPEND_TIME_FLAG
        | options.get("is_transactional", False) * TRANSACTIONAL_FLAG
        | options.get("is_control", False) * CONTROL_FLAG
        | (options.get("delete_horizon_ms") is not None) * DELETE_HORIZON_FLAG
    )


def control_batch(
    control_type: int,
    value: bytes,
    timestamp: int,
    *,
    base_offset: int = 0,
    **options: Unpack[BatchOptions],
) -> bytearray:
    """
    A batch with the one control record *control_type*, whose key is its version (0) and its type.

    See ``control_records`` for the types and their values.
    """
    record = SimpleRecord(timestamp, _CONTROL_KEY.pack(0, control_type), value)
    options["is_control"] = True
    return build_batch([record], base_offset=base_offset, **options)
