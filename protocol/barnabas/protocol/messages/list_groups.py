"""
ListGroups (16): the groups of a broker.

* v1 adds the throttle time.
* v3 is flexible.
* v4 adds states, and asking by them (KIP-518).
* v5 adds types, and asking by them (KIP-848).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import LIST_GROUPS
from barnabas.protocol.codec.schema import Api, int16, int32, message, since


@message
class ListGroupsRequest:
    api: ClassVar[Api] = LIST_GROUPS

    states_filter: list[str] = since(4, default=[])
    types_filter: list[str] = since(5, default=[])


@message
class ListedGroup:
    group_id: str
    protocol_type: str
    group_state: str = since(4, default="")
    group_type: str = since(5, default="")


@message
class ListGroupsResponse:
    api: ClassVar[Api] = LIST_GROUPS

    throttle_time_ms: int32 = since(1, default=0)
    error_code: int16
    groups: list[ListedGroup]
