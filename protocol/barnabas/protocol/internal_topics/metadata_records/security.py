"""
Who may do what, and how much of it.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.codec.schema import Api, float64, int8, int32, int64, message


@message
class AccessControlEntryRecord:
    api: ClassVar[Api] = Api(18, versions=range(1), flexible=0)

    id: UUID
    resource_type: int8
    resource_name: str
    pattern_type: int8
    principal: str
    host: str
    operation: int8
    permission_type: int8


@message
class RemoveAccessControlEntryRecord:
    api: ClassVar[Api] = Api(19, versions=range(1), flexible=0)

    id: UUID


@message
class UserScramCredentialRecord:
    api: ClassVar[Api] = Api(11, versions=range(1), flexible=0)

    name: str
    mechanism: int8
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int32


@message
class RemoveUserScramCredentialRecord:
    api: ClassVar[Api] = Api(22, versions=range(1), flexible=0)

    name: str
    mechanism: int8


@message
class DelegationTokenRecord:
    api: ClassVar[Api] = Api(10, versions=range(1), flexible=0)

    owner: str
    requester: str
    renewers: list[str]
    issue_timestamp: int64
    max_timestamp: int64
    expiration_timestamp: int64
    token_id: str


@message
class RemoveDelegationTokenRecord:
    api: ClassVar[Api] = Api(26, versions=range(1), flexible=0)

    token_id: str


@message
class EntityData:
    entity_type: str
    entity_name: str | None


@message
class ClientQuotaRecord:
    api: ClassVar[Api] = Api(14, versions=range(1), flexible=0)

    entity: list[EntityData]
    key: str
    value: float64
    remove: bool
