"""
Share groups (KIP-932).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.codec.schema import Api, int8, int32, int64, message, since


@message
class ShareGroupMemberMetadataKey:
    api: ClassVar[Api] = Api(10, versions=range(1))

    group_id: str
    member_id: str


@message
class ShareGroupMemberMetadataValue:
    api: ClassVar[Api] = Api(10, versions=range(1), flexible=0)

    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]


@message
class ShareGroupMetadataKey:
    api: ClassVar[Api] = Api(11, versions=range(1))

    group_id: str


@message
class ShareGroupMetadataValue:
    api: ClassVar[Api] = Api(11, versions=range(1), flexible=0)

    epoch: int32
    metadata_hash: int64


@message
class ShareGroupTargetAssignmentMetadataKey:
    api: ClassVar[Api] = Api(12, versions=range(1))

    group_id: str


@message
class ShareGroupTargetAssignmentMetadataValue:
    api: ClassVar[Api] = Api(12, versions=range(1), flexible=0)

    assignment_epoch: int32
    assignment_timestamp: int64 = since(0, default=0, tag=0)


@message
class ShareGroupTargetAssignmentMemberKey:
    api: ClassVar[Api] = Api(13, versions=range(1))

    group_id: str
    member_id: str


@message
class TopicPartition:
    topic_id: UUID
    partitions: list[int32]


@message
class ShareGroupTargetAssignmentMemberValue:
    api: ClassVar[Api] = Api(13, versions=range(1), flexible=0)

    topic_partitions: list[TopicPartition]


@message
class ShareGroupCurrentMemberAssignmentKey:
    api: ClassVar[Api] = Api(14, versions=range(1))

    group_id: str
    member_id: str


@message
class TopicPartitions:
    topic_id: UUID
    partitions: list[int32]


@message
class ShareGroupCurrentMemberAssignmentValue:
    api: ClassVar[Api] = Api(14, versions=range(1), flexible=0)

    member_epoch: int32
    previous_member_epoch: int32
    state: int8
    assigned_partitions: list[TopicPartitions]


@message
class ShareGroupStatePartitionMetadataKey:
    api: ClassVar[Api] = Api(15, versions=range(1))

    group_id: str


@message
class TopicPartitionsInfo:
    topic_id: UUID
    topic_name: str
    partitions: list[int32]


@message
class TopicInfo:
    topic_id: UUID
    topic_name: str


@message
class ShareGroupStatePartitionMetadataValue:
    api: ClassVar[Api] = Api(15, versions=range(1), flexible=0)

    initializing_topics: list[TopicPartitionsInfo]
    initialized_topics: list[TopicPartitionsInfo]
    deleting_topics: list[TopicInfo]
