"""
ListOffsets as today's consumers send it, without the objects of the general codec.

A request for very many partitions is left to it as well.

Spark's Kafka connector asks for both ends of a partition with each poll and waits for each answer,
so that its queries wait as long as such requests take. It asks the same each time: a request is
read once, and what was read answers all that follow. What is read and written here is what
``codec`` reads and writes; whatever is not of the plain form is left to it::

    replica_id -1, isolation_level      throttle_time_ms 0
    topics          at least one        topics, in the same order
      name          each once             name
      partitions    at least one          partitions, in the same order
        index, leader_epoch, timestamp      index, error_code 0, timestamp -1, offset, leader_epoch
    timeout_ms (v10)
    no tagged fields
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from struct import Struct, error
from typing import Final, TypeAlias

from barnabas.protocol.codec.primitives import (
    ENTRIES_AT_ONCE,
    MAX_STRING_BYTES,
    compact_length,
    read_compact_length,
    string_length,
)
from barnabas.protocol.errors import DecodeError

FIRST_FLEXIBLE_VERSION: Final = 6
FIRST_TIMEOUT_VERSION: Final = 10

Asked: TypeAlias = "tuple[bytes, int, int, int]"
"""Topic, index, leader epoch, timestamp."""
Found: TypeAlias = "tuple[int, int]"
"""The offset, and the leader epoch of the record there."""

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

_SIZE_BYTES: Final = 4
_NO_TAGS_NO_THROTTLE: Final = bytes(1 + 4)
_INDEX_NO_ERROR_NO_TIMESTAMP: Final = Struct(">ihq")


class PlainListOffsets:
    """
    What a request of the plain form asks for, and all of its answer but what is found.
    """

    __slots__ = ("_end", "_form", "_heads", "_size", "asked", "isolation_level")

    def __init__(
        self, isolation_level: int, asked: list[Asked], heads: list[bytes], end: bytes
    ) -> None:
        """
        Args:
            heads: for each of *asked*, what stands in the answer between the correlation id, or the
                one before, and what is found.
            end: what stands behind the last.
        """
        self.isolation_level = isolation_level
        self.asked = asked
        self._heads = heads
        self._end = end
        found = "".join([f"{len(head)}sqix" for head in heads])
        self._form = Struct(f">i4s{found}{len(end)}s")
        self._size = self._form.size - _SIZE_BYTES

    def answer(self, correlation_id: bytes, found: list[Found]) -> bytes:
        """
        The frame of the answer.

        Args:
            correlation_id: of the request, as it stands there.
            found: what there is for each of ``asked``, in the same order.
        """
        fields: list[object] = [self._size, correlation_id]
        for number, head in enumerate(self._heads):
            offset, leader_epoch = found[number]
            fields += (head, offset, leader_epoch)
        fields.append(self._end)
        return self._form.pack(*fields)


def read_plain_list_offsets(body: bytes, version: int) -> PlainListOffsets | None:
    """
    What a request asks for, or None if that is not of the plain form.
    """
    if version < FIRST_FLEXIBLE_VERSION:
        return None
    try:
        return _read(body, version)
    except (_OtherForm, error, IndexError, DecodeError):
        return None


class _OtherForm(Exception):
    """
    The request is not of the plain form.
    """


def _read(body: bytes, version: int) -> PlainListOffsets:
    replica_id: int
    isolation_level: int
    index: int
    tags: int
    replica_id, isolation_level = _REQUEST.unpack_from(body)
    topics, position = read_compact_length(body, _REQUEST_BYTES)
    _expect(replica_id == _CONSUMER and topics > 0)
    head = _NO_TAGS_NO_THROTTLE + compact_length(topics)
    asked: list[Asked] = []
    heads: list[bytes] = []
    names: list[bytes] = []
    left = ENTRIES_AT_ONCE
    for _ in range(topics):
        size, position = read_compact_length(body, position)
        # Before the slice: compiled, there is none that ends before it begins.
        _expect(0 <= size <= MAX_STRING_BYTES)
        name = body[position : position + size]
        partitions, position = read_compact_length(body, position + size)
        left -= partitions
        _expect(partitions > 0 and left >= 0)
        head += string_length(size) + name + compact_length(partitions)
        names.append(name)
        indexes: list[int] = []
        for _ in range(partitions):
            index, leader_epoch, timestamp, tags = _PARTITION.unpack_from(body, position)
            _expect(tags == _NO_TAGS)
            asked.append((name, index, leader_epoch, timestamp))
            heads.append(head + _INDEX_NO_ERROR_NO_TIMESTAMP.pack(index, 0, -1))
            indexes.append(index)
            head = b""
            position += _PARTITION_BYTES
        _expect(body[position] == _NO_TAGS)
        _expect(partitions == 1 or len(set(indexes)) == partitions)
        head = _NO_TAGS_BYTE
        position += 1
    if version >= FIRST_TIMEOUT_VERSION:
        position += _TIMEOUT_BYTES
    _expect(body[position] == _NO_TAGS and position + 1 == len(body))
    _expect(topics == 1 or len(set(names)) == topics)
    return PlainListOffsets(isolation_level, asked, heads, head + _NO_TAGS_BYTE)


def _expect(holds: bool) -> None:
    if not holds:
        raise _OtherForm
