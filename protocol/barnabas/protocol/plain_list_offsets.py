"""
ListOffsets as today's consumers send it, without the objects of the general codec.

Spark's Kafka connector asks for both ends of a partition with each poll and waits for each answer,
so that its queries wait as long as such requests take. So the answer is written while the request
is read, by asking for one offset after the other. What is read and written here is what ``codec``
reads and writes; whatever is not of the plain form is left to it::

    replica_id -1, isolation_level      throttle_time_ms 0
    topics          at least one        topics, in the same order
      name          each once             name
      partitions    at least one          partitions, in the same order
        index, leader_epoch, timestamp      index, error_code 0, timestamp -1, offset, leader_epoch
    timeout_ms (v10)
    no tagged fields

This module is compiled when there is a compiler.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Final, Protocol

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.primitives import (
    MAX_STRING_BYTES,
    compact_length,
    read_compact_length,
    string_length,
)

FIRST_FLEXIBLE_VERSION: Final = 6
FIRST_TIMEOUT_VERSION: Final = 10

_CONSUMER: Final = -1
_REQUEST: Final = Struct(">ib")
"""Replica id, isolation level."""
_REQUEST_BYTES: Final = 5
_PARTITION: Final = Struct(">iiqB")
"""Index, leader epoch, timestamp, tagged fields."""
_PARTITION_BYTES: Final = 17
_TIMEOUT_BYTES: Final = 4
_NO_TAGS: Final = 0
_NO_TAGS_BYTE: Final = bytes(1)

_HEAD: Final = Struct(">iixi")
"""The size of the frame, the correlation id, no tagged fields, throttle time."""
_HEAD_BYTES_COUNTED: Final = 9
"""Without the size."""
_ENTRY: Final = Struct(">ihqqix")
"""Index, error code, timestamp, offset, leader epoch, no tagged fields."""


class FindOffset(Protocol):
    """
    Where a log has what a consumer asks for.
    """

    def __call__(
        self, topic: bytes, index: int, leader_epoch: int, timestamp: int, isolation_level: int, /
    ) -> tuple[int, int] | None:
        """
        The offset, and the leader epoch of the record there; None if the general way has to answer.
        """


def answer_plain_list_offsets(
    frame: memoryview, position: int, version: int, correlation_id: int, find: FindOffset
) -> bytes | None:
    """
    The frame that answers the request whose body begins at *position*, or None if that is not of
    the plain form, or *find* has found nothing.

    Raises:
        Exception: whatever *find* raises, unless it is what damaged requests raise.
    """
    if version < FIRST_FLEXIBLE_VERSION:
        return None
    try:
        return _answer(frame[position:].tobytes(), version, correlation_id, find)
    except (_OtherForm, error, IndexError, DecodeError):
        return None


class _OtherForm(Exception):
    """
    The request is not of the plain form.
    """


def _answer(body: bytes, version: int, correlation_id: int, find: FindOffset) -> bytes:
    replica_id: int
    tags: int
    replica_id, isolation_level = _REQUEST.unpack_from(body)
    topics, position = read_compact_length(body, _REQUEST_BYTES)
    _expect(replica_id == _CONSUMER and topics > 0)
    parts = [compact_length(topics)]
    names: list[bytes] = []
    for _ in range(topics):
        size, position = read_compact_length(body, position)
        # Before the slice: compiled, there is none that ends before it begins.
        _expect(0 <= size <= MAX_STRING_BYTES)
        name = body[position : position + size]
        partitions, position = read_compact_length(body, position + size)
        _expect(partitions > 0)
        parts += [string_length(size), name, compact_length(partitions)]
        names.append(name)
        indexes: list[int] = []
        for _ in range(partitions):
            index, leader_epoch, timestamp, tags = _PARTITION.unpack_from(body, position)
            found = find(name, index, leader_epoch, timestamp, isolation_level)
            if found is None or tags != _NO_TAGS:
                raise _OtherForm
            offset, epoch = found
            parts.append(_ENTRY.pack(index, 0, -1, offset, epoch))
            indexes.append(index)
            position += _PARTITION_BYTES
        _expect(body[position] == _NO_TAGS)
        _expect(partitions == 1 or len(set(indexes)) == partitions)
        parts.append(_NO_TAGS_BYTE)
        position += 1
    if version >= FIRST_TIMEOUT_VERSION:
        position += _TIMEOUT_BYTES
    _expect(body[position] == _NO_TAGS and position + 1 == len(body))
    _expect(topics == 1 or len(set(names)) == topics)
    parts.append(_NO_TAGS_BYTE)
    answer = b"".join(parts)
    return _HEAD.pack(_HEAD_BYTES_COUNTED + len(answer), correlation_id, 0) + answer


def _expect(holds: bool) -> None:
    if not holds:
        raise _OtherForm
