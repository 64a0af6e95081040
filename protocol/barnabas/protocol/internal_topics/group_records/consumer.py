"""
Groups of the consumer protocol (KIP-848).

A member that speaks the classic protocol has its metadata in ``classic_member_metadata``. For all
others that is null, and written as such, because Kafka's default is an empty struct.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.codec.schema import Api, int8, int32, int64, message, since


@message
class ConsumerGroupMetadataKey:
    api: ClassVar[Api] = Api(3, versions=range(1))

    group_id: str


@message
class ConsumerGroupMetadataValue:
    api: ClassVar[Api] = Api(3, versions=range(1), flexible=0)

    epoch: int32
    metadata_hash: int64 = since(0, default=0, tag=0)


@message
class ConsumerGroupPartitionMetadataKey:
    api: ClassVar[Api] = Api(4, versions=range(1))

    group_id: str


@message
class PartitionMetadata:
    partition: int32
    racks: list[str]


@message
class TopicMetadata:
    topic_id: UUID
    topic_name: str
    num_partitions: int32
    partition_metadata: list[PartitionMetadata]


@message
class ConsumerGroupPartitionMetadataValue:
    api: ClassVar[Api] = Api(4, versions=range(1), flexible=0)

    topics: list[TopicMetadata]


@message
class ConsumerGroupMemberMetadataKey:
    api: ClassVar[Api] = Api(5, versions=range(1))

    group_id: str
    member_id: str


@message
class ClassicProtocol:
    name: str
    metadata: bytes


@message
class ClassicMemberMetadata:
    session_timeout_ms: int32
    supported_protocols: list[ClassicProtocol]


@message
class ConsumerGroupMemberMetadataValue:
    api: ClassVar[Api] = Api(5, versions=range(1), flexible=0)

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int32 = -1
    server_assignor: str | None
    classic_member_metadata: ClassicMemberMetadata | None = since(
        0, default=ClassicMemberMetadata(session_timeout_ms=0, supported_protocols=[]), tag=0
    )


@message
class ConsumerGroupTargetAssignmentMetadataKey:
    api: ClassVar[Api] = Api(6, versions=range(1))

    group_id: str


@message
class ConsumerGroupTargetAssignmentMetadataValue:
    api: ClassVar[Api] = Api(6, versions=range(1), flexible=0)

    assignment_epoch: int32
    assignment_timestamp: int64 = since(0, default=0, tag=0)


@message
class ConsumerGroupTargetAssignmentMemberKey:
    api: ClassVar[Api] = Api(7, versions=range(1))

    group_id: str
    member_id: str


@message
class TopicPartition:
    topic_id: UUID
    partitions: list[int32]


@message
class ConsumerGroupTargetAssignmentMemberValue:
    api: ClassVar[Api] = Api(7, versions=range(1), flexible=0)

    topic_partitions: list[TopicPartition]


@message
class ConsumerGroupCurrentMemberAssignmentKey:
    api: ClassVar[Api] = Api(8, versions=range(1))

    group_id: str
    member_id: str


@message
class TopicPartitions:
    topic_id: UUID
    partitions: list[int32]
    assignment_epochs: list[int32] | None = since(0, default=[], tag=0)


@message
class ConsumerGroupCurrentMemberAssignmentValue:
    api: ClassVar[Api] = Api(8, versions=range(1), flexible=0)

    member_epoch: int32
    previous_member_epoch: int32
    state: int8
    assigned_partitions: list[TopicPartitions]
    partitions_pending_revocation: list[TopicPartitions]


@message
class ConsumerGroupRegularExpressionKey:
    api: ClassVar[Api] = Api(16, versions=range(1))

    group_id: str
    regular_expression: str


@message
class ConsumerGroupRegularExpressionValue:
    api: ClassVar[Api] = Api(16, versions=range(1), flexible=0)

    topics: list[str]
    version: int64
    timestamp: int64
