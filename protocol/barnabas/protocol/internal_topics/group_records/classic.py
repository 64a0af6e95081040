"""
Committed offsets, and groups of the classic protocol.

* ``LegacyOffsetCommitKey`` and its value are the oldest form of a committed offset.
* ``OffsetCommitValue`` has an expiry of its own in v1 only, leader epochs from v3 on (KIP-320), and
  the id of the topic in v4, which is flexible.
* ``GroupMetadataValue`` has rebalance timeouts from v1 on, the time of the last change from v2 on,
  static members from v3 on (KIP-345), and is flexible in v4.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.codec.schema import ZERO_UUID, Api, int32, int64, message, since


@message
class LegacyOffsetCommitKey:
    api: ClassVar[Api] = Api(0, versions=range(1))

    group: str
    topic: str
    partition: int32


@message
class LegacyOffsetCommitValue:
    api: ClassVar[Api] = Api(0, versions=range(1))

    offset: int64
    metadata: str
    commit_timestamp: int64


@message
class OffsetCommitKey:
    api: ClassVar[Api] = Api(1, versions=range(1))

    group: str
    topic: str
    partition: int32


@message
class OffsetCommitValue:
    api: ClassVar[Api] = Api(1, versions=range(5), flexible=4)

    offset: int64
    leader_epoch: int32 = since(3, default=-1)
    metadata: str
    commit_timestamp: int64
    expire_timestamp: int64 = since(1, until=1, default=-1)
    topic_id: UUID = since(4, default=ZERO_UUID, tag=0)


@message
class GroupMetadataKey:
    api: ClassVar[Api] = Api(2, versions=range(1))

    group: str


@message
class MemberMetadata:
    member_id: str
    group_instance_id: str | None = since(3, default=None)
    client_id: str
    client_host: str
    rebalance_timeout: int32 = since(1, default=-1)
    session_timeout: int32
    subscription: bytes
    assignment: bytes


@message
class GroupMetadataValue:
    api: ClassVar[Api] = Api(2, versions=range(5), flexible=4)

    protocol_type: str
    generation: int32
    protocol: str | None
    leader: str | None
    current_state_timestamp: int64 = since(2, default=-1)
    members: list[MemberMetadata]
