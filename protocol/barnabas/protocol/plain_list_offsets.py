"""
ListOffsets as today's consumers send it, without the objects of the general codec.

Spark's Kafka connector asks for both ends of a partition with each poll and waits for each answer,
so that its queries wait as long as such requests take. What is read and written here is
what ``codec`` reads and writes; whatever is not of the plain form is left to it::

    replica_id, isolation_level         throttle_time_ms 0
    topics          at least one        topics, in the same order
      name                                name
      partitions    at least one          partitions, in the same order
        index, leader_epoch, timestamp      index, error_code 0, timestamp -1, offset, leader_epoch
    timeout_ms (v10)
    no tagged fields

This module is compiled when there is a compiler.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Final

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.primitives import compact_length, read_compact_length, string_length

FIRST_FLEXIBLE_VERSION: Final = 6
FIRST_TIMEOUT_VERSION: Final = 10

_REQUEST: Final = Struct(">ib")
"""Replica id, isolation level."""
_PARTITION: Final = Struct(">iiqB")
"""Index, leader epoch, timestamp, tagged fields."""
_TIMEOUT_BYTES: Final = 4
_NO_TAGS: Final = 0
_NO_TAGS_BYTE: Final = bytes(1)

_HEAD: Final = Struct(">iixi")
"""The size of the frame, the correlation id, no tagged fields, throttle time."""
_ENTRY: Final = Struct(">ihqqix")
"""Index, error code, timestamp, offset, leader epoch, no tagged fields."""
_SIZE_BYTES: Final = 4


class WantedOffset:
    """
    What the request asks of one partition, and, once it is found, the answer.
    """

    __slots__ = ("epoch", "index", "leader_epoch", "offset", "timestamp")

    def __init__(self, index: int, leader_epoch: int, timestamp: int) -> None:
        self.index = index
        self.leader_epoch = leader_epoch
        self.timestamp = timestamp
        self.offset = -1
        self.epoch = -1
        """The leader epoch of the record at the offset."""


class TopicOfOffsets:
    """
    What the request asks of one topic.
    """

    __slots__ = ("name", "partitions")

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.partitions: list[WantedOffset] = []


class PlainListOffsets:
    """
    A request of the plain form.
    """

    __slots__ = ("isolation_level", "replica_id", "topics")

    def __init__(self, replica_id: int, isolation_level: int) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics: list[TopicOfOffsets] = []


def read_plain_list_offsets(
    frame: memoryview, position: int, version: int
) -> PlainListOffsets | None:
    """
    The request whose body begins at *position*, or None if it is not of the plain form.
    """
    if version < FIRST_FLEXIBLE_VERSION:
        return None
    try:
        return _read(frame, position, version)
    except (error, IndexError, DecodeError):
        return None


def _read(frame: memoryview, position: int, version: int) -> PlainListOffsets | None:
    request = PlainListOffsets(*_REQUEST.unpack_from(frame, position))
    topics, position = read_compact_length(frame, position + _REQUEST.size)
    if topics < 1:
        return None
    for _ in range(topics):
        size, position = read_compact_length(frame, position)
        topic = TopicOfOffsets(bytes(frame[position : position + size]))
        partitions, position = read_compact_length(frame, position + size)
        if size < 0 or partitions < 1:
            return None
        for _ in range(partitions):
            index, leader_epoch, timestamp, tags = _PARTITION.unpack_from(frame, position)
            if tags != _NO_TAGS:
                return None
            topic.partitions.append(WantedOffset(index, leader_epoch, timestamp))
            position += _PARTITION.size
        if frame[position] != _NO_TAGS:
            return None
        position += 1
        request.topics.append(topic)
    if version >= FIRST_TIMEOUT_VERSION:
        position += _TIMEOUT_BYTES
    return request if frame[position] == _NO_TAGS and position + 1 == len(frame) else None


def plain_list_offsets_answer(correlation_id: int, request: PlainListOffsets) -> bytes:
    """
    The frame that tells what was found for all partitions of *request*.
    """
    parts = [compact_length(len(request.topics))]
    for topic in request.topics:
        parts += [string_length(len(topic.name)), topic.name, compact_length(len(topic.partitions))]
        for wanted in topic.partitions:
            parts.append(_ENTRY.pack(wanted.index, 0, -1, wanted.offset, wanted.epoch))
        parts.append(_NO_TAGS_BYTE)
    parts.append(_NO_TAGS_BYTE)
    body = b"".join(parts)
    return _HEAD.pack(_HEAD.size - _SIZE_BYTES + len(body), correlation_id, 0) + body
