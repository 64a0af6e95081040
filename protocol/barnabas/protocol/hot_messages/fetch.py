"""
The hot codec of Fetch (1); ``messages/fetch.py`` has the schema.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from operator import attrgetter
from struct import Struct
from typing import Final
from uuid import UUID

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.hot_messages.fields import FieldReader, FieldWriter, node_endpoints
from barnabas.protocol.messages.fetch import (
    FIRST_TOPIC_ID_VERSION,
    NO_DIVERGING_EPOCH,
    NO_HIGH_WATERMARK,
    NO_LEADER,
    NO_REPLICA,
    NO_SNAPSHOT,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)

FIRST_START_OFFSET_VERSION: Final = 5
FIRST_SESSION_VERSION: Final = 7
FIRST_LEADER_EPOCH_VERSION: Final = 9
FIRST_RACK_VERSION: Final = 11
FIRST_FLEXIBLE_VERSION: Final = 12
FIRST_REPLICA_STATE_VERSION: Final = 15
FIRST_NODE_ENDPOINTS_VERSION: Final = 16
FIRST_DIRECTORY_ID_VERSION: Final = 17
FIRST_HIGH_WATERMARK_VERSION: Final = 18

_WAIT_AND_SIZES: Final = Struct(">iiib")
"""Longest wait, least bytes, most bytes, isolation level."""
_SESSION: Final = Struct(">ii")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_PARTITION_V4: Final = Struct(">iqi")
"""Index, fetch offset, most bytes."""
_PARTITION_V5: Final = Struct(">iqqi")
"""Index, fetch offset, log start offset, most bytes."""
_PARTITION_V9: Final = Struct(">iiqqi")
"""Index, leader epoch, fetch offset, log start offset, most bytes."""
_PARTITION_V12: Final = Struct(">iiqiqi")
"""Index, leader epoch, fetch offset, last fetched epoch, log start offset, most bytes."""
_REPLICA_STATE: Final = Struct(">iq")

_HEAD: Final = Struct(">ihi")
"""Throttle time, error code, session id."""
_DATA_V4: Final = Struct(">ihqq")
"""Index, error code, high watermark, last stable offset."""
_DATA_V5: Final = Struct(">ihqqq")
"""Likewise, and the log start offset."""
_ABORTED: Final = Struct(">qq")
_EPOCH_END: Final = Struct(">iqx")
_LEADER: Final = Struct(">iix")
_SNAPSHOT: Final = Struct(">qix")

_new: Final = object.__new__
_records: Final = attrgetter("records")
"""
The records of a partition, whose type is not checked: they may still be in a file.
"""


def read_request(
    frame: Buffer, position: int, version: int, most_entries: int
) -> tuple[FetchRequest, int]:
    """
    The request at *position* of *frame*, and the position after it.
    """
    # Bytes are read faster than a view on them, and a request of this API has few.
    data = bytes(frame[position:])
    is_flexible = version >= FIRST_FLEXIBLE_VERSION
    reader = FieldReader(data, 0, most_entries, is_flexible=is_flexible)
    request: FetchRequest = _new(FetchRequest)
    request.cluster_id = None
    request.replica_state = NO_REPLICA
    if version < FIRST_REPLICA_STATE_VERSION:
        (request.replica_id,) = _INT32.unpack_from(data, reader.take(4))
    else:
        request.replica_id = -1
    (
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
    ) = _WAIT_AND_SIZES.unpack_from(data, reader.take(13))
    if version >= FIRST_SESSION_VERSION:
        request.session_id, request.session_epoch = _SESSION.unpack_from(data, reader.take(8))
    else:
        request.session_id, request.session_epoch = 0, -1
    request.topics = topics = []
    for _ in range(reader.count()):
        topic: FetchTopic = _new(FetchTopic)
        if version >= FIRST_TOPIC_ID_VERSION:
            topic.topic = ""
            topic.topic_id = reader.uuid()
        else:
            topic.topic = reader.string()
            topic.topic_id = ZERO_UUID
        topic.partitions = partitions = []
        for _ in range(reader.count()):
            partitions.append(_read_partition(reader, version))
        reader.skip_tags()
        topics.append(topic)
    if version >= FIRST_SESSION_VERSION:
        request.forgotten_topics_data = _read_forgotten(reader, version)
    else:
        request.forgotten_topics_data = []
    request.rack_id = reader.string() if version >= FIRST_RACK_VERSION else ""
    if is_flexible:
        _read_request_tags(reader, request, version)
    return request, position + reader.position


def _read_partition(reader: FieldReader, version: int) -> FetchPartition:
    data = reader.data
    partition: FetchPartition = _new(FetchPartition)
    if version >= FIRST_FLEXIBLE_VERSION:
        (
            partition.partition,
            partition.current_leader_epoch,
            partition.fetch_offset,
            partition.last_fetched_epoch,
            partition.log_start_offset,
            partition.partition_max_bytes,
        ) = _PARTITION_V12.unpack_from(data, reader.take(32))
    else:
        partition.last_fetched_epoch = -1
        _read_classic_partition(reader, partition, version)
    partition.replica_directory_id = ZERO_UUID
    partition.high_watermark = NO_HIGH_WATERMARK
    if version < FIRST_DIRECTORY_ID_VERSION:
        reader.skip_tags()
        return partition
    for _ in range(reader.tag_count()):
        tag, end = reader.tag()
        if tag == 0:
            partition.replica_directory_id = reader.uuid()
        elif tag == 1 and version >= FIRST_HIGH_WATERMARK_VERSION:
            (partition.high_watermark,) = _INT64.unpack_from(data, reader.take(8))
        else:
            reader.position = end
        reader.expect(end)
    return partition


def _read_classic_partition(reader: FieldReader, partition: FetchPartition, version: int) -> None:
    data = reader.data
    if version >= FIRST_LEADER_EPOCH_VERSION:
        (
            partition.partition,
            partition.current_leader_epoch,
            partition.fetch_offset,
            partition.log_start_offset,
            partition.partition_max_bytes,
        ) = _PARTITION_V9.unpack_from(data, reader.take(28))
        return
    partition.current_leader_epoch = -1
    if version >= FIRST_START_OFFSET_VERSION:
        (
            partition.partition,
            partition.fetch_offset,
            partition.log_start_offset,
            partition.partition_max_bytes,
        ) = _PARTITION_V5.unpack_from(data, reader.take(24))
        return
    partition.log_start_offset = -1
    (
        partition.partition,
        partition.fetch_offset,
        partition.partition_max_bytes,
    ) = _PARTITION_V4.unpack_from(data, reader.take(16))


def _read_forgotten(reader: FieldReader, version: int) -> list[ForgottenTopic]:
    forgotten: list[ForgottenTopic] = []
    for _ in range(reader.count()):
        name, topic_id = "", ZERO_UUID
        if version >= FIRST_TOPIC_ID_VERSION:
            topic_id = reader.uuid()
        else:
            name = reader.string()
        indexes = [
            _INT32.unpack_from(reader.data, reader.take(4))[0] for _ in range(reader.count())
        ]
        reader.skip_tags()
        forgotten.append(ForgottenTopic(topic=name, topic_id=topic_id, partitions=indexes))
    return forgotten


def _read_request_tags(reader: FieldReader, request: FetchRequest, version: int) -> None:
    for _ in range(reader.tag_count()):
        tag, end = reader.tag()
        if tag == 0:
            request.cluster_id = reader.nullable_string()
        elif tag == 1 and version >= FIRST_REPLICA_STATE_VERSION:
            replica_id, epoch = _REPLICA_STATE.unpack_from(reader.data, reader.take(12))
            reader.skip_tags()
            request.replica_state = ReplicaState(replica_id=replica_id, replica_epoch=epoch)
        else:
            reader.position = end
        reader.expect(end)


def partition_data(
    index: int,
    error_code: int,
    *,
    high_watermark: int,
    last_stable_offset: int = -1,
    log_start_offset: int = -1,
) -> PartitionData:
    """
    A ``PartitionData`` without records, made faster than its own constructor makes one.
    """
    made: PartitionData = _new(PartitionData)
    made.partition_index = index
    made.error_code = error_code
    made.high_watermark = high_watermark
    made.last_stable_offset = last_stable_offset
    made.log_start_offset = log_start_offset
    made.diverging_epoch = NO_DIVERGING_EPOCH
    made.current_leader = NO_LEADER
    made.snapshot_id = NO_SNAPSHOT
    made.aborted_transactions = None
    made.preferred_read_replica = -1
    made.records = b""
    return made


def topic_response(
    topic: str, topic_id: UUID, partitions: list[PartitionData]
) -> FetchableTopicResponse:
    """
    A ``FetchableTopicResponse``, likewise.
    """
    made: FetchableTopicResponse = _new(FetchableTopicResponse)
    made.topic = topic
    made.topic_id = topic_id
    made.partitions = partitions
    return made


def fetch_response(
    responses: list[FetchableTopicResponse], *, session_id: int = 0, error_code: int = 0
) -> FetchResponse:
    """
    A ``FetchResponse``, likewise.
    """
    made: FetchResponse = _new(FetchResponse)
    made.throttle_time_ms = 0
    made.error_code = error_code
    made.session_id = session_id
    made.responses = responses
    made.node_endpoints = []
    return made


def write_response(response: FetchResponse, version: int, most_entries: int) -> list[Buffer]:
    """
    The buffers of *response*; those of records are not copied.
    """
    is_flexible = version >= FIRST_FLEXIBLE_VERSION
    writer = FieldWriter(most_entries, is_flexible=is_flexible)
    if version >= FIRST_SESSION_VERSION:
        writer.add(_HEAD.pack(response.throttle_time_ms, response.error_code, response.session_id))
    else:
        writer.add(_INT32.pack(response.throttle_time_ms))
    writer.count(len(response.responses))
    for topic in response.responses:
        if version >= FIRST_TOPIC_ID_VERSION:
            writer.add(topic.topic_id.bytes)
        else:
            writer.string(topic.topic)
        writer.count(len(topic.partitions))
        for partition in topic.partitions:
            _write_partition(writer, partition, version)
        writer.no_tags()
    if version >= FIRST_NODE_ENDPOINTS_VERSION and response.node_endpoints:
        writer.tags([(0, node_endpoints(response.node_endpoints, most_entries))])
    else:
        writer.no_tags()
    return writer.buffers()


def _write_partition(writer: FieldWriter, data: PartitionData, version: int) -> None:
    index, code = data.partition_index, data.error_code
    if version >= FIRST_START_OFFSET_VERSION:
        writer.add(
            _DATA_V5.pack(
                index, code, data.high_watermark, data.last_stable_offset, data.log_start_offset
            )
        )
    else:
        writer.add(_DATA_V4.pack(index, code, data.high_watermark, data.last_stable_offset))
    aborted = data.aborted_transactions
    if aborted is None:
        writer.null_array()
    else:
        writer.count(len(aborted))
        for transaction in aborted:
            writer.add(_ABORTED.pack(transaction.producer_id, transaction.first_offset))
            writer.no_tags()
    if version >= FIRST_RACK_VERSION:
        writer.add(_INT32.pack(data.preferred_read_replica))
    writer.records(_records(data))
    if (
        data.diverging_epoch is NO_DIVERGING_EPOCH
        and data.current_leader is NO_LEADER
        and data.snapshot_id is NO_SNAPSHOT
    ) or version < FIRST_FLEXIBLE_VERSION:
        writer.no_tags()
    else:
        writer.tags(_partition_tags(data))


def _partition_tags(data: PartitionData) -> list[tuple[int, bytes]]:
    tags: list[tuple[int, bytes]] = []
    diverging, leader, snapshot = data.diverging_epoch, data.current_leader, data.snapshot_id
    if diverging != NO_DIVERGING_EPOCH:
        tags.append((0, _EPOCH_END.pack(diverging.epoch, diverging.end_offset)))
    if leader != NO_LEADER:
        tags.append((1, _LEADER.pack(leader.leader_id, leader.leader_epoch)))
    if snapshot != NO_SNAPSHOT:
        tags.append((2, _SNAPSHOT.pack(snapshot.end_offset, snapshot.epoch)))
    return tags
