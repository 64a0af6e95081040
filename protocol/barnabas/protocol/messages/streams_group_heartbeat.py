"""
StreamsGroupHeartbeat (88): a member of a streams group joins, stays and leaves (KIP-1071).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import STREAMS_GROUP_HEARTBEAT
from barnabas.protocol.codec.schema import Api, int8, int16, int32, int64, message, since, uint16


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
class CopartitionGroup:
    source_topics: list[int16]
    source_topic_regex: list[int16]
    repartition_source_topics: list[int16]


@message
class Subtopology:
    subtopology_id: str
    source_topics: list[str]
    source_topic_regex: list[str]
    state_changelog_topics: list[TopicInfo]
    repartition_sink_topics: list[str]
    repartition_source_topics: list[TopicInfo]
    copartition_groups: list[CopartitionGroup]


@message
class Topology:
    epoch: int32
    subtopologies: list[Subtopology]


@message
class TaskIds:
    subtopology_id: str
    partitions: list[int32]


@message
class TaskOffset:
    subtopology_id: str
    partition: int32
    offset: int64


@message
class Endpoint:
    host: str
    port: uint16


@message
class StreamsGroupHeartbeatRequest:
    api: ClassVar[Api] = STREAMS_GROUP_HEARTBEAT

    group_id: str
    member_id: str
    member_epoch: int32
    endpoint_information_epoch: int32
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int32 = -1
    topology: Topology | None = None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: bool = False


@message
class Status:
    status_code: int8
    status_detail: str


@message
class TopicPartition:
    topic: str
    partitions: list[int32]


@message
class EndpointToPartitions:
    user_endpoint: Endpoint
    active_partitions: list[TopicPartition]
    standby_partitions: list[TopicPartition]


@message
class StreamsGroupHeartbeatResponse:
    api: ClassVar[Api] = STREAMS_GROUP_HEARTBEAT

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int32 = 0
    heartbeat_interval_ms: int32 = 0
    acceptable_recovery_lag: int32 = 0
    task_offset_interval_ms: int32 = 0
    status: list[Status] | None = since(0, default=[])
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    endpoint_information_epoch: int32 = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
