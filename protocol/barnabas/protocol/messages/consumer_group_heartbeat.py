"""
ConsumerGroupHeartbeat (68): a member of a consumer group joins, stays and leaves (KIP-848).

* v1 adds the regular expression of topics; the member makes its id itself (KIP-1082).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import CONSUMER_GROUP_HEARTBEAT
from barnabas.protocol.codec.schema import Api, int16, int32, message, since


@message
class TopicPartitions:
    topic_id: UUID
    partitions: list[int32]


@message
class ConsumerGroupHeartbeatRequest:
    api: ClassVar[Api] = CONSUMER_GROUP_HEARTBEAT

    group_id: str
    member_id: str
    member_epoch: int32
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int32 = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = since(1, default=None)
    server_assignor: str | None = None
    topic_partitions: list[TopicPartitions] | None = None


@message
class Assignment:
    topic_partitions: list[TopicPartitions]


@message
class ConsumerGroupHeartbeatResponse:
    api: ClassVar[Api] = CONSUMER_GROUP_HEARTBEAT

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int32 = 0
    heartbeat_interval_ms: int32 = 0
    assignment: Assignment | None = None
