"""
AddOffsetsToTxn (25): names a group whose offsets a transaction is going to commit.

* v2 may answer PRODUCER_FENCED (KIP-588).
* v3 is flexible.
* v4 may answer TRANSACTION_ABORTABLE (KIP-890).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import ADD_OFFSETS_TO_TXN
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message


@message
class AddOffsetsToTxnRequest:
    api: ClassVar[Api] = ADD_OFFSETS_TO_TXN

    transactional_id: str
    producer_id: int64
    producer_epoch: int16
    group_id: str


@message
class AddOffsetsToTxnResponse:
    api: ClassVar[Api] = ADD_OFFSETS_TO_TXN

    throttle_time_ms: int32 = 0
    error_code: int16
