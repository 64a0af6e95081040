"""
CreateDelegationToken (38): creates a token that authenticates clients for its owner (KIP-48).

* v1 is the oldest still understood.
* v2 is flexible.
* v3 creates tokens for other owners (KIP-373).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import CREATE_DELEGATION_TOKEN
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message, since


@message
class CreatableRenewers:
    principal_type: str
    principal_name: str


@message
class CreateDelegationTokenRequest:
    api: ClassVar[Api] = CREATE_DELEGATION_TOKEN

    owner_principal_type: str | None = since(3, default=None)
    owner_principal_name: str | None = since(3, default=None)
    renewers: list[CreatableRenewers]
    max_lifetime_ms: int64


@message
class CreateDelegationTokenResponse:
    api: ClassVar[Api] = CREATE_DELEGATION_TOKEN

    error_code: int16
    principal_type: str
    principal_name: str
    token_requester_principal_type: str = since(3, default="")
    token_requester_principal_name: str = since(3, default="")
    issue_timestamp_ms: int64
    expiry_timestamp_ms: int64
    max_timestamp_ms: int64
    token_id: str
    hmac: bytes
    throttle_time_ms: int32 = 0
