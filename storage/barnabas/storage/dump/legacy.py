"""
Messages of the versions 0 and 1, which brokers wrote before Apache Kafka 0.11.

::

    offset      int64
    size        int32   bytes that follow
    checksum    uint32  CRC-32 of all that follows
    magic       int8    0 or 1
    attributes  int8    bits 0-2 codec; in version 1, 3 log append time
    timestamp   int64   in version 1 only
    key         int32 length, -1: no key        bytes
    value       int32 length, -1: no value      bytes

A compressed message wraps others: its value is a stream of them, and its offset that of the last.
In a wrapper of version 1 the offsets of those inside count from 0 (KIP-31).
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, error
from typing import Final
from zlib import crc32

from barnabas.protocol.records.batch import COMPRESSION_MASK, LOG_APPEND_TIME_FLAG, NO_TIMESTAMP
from barnabas.protocol.records.batch.legacy import with_lz4_checksum
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.dump.batch_view import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_TIMESTAMP_TYPE,
)
from barnabas.storage.dump.failure import (
    CORRUPT_RECORD,
    ILLEGAL_ARGUMENT,
    INVALID_RECORD,
    OUT_OF_BOUNDS,
    DumpFailure,
)
from barnabas.storage.dump.java_text import int64
from barnabas.storage.dump.log_slice import LOG_OVERHEAD, SMALLEST_RECORD, FileBatch
from barnabas.storage.dump.streams import codec_name, decompressed

_ENTRY: Final = Struct(">qi")
_CRC: Final = Struct(">I")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_HEADER_SIZE: Final = {0: 6, 1: 14}
_MAGIC_AT: Final = 4
_ATTRIBUTES_AT: Final = 5
_TIMESTAMP_AT: Final = 6
_LZ4, _ZSTD = 3, 4


class LegacyRecord(NamedTuple):
    """
    A message, and its offset in the log. Of one inside a wrapper, *wrapper* are its time's facts.

    All properties raise ``DumpFailure`` where the message ends before the field.
    """

    offset: int
    data: memoryview
    wrapper: tuple[int, str] | None = None

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
    def codec_name(self) -> str:
        return codec_name(self.attributes)

    @property
    def timestamp_name(self) -> str:
        if self.magic == 0:
            return NO_TIMESTAMP_TYPE
        if self.wrapper is not None:
            return self.wrapper[1]
        return LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_FLAG else CREATE_TIME

    @property
    def timestamp(self) -> int:
        if self.magic == 0:
            return NO_TIMESTAMP
        if self.wrapper is not None and self.wrapper[1] == LOG_APPEND_TIME:
            return self.wrapper[0]
        return self._number(_INT64, _TIMESTAMP_AT)

    @property
    def key_size(self) -> int:
        return self._number(_INT32, self._key_size_at)

    @property
    def value_size(self) -> int:
        return self._number(_INT32, self._value_size_at)

    def is_valid(self) -> bool:
        """
        Whether the message is as large as it must be at least, and fits its checksum.
        """
        return len(self.data) >= SMALLEST_RECORD and self.crc == crc32(self.data[_MAGIC_AT:])

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
            raise DumpFailure(OUT_OF_BOUNDS) from cut
        return number

    def _bytes(self, position: int) -> bytes | None:
        size = self._number(_INT32, position)
        if size < 0:
            return None
        start = position + _INT32.size
        left = len(self.data) - start
        if size > left:
            raise DumpFailure(ILLEGAL_ARGUMENT, f"newLimit > capacity: ({size} > {left})")
        return bytes(self.data[start : start + size])

    def records(self) -> Iterator[LegacyRecord]:
        """
        The message itself, or those that it wraps.

        Raises:
            DumpFailure: what it wraps is no sequence of messages.
        """
        if self.attributes & COMPRESSION_MASK == 0:
            return iter((self,))
        return _unwrapped(self)


def outer_record(batch: FileBatch) -> LegacyRecord:
    """
    The message that is a batch of its own.

    Raises:
        DumpFailure: its version does not exist.
    """
    if batch.magic not in _HEADER_SIZE:
        raise DumpFailure(ILLEGAL_ARGUMENT, f"Invalid magic used in LegacyRecord: {batch.magic}")
    batch.read(LOG_OVERHEAD + _HEADER_SIZE[batch.magic])
    return LegacyRecord(batch.offset, batch.read(batch.size)[LOG_OVERHEAD:])


def _unwrapped(wrapper: LegacyRecord) -> Iterator[LegacyRecord]:
    codec = wrapper.attributes & COMPRESSION_MASK
    codec_name(codec)
    if codec == _ZSTD:
        raise DumpFailure(
            INVALID_RECORD,
            f"Invalid wrapper compressionType found in legacy deep record iterator {wrapper.magic}",
        )
    value = wrapper.value()
    if value is None:
        raise DumpFailure(
            INVALID_RECORD,
            f"Found invalid compressed record set with null value (magic = {wrapper.magic})",
        )
    if codec == _LZ4 and wrapper.magic == 0:
        value = with_lz4_checksum(value)
    inner = list(_entries(decompressed(codec, memoryview(value)), wrapper))
    if not inner:
        raise DumpFailure(
            INVALID_RECORD, "Found invalid compressed record set with no inner records"
        )
    return _placed(inner, _base_offset(wrapper, inner[-1].offset))


def _entries(data: bytes, wrapper: LegacyRecord) -> Iterator[LegacyRecord]:
    """
    The messages in a decompressed stream, with the offsets that are written there.
    """
    facts = (wrapper.timestamp, wrapper.timestamp_name)
    view = memoryview(data)
    position = 0
    while position + LOG_OVERHEAD <= len(view):
        offset, size = _ENTRY.unpack_from(view, position)
        if size < SMALLEST_RECORD:
            raise DumpFailure(
                CORRUPT_RECORD,
                f"Record size is less than the minimum record overhead ({SMALLEST_RECORD})",
            )
        position += LOG_OVERHEAD + size
        if position > len(view):
            return
        record = LegacyRecord(offset, view[position - size : position])
        yield record._replace(wrapper=facts) if record.magic == 1 else record


def _base_offset(wrapper: LegacyRecord, last_inner_offset: int) -> int:
    """
    What to add to the offsets inside.
    """
    if wrapper.magic == 0 or wrapper.offset == 0:  # Some versions of librdkafka left it at 0.
        return 0
    if wrapper.offset < last_inner_offset:
        raise DumpFailure(
            INVALID_RECORD,
            "Found invalid wrapper offset in compressed v1 message set, wrapper offset "
            f"'{wrapper.offset}' is less than the last inner message offset "
            f"'{last_inner_offset}' and it is not zero.",
        )
    return wrapper.offset - last_inner_offset


def _placed(inner: list[LegacyRecord], base_offset: int) -> Iterator[LegacyRecord]:
    for record in inner:
        if record.attributes & COMPRESSION_MASK:
            codec_name(record.attributes)
            raise DumpFailure(INVALID_RECORD, "Inner messages must not be compressed")
        yield record._replace(offset=int64(record.offset + base_offset))
