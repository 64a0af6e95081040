"""
DescribeDelegationToken (41): the delegation tokens that a client may see (KIP-48).

* v1 is the oldest still understood.
* v2 is flexible.
* v3 says who created a token (KIP-373).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import DESCRIBE_DELEGATION_TOKEN
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message, since


@message
class DescribeDelegationTokenOwner:
    principal_type: str
    principal_name: str


@message
class DescribeDelegationTokenRequest:
    api: ClassVar[Api] = DESCRIBE_DELEGATION_TOKEN

    owners: list[DescribeDelegationTokenOwner] | None


@message
class DescribedDelegationTokenRenewer:
    principal_type: str
    principal_name: str


@message
class DescribedDelegationToken:
    principal_type: str
    principal_name: str
    token_requester_principal_type: str = since(3, default="")
    token_requester_principal_name: str = since(3, default="")
    issue_timestamp: int64
    expiry_timestamp: int64
    max_timestamp: int64
    token_id: str
    hmac: bytes
    renewers: list[DescribedDelegationTokenRenewer]


@message
class DescribeDelegationTokenResponse:
    api: ClassVar[Api] = DESCRIBE_DELEGATION_TOKEN

    error_code: int16
    tokens: list[DescribedDelegationToken]
    throttle_time_ms: int32 = 0
