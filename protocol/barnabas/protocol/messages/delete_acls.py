"""
DeleteAcls (31): deletes the ACLs that match filters.

* v1 is the oldest still understood; it has pattern types (KIP-290).
* v2 is flexible.
* v3 knows users as resources (KIP-373).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import DELETE_ACLS
from barnabas.protocol.codec.schema import Api, int8, int16, int32, message


@message
class DeleteAclsFilter:
    resource_type_filter: int8
    resource_name_filter: str | None
    pattern_type_filter: int8 = 3
    principal_filter: str | None
    host_filter: str | None
    operation: int8
    permission_type: int8


@message
class DeleteAclsRequest:
    api: ClassVar[Api] = DELETE_ACLS

    filters: list[DeleteAclsFilter]


@message
class DeleteAclsMatchingAcl:
    error_code: int16
    error_message: str | None = None
    resource_type: int8
    resource_name: str
    pattern_type: int8 = 3
    principal: str
    host: str
    operation: int8
    permission_type: int8


@message
class DeleteAclsFilterResult:
    error_code: int16
    error_message: str | None = None
    matching_acls: list[DeleteAclsMatchingAcl]


@message
class DeleteAclsResponse:
    api: ClassVar[Api] = DELETE_ACLS

    throttle_time_ms: int32 = 0
    filter_results: list[DeleteAclsFilterResult]
