"""
SyncGroup (14): the leader of a group hands out the assignment, each member gets its part.

* v1 adds the throttle time.
* v3 adds static membership (KIP-345).
* v4 is flexible.
* v5 adds protocol type and name (KIP-559).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import SYNC_GROUP
from barnabas.protocol.codec.schema import Api, int16, int32, message, since


@message
class SyncGroupRequestAssignment:
    member_id: str
    assignment: bytes


@message
class SyncGroupRequest:
    api: ClassVar[Api] = SYNC_GROUP

    group_id: str
    generation_id: int32
    member_id: str
    group_instance_id: str | None = since(3, default=None)
    protocol_type: str | None = since(5, default=None)
    protocol_name: str | None = since(5, default=None)
    assignments: list[SyncGroupRequestAssignment]


@message
class SyncGroupResponse:
    api: ClassVar[Api] = SYNC_GROUP

    throttle_time_ms: int32 = since(1, default=0)
    error_code: int16
    protocol_type: str | None = since(5, default=None)
    protocol_name: str | None = since(5, default=None)
    assignment: bytes
