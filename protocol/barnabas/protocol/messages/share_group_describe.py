"""
ShareGroupDescribe (77): the members of share groups, and what they are assigned (KIP-932).

* v0 was early access, and is gone.
"""

from __future__ import annotations

from typing import ClassVar, Final
from uuid import UUID

from barnabas.protocol.apis import SHARE_GROUP_DESCRIBE
from barnabas.protocol.codec.schema import Api, int16, int32, message

NOT_REQUESTED: Final = -(2**31)
"""
In place of what a client may do, if it has not asked.
"""


@message
class ShareGroupDescribeRequest:
    api: ClassVar[Api] = SHARE_GROUP_DESCRIBE

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
    rack_id: str | None = None
    member_epoch: int32
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    assignment: Assignment


@message
class DescribedGroup:
    error_code: int16 = 0
    error_message: str | None = None
    group_id: str
    group_state: str = ""
    group_epoch: int32 = 0
    assignment_epoch: int32 = 0
    assignor_name: str = ""
    members: list[Member]
    authorized_operations: int32 = NOT_REQUESTED


@message
class ShareGroupDescribeResponse:
    api: ClassVar[Api] = SHARE_GROUP_DESCRIBE

    throttle_time_ms: int32 = 0
    groups: list[DescribedGroup]
