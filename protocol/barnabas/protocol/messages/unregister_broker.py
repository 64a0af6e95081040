"""
UnregisterBroker (64): forgets a broker (KIP-500).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import UNREGISTER_BROKER
from barnabas.protocol.codec.schema import Api, int16, int32, message


@message
class UnregisterBrokerRequest:
    api: ClassVar[Api] = UNREGISTER_BROKER

    broker_id: int32


@message
class UnregisterBrokerResponse:
    api: ClassVar[Api] = UNREGISTER_BROKER

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: str | None = None
