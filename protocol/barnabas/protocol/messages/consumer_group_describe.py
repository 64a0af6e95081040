"""
ConsumerGroupDescribe (69): state, assignments and members of consumer groups (KIP-848).

* v1 adds the protocol that a member uses (KIP-1099).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import CONSUMER_GROUP_DESCRIBE
from barnabas.protocol.codec.primitives import INT32_MIN
from barnabas.protocol.codec.schema import Api, int8, int16, int32, message, since


@message
class ConsumerGroupDescribeRequest:
    api: ClassVar[Api] = CONSUMER_GROUP_DESCRIBE

    group_ids: list[str]
    include_authorized_operations: bool


@message
class TopicPartitions:
    topic_id: UUID
    topic_name: str
    partitions: list[int32]


@message
class Assignment:
    topic_partitions: list[TopicPartitions]


@message
class Member:
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int32
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None = None
    assignment: Assignment
    target_assignment: Assignment
    member_type: int8 = since(1, default=-1)


@message
class DescribedGroup:
    error_code: int16
    error_message: str | None = None
    group_id: str
    group_state: str
    group_epoch: int32
    assignment_epoch: int32
    assignor_name: str
    members: list[Member]
    authorized_operations: int32 = INT32_MIN


@message
class ConsumerGroupDescribeResponse:
    api: ClassVar[Api] = CONSUMER_GROUP_DESCRIBE

    throttle_time_ms: int32 = 0
    groups: list[DescribedGroup]
