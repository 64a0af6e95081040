"""
StreamsGroupDescribe (89): state, topology, assignments and members of streams groups (KIP-1071).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import STREAMS_GROUP_DESCRIBE
from barnabas.protocol.codec.primitives import INT32_MIN
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message, uint16


@message
class StreamsGroupDescribeRequest:
    api: ClassVar[Api] = STREAMS_GROUP_DESCRIBE

    group_ids: list[str]
    include_authorized_operations: bool


@message
class KeyValue:
    key: str
    value: str


@message
class TopicInfo:
    name: str
    partitions: int32
    replication_factor: int16
    topic_configs: list[KeyValue]


@message
class Subtopology:
    subtopology_id: str
    source_topics: list[str]
    repartition_sink_topics: list[str]
    state_changelog_topics: list[TopicInfo]
    repartition_source_topics: list[TopicInfo]


@message
class Topology:
    epoch: int32
    subtopologies: list[Subtopology] | None = None


@message
class Endpoint:
    host: str
    port: uint16


@message
class TaskOffset:
    subtopology_id: str
    partition: int32
    offset: int64


@message
class TaskIds:
    subtopology_id: str
    partitions: list[int32]


@message
class Assignment:
    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]


@message
class Member:
    member_id: str
    member_epoch: int32
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str
    client_host: str
    topology_epoch: int32
    process_id: str
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue]
    task_offsets: list[TaskOffset]
    task_end_offsets: list[TaskOffset]
    assignment: Assignment
    target_assignment: Assignment
    is_classic: bool


@message
class DescribedGroup:
    error_code: int16
    error_message: str | None = None
    group_id: str
    group_state: str
    group_epoch: int32
    assignment_epoch: int32
    topology: Topology | None = None
    members: list[Member]
    authorized_operations: int32 = INT32_MIN


@message
class StreamsGroupDescribeResponse:
    api: ClassVar[Api] = STREAMS_GROUP_DESCRIBE

    throttle_time_ms: int32 = 0
    groups: list[DescribedGroup]
