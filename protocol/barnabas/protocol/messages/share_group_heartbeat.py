"""
ShareGroupHeartbeat (76): a member of a share group joins, stays or leaves (KIP-932).

* v0 was early access, and is gone.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import SHARE_GROUP_HEARTBEAT
from barnabas.protocol.codec.schema import Api, int16, int32, message


@message
class ShareGroupHeartbeatRequest:
    api: ClassVar[Api] = SHARE_GROUP_HEARTBEAT

    group_id: str
    member_id: str
    member_epoch: int32
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None


@message
class TopicPartitions:
    topic_id: UUID
    partitions: list[int32]


@message
class Assignment:
    topic_partitions: list[TopicPartitions]


@message
class ShareGroupHeartbeatResponse:
    api: ClassVar[Api] = SHARE_GROUP_HEARTBEAT

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int32 = 0
    heartbeat_interval_ms: int32 = 0
    assignment: Assignment | None = None
