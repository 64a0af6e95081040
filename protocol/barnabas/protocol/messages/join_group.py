"""
JoinGroup (11): enters a group, or its next generation.

* v1 adds the rebalance timeout (KIP-62).
* v2 adds the throttle time.
* v4 asks new members to join again with the id they are given (KIP-394).
* v5 adds static membership (KIP-345).
* v6 is flexible.
* v7 answers with the protocol type (KIP-559).
* v8 adds the reason for joining (KIP-800).
* v9 adds ``skip_assignment``, with which the leader keeps the assignment (KIP-814).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import JOIN_GROUP
from barnabas.protocol.codec.schema import Api, int16, int32, message, since


@message
class JoinGroupRequestProtocol:
    name: str
    metadata: bytes


@message
class JoinGroupRequest:
    api: ClassVar[Api] = JOIN_GROUP

    group_id: str
    session_timeout_ms: int32
    rebalance_timeout_ms: int32 = since(1, default=-1)
    member_id: str
    group_instance_id: str | None = since(5, default=None)
    protocol_type: str
    protocols: list[JoinGroupRequestProtocol]
    reason: str | None = since(8, default=None)


@message
class JoinGroupResponseMember:
    member_id: str
    group_instance_id: str | None = since(5, default=None)
    metadata: bytes


@message
class JoinGroupResponse:
    api: ClassVar[Api] = JOIN_GROUP

    throttle_time_ms: int32 = since(2, default=0)
    error_code: int16
    generation_id: int32 = -1
    protocol_type: str | None = since(7, default=None)
    protocol_name: str | None = since(0, nullable=7)
    leader: str
    skip_assignment: bool = since(9, default=False)
    member_id: str
    members: list[JoinGroupResponseMember]
