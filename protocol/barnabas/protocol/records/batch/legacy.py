"""
Messages of the format versions 0 and 1, which brokers wrote before Apache Kafka 0.11.

::

    offset      int64
    size        int32   bytes that follow
    checksum    uint32  CRC-32 of all that follows
    magic       int8    0 or 1
    attributes  int8    bits 0-2 codec; in version 1, 3 log append time
    timestamp   int64   in version 1 only
    key         int32 length, -1: no key        bytes
    value       int32 length, -1: no value      bytes

Every message is a batch of its own. A compressed one is a wrapper: its value is a stream of
messages, and its offset is that of the last of them. In a wrapper of version 1 the offsets inside
count from 0 (KIP-31). No broker takes these messages any more, but old segments may be full of them
(Kafka's LegacyRecord and AbstractLegacyRecordBatch, whose words the errors have).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct, error
from typing import Final
from zlib import crc32

from barnabas.protocol.compression import (
    LARGEST_BYTES,
    CompressionType,
    decompress,
    decompress_chunks,
)
from barnabas.protocol.compression.xxhash32 import xxhash32
from barnabas.protocol.errors import (
    CorruptMessage,
    IllegalArgument,
    InvalidRecord,
    OutOfBounds,
    UnknownServerError,
)
from barnabas.protocol.records.batch.layout import (
    COMPRESSION_MASK,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC_AT,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    SMALLEST_LENGTH,
    TimestampType,
)
from barnabas.protocol.records.batch.view import RecordBatch
from barnabas.protocol.records.outline import RecordOutline
from barnabas.protocol.records.record import NO_SEQUENCE, Record
from barnabas.protocol.records.varints import int64
from barnabas.protocol.structs import NamedTuple

MAGIC_VALUES: Final = (0, 1)

_NOTHING_INSIDE: Final = "Found invalid compressed record set with no inner records"
_ENTRY: Final = Struct(">qi")
_CRC: Final = Struct(">I")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_MAGIC_AT: Final = MAGIC_AT - LOG_OVERHEAD
_ATTRIBUTES_AT: Final = _MAGIC_AT + 1
_TIMESTAMP_AT: Final = _MAGIC_AT + 2

Decompress = Callable[[CompressionType, memoryview], bytes | bytearray | memoryview]


class LegacyRecord(NamedTuple):
    """
    One message: its offset in the log, and its bytes from the checksum on.

    A field is read when it is asked for. That raises ``OutOfBounds`` if the message ends before the
    field, and ``IllegalArgument`` if a key or value ends behind the message.
    """

    offset: int
    data: memoryview
    wrapper: LegacyRecord | None = None
    """The message of which this one was in the stream."""

    @property
    def magic(self) -> int:
        magic = self.data[_MAGIC_AT]
        return magic - (magic >> 7 << 8)

    @property
    def crc(self) -> int:
        crc: int = _CRC.unpack_from(self.data)[0]
        return crc

    @property
    def attributes(self) -> int:
        return self.data[_ATTRIBUTES_AT]

    @property
    def timestamp_type(self) -> TimestampType | None:
        """
        The type that the wrapper says, if there is one; None in version 0.
        """
        if self.magic == 0:
            return None
        of = self if self.wrapper is None else self.wrapper
        return None if of.magic == 0 else TimestampType(of.attributes >> 3 & 1)

    @property
    def timestamp(self) -> int:
        """
        In ms; -1 in version 0.
        """
        if self.magic == 0:
            return NO_TIMESTAMP
        wrapper = self.wrapper
        if wrapper is not None and wrapper.timestamp_type is TimestampType.LOG_APPEND_TIME:
            return wrapper.timestamp
        return self._number(_INT64, _TIMESTAMP_AT)

    @property
    def key_size(self) -> int:
        return self._number(_INT32, self._key_size_at)

    @property
    def value_size(self) -> int:
        return self._number(_INT32, self._value_size_at)

    def is_valid(self) -> bool:
        """
        Whether the message has the smallest possible size or more, and its checksum is right.
        """
        return len(self.data) >= SMALLEST_LENGTH and self.crc == crc32(self.data[_MAGIC_AT:])

    def key(self) -> bytes | None:
        return self._bytes(self._key_size_at)

    def value(self) -> bytes | None:
        return self._bytes(self._value_size_at)

    @property
    def _key_size_at(self) -> int:
        return _TIMESTAMP_AT if self.magic == 0 else _TIMESTAMP_AT + _INT64.size

    @property
    def _value_size_at(self) -> int:
        return self._key_size_at + _INT32.size + max(0, self.key_size)

    def _number(self, format_: Struct, position: int) -> int:
        try:
            number: int = format_.unpack_from(self.data, position)[0]
        except error as cut:
            raise OutOfBounds("A message ends before its key and value do.") from cut
        return number

    def _bytes(self, position: int) -> bytes | None:
        size = self._number(_INT32, position)
        if size < 0:
            return None
        start = position + _INT32.size
        left = len(self.data) - start
        if size > left:
            raise IllegalArgument(f"newLimit > capacity: ({size} > {left})")
        return bytes(self.data[start : start + size])

    def unwrapped(self, decompress: Decompress = decompress) -> list[LegacyRecord]:
        """
        The message itself, or the messages that it wraps, with absolute offsets.

        Raises:
            InvalidRecord, CorruptMessage: the stream is not a sequence of messages.
            CorruptCompressedData, UnknownCompression: the stream is broken, or of no known codec.
        """
        if self.attributes & COMPRESSION_MASK == 0:
            return [self]
        codec, stream = self._stream()
        inner = list(_messages(iter([bytes(decompress(codec, stream))]), self))
        if not inner:
            raise InvalidRecord(_NOTHING_INSIDE)
        base_offset = self._base_offset(inner[-1].offset)
        return [record._replace(offset=int64(record.offset + base_offset)) for record in inner]

    def wrapped(self, most_bytes: int = LARGEST_BYTES) -> Iterator[LegacyRecord]:
        """
        Yield what ``unwrapped`` returns, in the memory of a piece of the stream, which is therefore
        decompressed twice.

        Args:
            most_bytes: that the stream may become.

        Raises:
            as in ``unwrapped``, before the first message.
        """
        if self.attributes & COMPRESSION_MASK == 0:
            yield self
            return
        codec, stream = self._stream()
        last: LegacyRecord | None = None
        for record in _messages(decompress_chunks(codec, stream, most_bytes=most_bytes), self):
            last = record
        if last is None:
            raise InvalidRecord(_NOTHING_INSIDE)
        base_offset = self._base_offset(last.offset)
        for record in _messages(decompress_chunks(codec, stream), self):
            yield record._replace(offset=int64(record.offset + base_offset))

    def _stream(self) -> tuple[CompressionType, memoryview]:
        """
        The codec and the stream of a wrapper.

        Raises:
            InvalidRecord: the value is no stream.
            UnknownCompression: there is no such codec.
        """
        codec = CompressionType.of(self.attributes & COMPRESSION_MASK)
        if codec is CompressionType.ZSTD:
            raise InvalidRecord(
                f"Invalid wrapper compressionType found in legacy deep record iterator {self.magic}"
            )
        stream = self.value()
        if stream is None:
            raise InvalidRecord(
                f"Found invalid compressed record set with null value (magic = {self.magic})"
            )
        if codec is CompressionType.LZ4 and self.magic == 0:
            stream = _with_lz4_checksum(stream)
        return codec, memoryview(stream)

    def _base_offset(self, last_inner_offset: int) -> int:
        """
        The number to add to the offsets inside.
        """
        if self.magic == 0 or self.offset == 0:  # Some versions of librdkafka left it at 0.
            return 0
        if self.offset < last_inner_offset:
            raise InvalidRecord(
                "Found invalid wrapper offset in compressed v1 message set, wrapper offset "
                f"'{self.offset}' is less than the last inner message offset "
                f"'{last_inner_offset}' and it is not zero."
            )
        return self.offset - last_inner_offset

    def ensure_not_compressed(self) -> None:
        """
        Raises:
            InvalidRecord, UnknownCompression: a message inside a wrapper is a wrapper itself.
        """
        if self.wrapper is not None and self.attributes & COMPRESSION_MASK:
            CompressionType.of(self.attributes & COMPRESSION_MASK)
            raise InvalidRecord("Inner messages must not be compressed")


class LegacyBatch(RecordBatch):
    """
    An old message, or a wrapper with all that it wraps, seen as a batch.

    Invariants:

    1. It has no producer, no leader epoch, and no attributes but codec and timestamp type.
    2. Of a wrapper whose stream cannot be read, only the last offset is known. It counts as one
       record until ``records`` is called.
    """

    __slots__ = ()

    @property
    def message(self) -> LegacyRecord:
        return LegacyRecord(self.last_offset, self.data[LOG_OVERHEAD:])

    def computed_crc(self) -> int:
        return crc32(self.buffer[self.position + MAGIC_AT : self.end])

    def records(self, most_bytes: int = LARGEST_BYTES) -> Iterator[Record]:
        """
        Yield the message, or those that it wraps, with absolute offsets and timestamps.

        Raises:
            InvalidRecord, CorruptMessage: a message ends before one of its fields does, or the
                stream is not a sequence of messages.
            CorruptCompressedData, UnknownCompression: the stream is broken, or of no known codec.
        """
        for message in self.message.wrapped(most_bytes):
            message.ensure_not_compressed()
            if message.magic not in MAGIC_VALUES:
                raise InvalidRecord(f"A message of format {message.magic} is inside a wrapper.")
            yield Record(message.offset, message.timestamp, message.key(), message.value())

    def outlines(self, most_bytes: int = LARGEST_BYTES) -> Iterator[RecordOutline]:
        """
        The outlines of ``records``: an old message has no headers.
        """
        for offset, timestamp, key, value, _ in self.records(most_bytes):
            key_size = -1 if key is None else len(key)
            value_size = -1 if value is None else len(value)
            yield RecordOutline(offset, timestamp, key_size, value_size, 0)

    def opened(self) -> LegacyBatch:
        """
        The wrapper with the base offset and the number of records that are in its stream.
        """
        message = self.message
        first = last = 0
        count = 0
        try:
            codec, stream = message._stream()
            for record in _messages(decompress_chunks(codec, stream), message):
                last = record.offset
                if not count:
                    first = last
                count += 1
            first = int64(first + message._base_offset(last))
        except (InvalidRecord, CorruptMessage, UnknownServerError):
            return self
        if not count:
            return self
        return self._replace(
            base_offset=first, last_offset_delta=self.last_offset - first, record_count=count
        )


def read_legacy_batch(view: memoryview, position: int = 0) -> LegacyBatch:
    """
    The message at *position*, which is whole and of version 0 or 1, as a batch.
    """
    offset, length = _ENTRY.unpack_from(view, position)
    start = position + LOG_OVERHEAD
    message = LegacyRecord(offset, view[start : start + length])
    attributes = message.attributes & COMPRESSION_MASK
    if message.magic > 0:
        attributes |= message.attributes & LOG_APPEND_TIME_FLAG
    try:
        timestamp = message.timestamp
    except OutOfBounds:
        timestamp = NO_TIMESTAMP
    batch = LegacyBatch(
        offset,
        length,
        NO_PARTITION_LEADER_EPOCH,
        message.magic,
        message.crc,
        attributes,
        0,
        timestamp,
        timestamp,
        NO_PRODUCER_ID,
        NO_PRODUCER_EPOCH,
        NO_SEQUENCE,
        1,
        view,
        position,
    )
    return batch.opened() if attributes & COMPRESSION_MASK else batch


def _with_lz4_checksum(stream: bytes) -> bytes:
    """
    *stream* with the right checksum in the header of its LZ4 frame.

    Clients of version 0 computed it of other bytes, so that Kafka does not check it there.
    """
    descriptor_end = 6 + (8 if len(stream) > 4 and stream[4] & 0x08 else 0)
    checksum = xxhash32(stream[4:descriptor_end]) >> 8 & 0xFF
    return stream[:descriptor_end] + bytes([checksum]) + stream[descriptor_end + 1 :]


def _messages(pieces: Iterator[bytes], wrapper: LegacyRecord) -> Iterator[LegacyRecord]:
    """
    The messages in the pieces of a decompressed stream, with the offsets that are written there.
    """
    data, position, missing = b"", 0, 0
    waiting: list[bytes] = []
    for piece in pieces:
        # To join a large message with each of its pieces would copy it as many times.
        waiting.append(piece)
        missing -= len(piece)
        if missing > 0:
            continue
        data, position = data[position:] + b"".join(waiting), 0
        waiting.clear()
        while position + LOG_OVERHEAD <= len(data):
            offset, size = _ENTRY.unpack_from(data, position)
            if size < SMALLEST_LENGTH:
                raise CorruptMessage(
                    f"Record size is less than the minimum record overhead ({SMALLEST_LENGTH})"
                )
            end = position + LOG_OVERHEAD + size
            missing = end - len(data)
            if missing > 0:
                break
            yield LegacyRecord(offset, memoryview(data)[end - size : end], wrapper)
            position = end
