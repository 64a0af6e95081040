"""
The hot codec of Produce (0); ``messages/produce.py`` has the schema.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from struct import Struct
from typing import Final, TypeAlias, cast

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.hot_messages.fields import FieldReader, FieldWriter, node_endpoints
from barnabas.protocol.messages.produce import (
    FIRST_TOPIC_ID_VERSION,
    NO_LEADER,
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

FIRST_START_OFFSET_VERSION: Final = 5
FIRST_RECORD_ERRORS_VERSION: Final = 8
FIRST_FLEXIBLE_VERSION: Final = 9
FIRST_LEADER_VERSION: Final = 10

_ACKS_TIMEOUT: Final = Struct(">hi")
_INT32: Final = Struct(">i")
_APPENDED: Final = Struct(">ihqq")
"""Index, error code, base offset, log append time."""
_WITH_START_OFFSET: Final = Struct(">ihqqq")
_PLAIN_CLASSIC: Final = Struct(">ihqqqih")
"""Likewise, and no record errors (0), no message (-1)."""
_PLAIN_FLEXIBLE: Final = Struct(">ihqqqBBx")
"""Likewise (1, 0), and no tagged fields."""
_LEADER: Final = Struct(">iix")

_new: Final = object.__new__


def read_request(
    data: Buffer, position: int, version: int, most_entries: int
) -> tuple[ProduceRequest, int]:
    """
    The request at *position* of *data*, and the position after it; records are not copied.
    """
    reader = FieldReader(
        data, position, most_entries, is_flexible=version >= FIRST_FLEXIBLE_VERSION
    )
    request: ProduceRequest = _new(ProduceRequest)
    request.transactional_id = reader.nullable_string()
    request.acks, request.timeout_ms = _ACKS_TIMEOUT.unpack_from(data, reader.take(6))
    request.topic_data = topics = []
    for _ in range(reader.count()):
        topic: TopicProduceData = _new(TopicProduceData)
        if version >= FIRST_TOPIC_ID_VERSION:
            topic.name = ""
            topic.topic_id = reader.uuid()
        else:
            topic.name = reader.string()
            topic.topic_id = ZERO_UUID
        topic.partition_data = partitions = []
        for _ in range(reader.count()):
            partition: PartitionProduceData = _new(PartitionProduceData)
            (partition.index,) = _INT32.unpack_from(data, reader.take(4))
            partition.records = reader.records()
            reader.skip_tags()
            partitions.append(partition)
        reader.skip_tags()
        topics.append(topic)
    reader.skip_tags()
    return request, reader.position


class AppendedResponse:
    """
    A ``PartitionProduceResponse`` for a batch that was appended, which says no more than where.

    Nearly all responses are such. This class is compiled: an object of it is made, written and
    freed in less time.
    """

    __slots__ = ("base_offset", "error_code", "index", "log_append_time_ms", "log_start_offset")

    def __init__(
        self, index: int, base_offset: int, log_append_time_ms: int, log_start_offset: int
    ) -> None:
        self.index = index
        self.error_code = 0
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset

    # What the general codec asks for.

    @property
    def record_errors(self) -> list[BatchIndexAndErrorMessage]:
        return []

    @property
    def error_message(self) -> str | None:
        return None

    @property
    def current_leader(self) -> LeaderIdAndEpoch:
        return NO_LEADER


PartitionResponse: TypeAlias = PartitionProduceResponse | AppendedResponse


def topic_response(
    topic: TopicProduceData, partition_responses: list[PartitionResponse]
) -> TopicProduceResponse:
    """
    A ``TopicProduceResponse`` for *topic*, made faster than its own constructor makes one.
    """
    made: TopicProduceResponse = _new(TopicProduceResponse)
    made.name = topic.name
    made.topic_id = topic.topic_id
    made.partition_responses = cast("list[PartitionProduceResponse]", partition_responses)
    return made


def produce_response(responses: list[TopicProduceResponse]) -> ProduceResponse:
    """
    A ``ProduceResponse``, likewise.
    """
    made: ProduceResponse = _new(ProduceResponse)
    made.responses = responses
    made.throttle_time_ms = 0
    made.node_endpoints = []
    return made


def write_response(response: ProduceResponse, version: int, most_entries: int) -> list[Buffer]:
    """
    The buffers of *response*.
    """
    writer = FieldWriter(most_entries, is_flexible=version >= FIRST_FLEXIBLE_VERSION)
    writer.count(len(response.responses))
    for topic in response.responses:
        if version >= FIRST_TOPIC_ID_VERSION:
            writer.add(topic.topic_id.bytes)
        else:
            writer.string(topic.name)
        writer.count(len(topic.partition_responses))
        for partition in topic.partition_responses:
            _write_partition(writer, partition, version)
        writer.no_tags()
    writer.add(_INT32.pack(response.throttle_time_ms))
    if version >= FIRST_LEADER_VERSION and response.node_endpoints:
        writer.tags([(0, node_endpoints(response.node_endpoints, most_entries))])
    else:
        writer.no_tags()
    return writer.buffers()


def _write_partition(writer: FieldWriter, partition: PartitionResponse, version: int) -> None:
    if isinstance(partition, AppendedResponse):
        _write_place(
            writer,
            version,
            partition.index,
            partition.error_code,
            offset=partition.base_offset,
            time_ms=partition.log_append_time_ms,
            start=partition.log_start_offset,
        )
        return
    leader = partition.current_leader
    has_leader = leader is not NO_LEADER and version >= FIRST_LEADER_VERSION
    index, code = partition.index, partition.error_code
    offset, time_ms = partition.base_offset, partition.log_append_time_ms
    start = partition.log_start_offset
    is_plain = not partition.record_errors and partition.error_message is None and not has_leader
    if is_plain or version < FIRST_RECORD_ERRORS_VERSION:
        _write_place(writer, version, index, code, offset=offset, time_ms=time_ms, start=start)
        return
    writer.add(_WITH_START_OFFSET.pack(index, code, offset, time_ms, start))
    writer.count(len(partition.record_errors))
    for error in partition.record_errors:
        writer.add(_INT32.pack(error.batch_index))
        writer.nullable_string(error.batch_index_error_message)
        writer.no_tags()
    writer.nullable_string(partition.error_message)
    if has_leader and leader != NO_LEADER:
        writer.tags([(0, _LEADER.pack(leader.leader_id, leader.leader_epoch))])
    else:
        writer.no_tags()


def _write_place(
    writer: FieldWriter,
    version: int,
    index: int,
    code: int,
    *,
    offset: int,
    time_ms: int,
    start: int,
) -> None:
    """
    Write a response that has no messages and names no leader.
    """
    if version >= FIRST_FLEXIBLE_VERSION:
        writer.add(_PLAIN_FLEXIBLE.pack(index, code, offset, time_ms, start, 1, 0))
    elif version >= FIRST_RECORD_ERRORS_VERSION:
        writer.add(_PLAIN_CLASSIC.pack(index, code, offset, time_ms, start, 0, -1))
    elif version >= FIRST_START_OFFSET_VERSION:
        writer.add(_WITH_START_OFFSET.pack(index, code, offset, time_ms, start))
    else:
        writer.add(_APPENDED.pack(index, code, offset, time_ms))
