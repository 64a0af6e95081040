"""
ExpireDelegationToken (40): lets a delegation token end at another time, or removes it (KIP-48).

* v1 is the oldest still understood.
* v2 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import EXPIRE_DELEGATION_TOKEN
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message


@message
class ExpireDelegationTokenRequest:
    api: ClassVar[Api] = EXPIRE_DELEGATION_TOKEN

    hmac: bytes
    expiry_time_period_ms: int64


@message
class ExpireDelegationTokenResponse:
    api: ClassVar[Api] = EXPIRE_DELEGATION_TOKEN

    error_code: int16
    expiry_timestamp_ms: int64
    throttle_time_ms: int32 = 0
