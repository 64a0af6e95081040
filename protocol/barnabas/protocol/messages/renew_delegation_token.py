"""
RenewDelegationToken (39): lets a delegation token end later (KIP-48).

* v1 is the oldest still understood.
* v2 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import RENEW_DELEGATION_TOKEN
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message


@message
class RenewDelegationTokenRequest:
    api: ClassVar[Api] = RENEW_DELEGATION_TOKEN

    hmac: bytes
    renew_period_ms: int64


@message
class RenewDelegationTokenResponse:
    api: ClassVar[Api] = RENEW_DELEGATION_TOKEN

    error_code: int16
    expiry_timestamp_ms: int64
    throttle_time_ms: int32 = 0
