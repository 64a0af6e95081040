"""
DeleteGroups (42): deletes groups, with their offsets.

* v2 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import DELETE_GROUPS
from barnabas.protocol.codec.schema import Api, int16, int32, message


@message
class DeleteGroupsRequest:
    api: ClassVar[Api] = DELETE_GROUPS

    groups_names: list[str]


@message
class DeletableGroupResult:
    group_id: str
    error_code: int16


@message
class DeleteGroupsResponse:
    api: ClassVar[Api] = DELETE_GROUPS

    throttle_time_ms: int32 = 0
    results: list[DeletableGroupResult]
