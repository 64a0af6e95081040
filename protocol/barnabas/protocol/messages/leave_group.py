"""
LeaveGroup (13): members leave a group.

* v1 adds the throttle time.
* v3 takes several members at once, static ones among them (KIP-345).
* v4 is flexible.
* v5 adds the reason for leaving (KIP-800).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import LEAVE_GROUP
from barnabas.protocol.codec.schema import Api, int16, int32, message, since


@message
class MemberIdentity:
    member_id: str
    group_instance_id: str | None = None
    reason: str | None = since(5, default=None)


@message
class LeaveGroupRequest:
    api: ClassVar[Api] = LEAVE_GROUP

    group_id: str
    member_id: str = since(0, until=2, default="")
    members: list[MemberIdentity] = since(3, default=[])


@message
class MemberResponse:
    member_id: str
    group_instance_id: str | None
    error_code: int16


@message
class LeaveGroupResponse:
    api: ClassVar[Api] = LEAVE_GROUP

    throttle_time_ms: int32 = since(1, default=0)
    error_code: int16
    members: list[MemberResponse] = since(3, default=[])
