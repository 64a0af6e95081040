"""
EndTxn (26): commits or aborts a transaction.

* v2 may answer PRODUCER_FENCED (KIP-588).
* v3 is flexible.
* v4 may answer TRANSACTION_ABORTABLE (KIP-890).
* v5 answers with the producer id and epoch of the next transaction (KIP-890).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import END_TXN
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message, since


@message
class EndTxnRequest:
    api: ClassVar[Api] = END_TXN

    transactional_id: str
    producer_id: int64
    producer_epoch: int16
    committed: bool


@message
class EndTxnResponse:
    api: ClassVar[Api] = END_TXN

    throttle_time_ms: int32 = 0
    error_code: int16
    producer_id: int64 = since(5, default=-1)
    producer_epoch: int16 = since(5, default=-1)
