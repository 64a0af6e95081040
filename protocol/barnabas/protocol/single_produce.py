"""
Produce of one batch to one partition, without the objects of the general codec.

Most requests of most producers are that, and where each has few records, decoding and encoding
messages costs more than storing them. What is read and written here is what ``codec`` reads and
writes; whatever is not of the plain form is left to it::

    transactional_id  null              responses           1
    acks, timeout_ms                      name or topic_id
    topic_data        1                   partitions        1
      name or topic_id                      index, error_code 0, base_offset,
      partition_data  1                     log_append_time_ms, log_start_offset (v5),
        index, records                      no record_errors, no error_message (v8)
    no tagged fields (v9)               throttle_time_ms    0
"""

from __future__ import annotations

from struct import Struct, error
from typing import Final, NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.primitives import read_uvarint, string_length

FIRST_START_OFFSET_VERSION: Final = 5
FIRST_RECORD_ERRORS_VERSION: Final = 8
FIRST_FLEXIBLE_VERSION: Final = 9
FIRST_TOPIC_ID_VERSION: Final = 13

_UUID_BYTES: Final = 16
_CLASSIC: Final = Struct(">hhiih")
"""The length of the transactional id, acks, timeout, topics, the length of a name."""
_CLASSIC_PARTITION: Final = Struct(">iii")
"""Partitions, index, the length of the records."""
_COMPACT: Final = Struct(">BhiB")
_COMPACT_PARTITION: Final = Struct(">Bi")
_COMPACT_END: Final = bytes(3)
"""No tagged fields of the partition, the topic, and the request."""

_HEAD: Final = Struct(">iiih")
"""The size of the frame, the correlation id, topics, the length of a name."""
_APPENDED: Final = Struct(">iihqq")
"""Partitions, index, error code, base offset, log append time."""
_START_OFFSET: Final = Struct(">q")
_NO_RECORD_ERRORS: Final = Struct(">ih").pack(0, -1)
_NO_THROTTLE: Final = bytes(4)
_COMPACT_HEAD: Final = Struct(">iixB")
_COMPACT_APPENDED: Final = Struct(">BihqqqBB7x")
"""Likewise, with log start offset; errors, message; no tagged fields, throttle time 0, none."""
_SIZE_BYTES: Final = 4
_HEAD_SIZE: Final = _HEAD.size - _SIZE_BYTES
_COMPACT_HEAD_SIZE: Final = _COMPACT_HEAD.size - _SIZE_BYTES

_NULL: Final = 0
_EMPTY: Final = 1
_ONE: Final = 2
"""How many elements a compact array has is written as one more, and 0 for no array."""


class SingleProduce(NamedTuple):
    """
    One batch for one partition.
    """

    acks: int
    timeout_ms: int
    topic: bytes
    """The name, or from version 13 on the topic id."""
    partition: int
    records: memoryview


def read_single_produce(frame: memoryview, position: int, version: int) -> SingleProduce | None:
    """
    The request whose body begins at *position*, or None if it is not of the plain form.

    The records are not copied.
    """
    try:
        if version < FIRST_FLEXIBLE_VERSION:
            return _read_classic(frame, position)
        return _read_compact(frame, position, version)
    except (error, IndexError, DecodeError):
        return None


def _read_classic(frame: memoryview, position: int) -> SingleProduce | None:
    id_length, acks, timeout_ms, topics, size = _CLASSIC.unpack_from(frame, position)
    if id_length != -1 or topics != 1 or size < 0:
        return None
    position += _CLASSIC.size
    topic = bytes(frame[position : position + size])
    position += size
    partitions, index, size = _CLASSIC_PARTITION.unpack_from(frame, position)
    position += _CLASSIC_PARTITION.size
    if partitions != 1 or size < 0 or position + size != len(frame):
        return None
    return SingleProduce(acks, timeout_ms, topic, index, frame[position:])


def _read_compact(frame: memoryview, position: int, version: int) -> SingleProduce | None:
    id_length, acks, timeout_ms, topics = _COMPACT.unpack_from(frame, position)
    if id_length or topics != _ONE:
        return None
    position += _COMPACT.size
    size = _UUID_BYTES
    if version < FIRST_TOPIC_ID_VERSION:
        size, position = read_uvarint(frame, position)
        size -= 1
        if size < 0:
            return None
    topic = bytes(frame[position : position + size])
    position += size
    partitions, index = _COMPACT_PARTITION.unpack_from(frame, position)
    size, position = read_uvarint(frame, position + _COMPACT_PARTITION.size)
    end = position + size - 1
    if partitions != _ONE or size == 0 or frame[end:] != _COMPACT_END:
        return None
    return SingleProduce(acks, timeout_ms, topic, index, frame[position:end])


def single_produce_answer(
    version: int,
    correlation_id: int,
    topic: bytes,
    partition: int,
    *,
    base_offset: int,
    log_append_time_ms: int,
    log_start_offset: int,
) -> bytes:
    """
    The frame that tells that the batch was appended.
    """
    if version >= FIRST_FLEXIBLE_VERSION:
        if version < FIRST_TOPIC_ID_VERSION:
            topic = string_length(len(topic)) + topic
        body = topic + _COMPACT_APPENDED.pack(
            _ONE, partition, 0, base_offset, log_append_time_ms, log_start_offset, _EMPTY, _NULL
        )
        return _COMPACT_HEAD.pack(len(body) + _COMPACT_HEAD_SIZE, correlation_id, _ONE) + body
    body = topic + _APPENDED.pack(1, partition, 0, base_offset, log_append_time_ms)
    if version >= FIRST_START_OFFSET_VERSION:
        body += _START_OFFSET.pack(log_start_offset)
    if version >= FIRST_RECORD_ERRORS_VERSION:
        body += _NO_RECORD_ERRORS
    body += _NO_THROTTLE
    return _HEAD.pack(len(body) + _HEAD_SIZE, correlation_id, 1, len(topic)) + body
