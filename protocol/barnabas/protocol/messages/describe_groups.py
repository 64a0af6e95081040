"""
DescribeGroups (15): state and members of groups.

* v1 adds the throttle time.
* v3 adds authorized operations (KIP-430).
* v4 adds static membership (KIP-345).
* v5 is flexible.
* v6 answers GROUP_ID_NOT_FOUND for a group that there is not (KIP-1043).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import DESCRIBE_GROUPS
from barnabas.protocol.codec.primitives import INT32_MIN
from barnabas.protocol.codec.schema import Api, int16, int32, message, since


@message
class DescribeGroupsRequest:
    api: ClassVar[Api] = DESCRIBE_GROUPS

    groups: list[str]
    include_authorized_operations: bool = since(3, default=False)


@message
class DescribedGroupMember:
    member_id: str
    group_instance_id: str | None = since(4, default=None)
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


@message
class DescribedGroup:
    error_code: int16
    error_message: str | None = since(6, default=None)
    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: list[DescribedGroupMember]
    authorized_operations: int32 = since(3, default=INT32_MIN)


@message
class DescribeGroupsResponse:
    api: ClassVar[Api] = DESCRIBE_GROUPS

    throttle_time_ms: int32 = since(1, default=0)
    groups: list[DescribedGroup]
