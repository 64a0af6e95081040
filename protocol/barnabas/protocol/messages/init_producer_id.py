"""
InitProducerId (22): gives a producer its id and epoch.

* v2 is flexible.
* v3 can ask for the next epoch of an id (KIP-360).
* v4 may answer PRODUCER_FENCED (KIP-588).
* v5 may answer TRANSACTION_ABORTABLE (KIP-890).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import INIT_PRODUCER_ID
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message, since


@message
class InitProducerIdRequest:
    api: ClassVar[Api] = INIT_PRODUCER_ID

    transactional_id: str | None
    transaction_timeout_ms: int32
    producer_id: int64 = since(3, default=-1)
    producer_epoch: int16 = since(3, default=-1)


@message
class InitProducerIdResponse:
    api: ClassVar[Api] = INIT_PRODUCER_ID

    throttle_time_ms: int32 = 0
    error_code: int16
    producer_id: int64 = -1
    producer_epoch: int16
