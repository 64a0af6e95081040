"""
Groups of the streams protocol (KIP-1071).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.codec.schema import Api, int8, int16, int32, int64, message, since, uint16


@message
class StreamsGroupMetadataKey:
    api: ClassVar[Api] = Api(17, versions=range(1))

    group_id: str


@message
class LastAssignmentConfig:
    key: str
    value: str


@message
class StreamsGroupMetadataValue:
    api: ClassVar[Api] = Api(17, versions=range(1), flexible=0)

    epoch: int32
    metadata_hash: int64
    validated_topology_epoch: int32 = since(0, default=-1, tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = since(0, default=[], tag=1)


@message
class StreamsGroupMemberMetadataKey:
    api: ClassVar[Api] = Api(19, versions=range(1))

    group_id: str
    member_id: str


@message
class Endpoint:
    host: str
    port: uint16


@message
class KeyValue:
    key: str
    value: str


@message
class StreamsGroupMemberMetadataValue:
    api: ClassVar[Api] = Api(19, versions=range(1), flexible=0)

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int32 = -1
    topology_epoch: int32
    process_id: str
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue]


@message
class StreamsGroupTargetAssignmentMetadataKey:
    api: ClassVar[Api] = Api(20, versions=range(1))

    group_id: str


@message
class StreamsGroupTargetAssignmentMetadataValue:
    api: ClassVar[Api] = Api(20, versions=range(1), flexible=0)

    assignment_epoch: int32
    assignment_timestamp: int64 = since(0, default=0, tag=0)


@message
class StreamsGroupTargetAssignmentMemberKey:
    api: ClassVar[Api] = Api(21, versions=range(1))

    group_id: str
    member_id: str


@message
class TaskIds:
    subtopology_id: str
    partitions: list[int32]


@message
class StreamsGroupTargetAssignmentMemberValue:
    api: ClassVar[Api] = Api(21, versions=range(1), flexible=0)

    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]


@message
class StreamsGroupCurrentMemberAssignmentKey:
    api: ClassVar[Api] = Api(22, versions=range(1))

    group_id: str
    member_id: str


@message
class CurrentTaskIds:
    subtopology_id: str
    partitions: list[int32]
    assignment_epochs: list[int32] | None = since(0, default=[], tag=0)


@message
class StreamsGroupCurrentMemberAssignmentValue:
    api: ClassVar[Api] = Api(22, versions=range(1), flexible=0)

    member_epoch: int32
    previous_member_epoch: int32
    state: int8
    active_tasks: list[CurrentTaskIds]
    standby_tasks: list[CurrentTaskIds]
    warmup_tasks: list[CurrentTaskIds]
    active_tasks_pending_revocation: list[CurrentTaskIds]
    standby_tasks_pending_revocation: list[CurrentTaskIds]
    warmup_tasks_pending_revocation: list[CurrentTaskIds]


@message
class StreamsGroupTopologyKey:
    api: ClassVar[Api] = Api(23, versions=range(1))

    group_id: str


@message
class TopicConfig:
    key: str
    value: str


@message
class TopicInfo:
    name: str
    partitions: int32
    replication_factor: int16
    topic_configs: list[TopicConfig]


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
class StreamsGroupTopologyValue:
    api: ClassVar[Api] = Api(23, versions=range(1), flexible=0)

    epoch: int32
    subtopologies: list[Subtopology]
