"""
CreateAcls (30): creates ACLs.

* v1 is the oldest still understood; it has pattern types (KIP-290).
* v2 is flexible.
* v3 knows users as resources (KIP-373).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import CREATE_ACLS
from barnabas.protocol.codec.schema import Api, int8, int16, int32, message


@message
class AclCreation:
    resource_type: int8
    resource_name: str
    resource_pattern_type: int8 = 3
    principal: str
    host: str
    operation: int8
    permission_type: int8


@message
class CreateAclsRequest:
    api: ClassVar[Api] = CREATE_ACLS

    creations: list[AclCreation]


@message
class AclCreationResult:
    error_code: int16
    error_message: str | None = None


@message
class CreateAclsResponse:
    api: ClassVar[Api] = CREATE_ACLS

    throttle_time_ms: int32 = 0
    results: list[AclCreationResult]
