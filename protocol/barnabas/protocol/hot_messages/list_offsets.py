"""
The hot codec of ListOffsets (2); ``messages/list_offsets.py`` has the schema.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from struct import Struct
from typing import Final

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.hot_messages.fields import FieldReader, FieldWriter
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

FIRST_ISOLATION_VERSION: Final = 2
FIRST_LEADER_EPOCH_VERSION: Final = 4
FIRST_FLEXIBLE_VERSION: Final = 6
FIRST_TIMEOUT_VERSION: Final = 10

_INT32: Final = Struct(">i")
_REPLICA_AND_ISOLATION: Final = Struct(">ib")
_PARTITION_V1: Final = Struct(">iq")
"""Index, timestamp."""
_PARTITION_V4: Final = Struct(">iiq")
"""Index, leader epoch, timestamp."""
_FOUND_V1: Final = Struct(">ihqq")
"""Index, error code, timestamp, offset."""
_FOUND_V4: Final = Struct(">ihqqi")
"""Likewise, and the leader epoch."""

_new: Final = object.__new__


def read_request(
    frame: Buffer, position: int, version: int, most_entries: int
) -> tuple[ListOffsetsRequest, int]:
    """
    The request at *position* of *frame*, and the position after it.
    """
    # Bytes are read faster than a view on them, and a request of this API has few.
    data = bytes(frame[position:])
    reader = FieldReader(data, 0, most_entries, is_flexible=version >= FIRST_FLEXIBLE_VERSION)
    request: ListOffsetsRequest = _new(ListOffsetsRequest)
    if version >= FIRST_ISOLATION_VERSION:
        request.replica_id, request.isolation_level = _REPLICA_AND_ISOLATION.unpack_from(
            data, reader.take(5)
        )
    else:
        (request.replica_id,) = _INT32.unpack_from(data, reader.take(4))
        request.isolation_level = 0
    request.topics = topics = []
    for _ in range(reader.count()):
        topic: ListOffsetsTopic = _new(ListOffsetsTopic)
        topic.name = reader.string()
        topic.partitions = partitions = []
        for _ in range(reader.count()):
            partition: ListOffsetsPartition = _new(ListOffsetsPartition)
            if version >= FIRST_LEADER_EPOCH_VERSION:
                (
                    partition.partition_index,
                    partition.current_leader_epoch,
                    partition.timestamp,
                ) = _PARTITION_V4.unpack_from(data, reader.take(16))
            else:
                partition.partition_index, partition.timestamp = _PARTITION_V1.unpack_from(
                    data, reader.take(12)
                )
                partition.current_leader_epoch = -1
            reader.skip_tags()
            partitions.append(partition)
        reader.skip_tags()
        topics.append(topic)
    request.timeout_ms = 0
    if version >= FIRST_TIMEOUT_VERSION:
        (request.timeout_ms,) = _INT32.unpack_from(data, reader.take(4))
    reader.skip_tags()
    return request, position + reader.position


def write_response(response: ListOffsetsResponse, version: int, most_entries: int) -> list[Buffer]:
    """
    The buffers of *response*.
    """
    writer = FieldWriter(most_entries, is_flexible=version >= FIRST_FLEXIBLE_VERSION)
    if version >= FIRST_ISOLATION_VERSION:
        writer.add(_INT32.pack(response.throttle_time_ms))
    writer.count(len(response.topics))
    for topic in response.topics:
        writer.string(topic.name)
        writer.count(len(topic.partitions))
        for found in topic.partitions:
            index, code = found.partition_index, found.error_code
            timestamp, offset = found.timestamp, found.offset
            if version >= FIRST_LEADER_EPOCH_VERSION:
                writer.add(_FOUND_V4.pack(index, code, timestamp, offset, found.leader_epoch))
            else:
                writer.add(_FOUND_V1.pack(index, code, timestamp, offset))
            writer.no_tags()
        writer.no_tags()
    writer.no_tags()
    return writer.buffers()
