"""
Produce as nearly all producers send it, without the objects of the general codec.

Where requests have few records, or many partitions with a few each, decoding and encoding messages
costs more than storing them. What is read and written here is what ``codec`` reads and writes;
whatever is not of the plain form is left to it::

    transactional_id  null              responses           the topics, in the same order
    acks, timeout_ms                      name or topic_id
    topic_data        at least one        partitions, in the same order
      name or topic_id                      index, error_code 0, base_offset,
      partition_data  at least one          log_append_time_ms, log_start_offset (v5),
        index, records (not null)           no record_errors, no error_message (v8)
    no tagged fields (v9)               throttle_time_ms    0
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from struct import Struct, error
from typing import Final

from barnabas.protocol.codec.primitives import (
    ENTRIES_AT_ONCE,
    compact_length,
    read_compact_length,
    string_length,
)
from barnabas.protocol.errors import DecodeError

FIRST_START_OFFSET_VERSION: Final = 5
FIRST_RECORD_ERRORS_VERSION: Final = 8
FIRST_FLEXIBLE_VERSION: Final = 9
FIRST_TOPIC_ID_VERSION: Final = 13

_UUID_BYTES: Final = 16
_CLASSIC: Final = Struct(">hhii")
"""The length of the transactional id, acks, timeout, topics."""
_COMPACT: Final = Struct(">Bhi")
_CLASSIC_TOPIC: Final = Struct(">h")
_COUNT: Final = Struct(">i")
_PARTITION: Final = Struct(">ii")
"""Index, the length of the records."""
_INDEX: Final = Struct(">i")
_NO_TAGS: Final = 0
_NO_TAGS_BYTE: Final = bytes(1)

_HEAD: Final = Struct(">iii")
"""The size of the frame, the correlation id, topics."""
_COMPACT_HEAD: Final = Struct(">iix")
_ENTRIES: Final = (Struct(">ihqq"), Struct(">ihqqq"), Struct(">ihqqqih"))
"""Index, error code, base offset, log append time; log start offset; no errors, no message."""
_COMPACT_ENTRY: Final = Struct(">ihqqqBBx")
"""Likewise, and no tagged fields."""
_NO_THROTTLE: Final = bytes(4)
_COMPACT_END: Final = bytes(5)
"""Throttle time 0, no tagged fields."""
_SIZE_BYTES: Final = 4

_NULL: Final = 0
_EMPTY: Final = 1


class ProducedBatch:
    """
    What the request has for one partition, and, once it was appended, what became of it.
    """

    __slots__ = ("base_offset", "index", "log_append_time_ms", "log_start_offset", "records")

    def __init__(self, index: int, records: memoryview) -> None:
        self.index = index
        self.records = records
        self.base_offset = -1
        self.log_append_time_ms = -1
        self.log_start_offset = -1


class ProducedTopic:
    """
    The batches for one topic.
    """

    __slots__ = ("batches", "topic")

    def __init__(self, topic: bytes) -> None:
        self.topic = topic
        """The name, or from version 13 on the topic id."""
        self.batches: list[ProducedBatch] = []


class PlainProduce:
    """
    A request of the plain form.
    """

    __slots__ = ("acks", "timeout_ms", "topics")

    def __init__(self, acks: int, timeout_ms: int) -> None:
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topics: list[ProducedTopic] = []


def read_plain_produce(frame: memoryview, position: int, version: int) -> PlainProduce | None:
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


def _read_classic(frame: memoryview, position: int) -> PlainProduce | None:
    id_length, acks, timeout_ms, topics = _CLASSIC.unpack_from(frame, position)
    if id_length != -1 or topics < 1:
        return None
    left = ENTRIES_AT_ONCE
    position += _CLASSIC.size
    request = PlainProduce(acks, timeout_ms)
    frame_end = len(frame)
    for _ in range(topics):
        (size,) = _CLASSIC_TOPIC.unpack_from(frame, position)
        position += _CLASSIC_TOPIC.size
        topic = ProducedTopic(bytes(frame[position : position + size]))
        position += size
        (partitions,) = _COUNT.unpack_from(frame, position)
        left -= partitions
        if size < 0 or partitions < 1 or left < 0:
            return None
        position += _COUNT.size
        for _ in range(partitions):
            index, size = _PARTITION.unpack_from(frame, position)
            position += _PARTITION.size
            end = position + size
            if not position <= end <= frame_end:
                return None
            topic.batches.append(ProducedBatch(index, frame[position:end]))
            position = end
        request.topics.append(topic)
    return request if position == frame_end else None


def _read_compact(frame: memoryview, position: int, version: int) -> PlainProduce | None:
    id_length, acks, timeout_ms = _COMPACT.unpack_from(frame, position)
    topics, position = read_compact_length(frame, position + _COMPACT.size)
    if id_length != _NULL or topics < 1:
        return None
    left = ENTRIES_AT_ONCE
    request = PlainProduce(acks, timeout_ms)
    for _ in range(topics):
        size = _UUID_BYTES
        if version < FIRST_TOPIC_ID_VERSION:
            size, position = read_compact_length(frame, position)
        topic = ProducedTopic(bytes(frame[position : position + size]))
        partitions, position = read_compact_length(frame, position + size)
        left -= partitions
        if size < 0 or partitions < 1 or left < 0:
            return None
        for _ in range(partitions):
            (index,) = _INDEX.unpack_from(frame, position)
            size, position = read_compact_length(frame, position + _INDEX.size)
            end = position + size
            if size < 0 or frame[end] != _NO_TAGS:
                return None
            topic.batches.append(ProducedBatch(index, frame[position:end]))
            position = end + 1
        if frame[position] != _NO_TAGS:
            return None
        position += 1
        request.topics.append(topic)
    return request if frame[position] == _NO_TAGS and position + 1 == len(frame) else None


def plain_produce_answer(version: int, correlation_id: int, request: PlainProduce) -> bytes:
    """
    The frame that tells that all batches of *request* were appended.
    """
    if version >= FIRST_FLEXIBLE_VERSION:
        return _compact_answer(version, correlation_id, request)
    entry = _ENTRIES[
        (version >= FIRST_START_OFFSET_VERSION) + (version >= FIRST_RECORD_ERRORS_VERSION)
    ]
    parts = [b""]
    size = _HEAD.size - _SIZE_BYTES + len(_NO_THROTTLE)
    for topic in request.topics:
        name = topic.topic
        count = len(topic.batches)
        parts += [_CLASSIC_TOPIC.pack(len(name)), name, _COUNT.pack(count)]
        size += _CLASSIC_TOPIC.size + len(name) + _COUNT.size + count * entry.size
        parts += [_classic_entry(entry, version, batch) for batch in topic.batches]
    parts[0] = _HEAD.pack(size, correlation_id, len(request.topics))
    parts.append(_NO_THROTTLE)
    return b"".join(parts)


def _classic_entry(entry: Struct, version: int, batch: ProducedBatch) -> bytes:
    index, offset, time_ms = batch.index, batch.base_offset, batch.log_append_time_ms
    if version < FIRST_START_OFFSET_VERSION:
        return entry.pack(index, 0, offset, time_ms)
    if version < FIRST_RECORD_ERRORS_VERSION:
        return entry.pack(index, 0, offset, time_ms, batch.log_start_offset)
    return entry.pack(index, 0, offset, time_ms, batch.log_start_offset, 0, -1)


def _compact_answer(version: int, correlation_id: int, request: PlainProduce) -> bytes:
    parts = [b"", compact_length(len(request.topics))]
    for topic in request.topics:
        if version < FIRST_TOPIC_ID_VERSION:
            parts.append(string_length(len(topic.topic)))
        parts += [topic.topic, compact_length(len(topic.batches))]
        parts += [_compact_entry(batch) for batch in topic.batches]
        parts.append(_NO_TAGS_BYTE)
    parts.append(_COMPACT_END)
    body = b"".join(parts)
    return _COMPACT_HEAD.pack(len(body) + _COMPACT_HEAD.size - _SIZE_BYTES, correlation_id) + body


def _compact_entry(batch: ProducedBatch) -> bytes:
    return _COMPACT_ENTRY.pack(
        batch.index,
        0,
        batch.base_offset,
        batch.log_append_time_ms,
        batch.log_start_offset,
        _EMPTY,
        _NULL,
    )
