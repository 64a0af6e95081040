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
messages, and its offset that of the last of them. In a wrapper of version 1 the offsets inside
count from 0 (KIP-31). No broker takes such messages any more, but old segments may be full of them
(Kafka's AbstractLegacyRecordBatch).
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, error
from typing import Final
from zlib import crc32

from barnabas.protocol.compression import CompressionType, decompress
from barnabas.protocol.compression.xxhash32 import xxhash32
from barnabas.protocol.errors import CorruptMessage, InvalidRecord, UnknownServerError
from barnabas.protocol.records.batch.layout import (
    COMPRESSION_MASK,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC_AT,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    SMALLEST_LENGTH,
)
from barnabas.protocol.records.batch.view import RecordBatch
from barnabas.protocol.records.record import Record
from barnabas.protocol.structs import NamedTuple

MAGIC_VALUES: Final = (0, 1)

_HEADER: Final = Struct(">qiIbB")
_TIMESTAMP: Final = Struct(">q")
_INT32: Final = Struct(">i")
_ENTRY: Final = Struct(">qi")
_KEY_AT: Final = (18, 26)
"""By version."""


class Entry(NamedTuple):
    """
    A message in a wrapper, from its offset on.
    """

    offset: int
    data: memoryview


class LegacyBatch(RecordBatch):
    """
    An old message, or a wrapper with all that it wraps, seen as a batch.

    Invariants:

    1. It has no producer, no leader epoch, and no attributes but codec and timestamp type.
    2. Of a wrapper whose stream cannot be read, only the last offset is known. It counts as one
       record until somebody asks for ``records``.
    """

    __slots__ = ()

    @property
    def payload(self) -> memoryview:
        """
        The value: of a wrapper, the compressed stream.

        Raises:
            InvalidRecord: the message ends before the value does, or has none.
        """
        data = self.data
        value = _field(data, _after_field(data, _KEY_AT[self.magic]))
        if value is None:
            raise InvalidRecord(
                f"Found invalid compressed record set with null value (magic = {self.magic})"
            )
        return value

    def computed_crc(self) -> int:
        return crc32(self.buffer[self.position + MAGIC_AT : self.end])

    def records(self) -> Iterator[Record]:
        """
        The message, or those that it wraps, with absolute offsets and timestamps.

        Raises:
            InvalidRecord: a message ends before one of its fields does, or what is wrapped is not
                a sequence of messages.
            CorruptCompressedData, UnknownCompression: the stream is broken, or of no codec.
        """
        if not self.codec:
            return iter((_record(self.last_offset, self.data, None),))
        return self._wrapped()

    def _wrapped(self) -> Iterator[Record]:
        inner = self.entries()
        difference = self._base_of(inner)
        log_append_time = None
        if self.attributes & LOG_APPEND_TIME_FLAG:
            log_append_time = self.max_timestamp
        for offset, data in inner:
            if data[MAGIC_AT + 1] & COMPRESSION_MASK:
                raise InvalidRecord("Inner messages must not be compressed")
            yield _record(offset + difference, data, log_append_time)

    def entries(self) -> list[Entry]:
        """
        The messages inside a wrapper, with the offsets that are written there.

        Raises: as ``records``.
        """
        codec = self.compression
        if codec is CompressionType.ZSTD:
            raise InvalidRecord(
                f"Invalid wrapper compressionType found in legacy deep record iterator {self.magic}"
            )
        stream: memoryview | bytes = self.payload
        if codec is CompressionType.LZ4 and self.magic == 0:
            stream = with_lz4_checksum(bytes(stream))
        inner = list(_entries(memoryview(decompress(codec, memoryview(stream)))))
        if not inner:
            raise InvalidRecord("Found invalid compressed record set with no inner records")
        return inner

    def _base_of(self, inner: list[Entry]) -> int:
        """
        The number to add to the offsets inside.
        """
        last, last_inner = self.last_offset, inner[-1].offset
        if self.magic == 0 or last == 0:  # Some versions of librdkafka left it at 0.
            return 0
        if last < last_inner:
            raise InvalidRecord(
                "Found invalid wrapper offset in compressed v1 message set, wrapper offset "
                f"'{last}' is less than the last inner message offset '{last_inner}' and it is not"
                " zero."
            )
        return last - last_inner

    def opened(self) -> LegacyBatch:
        """
        The wrapper with the base offset and the number of records that its stream tells.
        """
        try:
            inner = self.entries()
            base_offset = inner[0].offset + self._base_of(inner)
        except (InvalidRecord, CorruptMessage, UnknownServerError):
            return self
        return self._replace(
            base_offset=base_offset,
            last_offset_delta=self.last_offset - base_offset,
            record_count=len(inner),
        )


def read_legacy_batch(view: memoryview, position: int = 0) -> LegacyBatch:
    """
    The message at *position*, which is whole and of version 0 or 1, as a batch.
    """
    offset, length, crc, magic, attributes = _HEADER.unpack_from(view, position)
    timestamp = NO_TIMESTAMP
    attributes &= COMPRESSION_MASK
    if magic > 0:
        timestamp = timestamp_of(view, position, position + LOG_OVERHEAD + length)
        attributes |= view[position + MAGIC_AT + 1] & LOG_APPEND_TIME_FLAG
    batch = LegacyBatch(
        offset,
        length,
        NO_PARTITION_LEADER_EPOCH,
        magic,
        crc,
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


def timestamp_of(data: memoryview | bytes, position: int, end: int) -> int:
    """
    The timestamp (ms) of the message from *position* up to *end*; -1 where it has none.
    """
    at = position + MAGIC_AT + 2
    if data[position + MAGIC_AT] == 0 or at + _TIMESTAMP.size > end:
        return NO_TIMESTAMP
    timestamp: int = _TIMESTAMP.unpack_from(data, at)[0]
    return timestamp


def with_lz4_checksum(stream: bytes) -> bytes:
    """
    *stream* with the checksum in the header of its LZ4 frame that belongs there.

    Clients of version 0 computed it of other bytes, so that Kafka does not look at it there.
    """
    descriptor_end = 6 + (8 if len(stream) > 4 and stream[4] & 0x08 else 0)
    checksum = xxhash32(stream[4:descriptor_end]) >> 8 & 0xFF
    return stream[:descriptor_end] + bytes([checksum]) + stream[descriptor_end + 1 :]


def _entries(stream: memoryview) -> Iterator[Entry]:
    position = 0
    while position + LOG_OVERHEAD <= len(stream):
        offset, size = _ENTRY.unpack_from(stream, position)
        if size < SMALLEST_LENGTH:
            raise CorruptMessage(
                f"Record size is less than the minimum record overhead ({SMALLEST_LENGTH})"
            )
        end = position + LOG_OVERHEAD + size
        if end > len(stream):
            return
        yield Entry(offset, stream[position:end])
        position = end


def _record(offset: int, data: memoryview, log_append_time: int | None) -> Record:
    magic = data[MAGIC_AT]
    if magic not in MAGIC_VALUES:
        raise InvalidRecord(f"A message of format {magic} is among those of older ones.")
    key_at = _KEY_AT[magic]
    key, value = _field(data, key_at), _field(data, _after_field(data, key_at))
    timestamp = timestamp_of(data, 0, len(data))
    if magic and log_append_time is not None:
        timestamp = log_append_time
    return Record(
        offset,
        timestamp,
        None if key is None else bytes(key),
        None if value is None else bytes(value),
    )


def _size(data: memoryview, position: int) -> int:
    try:
        size: int = _INT32.unpack_from(data, position)[0]
    except error as cut:
        raise InvalidRecord("A message ends before its key and value do.") from cut
    if size > len(data) - position - _INT32.size:
        raise InvalidRecord(f"A message says it has a field of {size} bytes, which are not there.")
    return size


def _after_field(data: memoryview, position: int) -> int:
    return position + _INT32.size + max(0, _size(data, position))


def _field(data: memoryview, position: int) -> memoryview | None:
    size = _size(data, position)
    start = position + _INT32.size
    return None if size < 0 else data[start : start + size]
