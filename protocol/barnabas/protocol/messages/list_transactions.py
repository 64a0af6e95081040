"""
ListTransactions (66): the transactions that a broker coordinates (KIP-664).

* v1 can ask by how long they have been running (KIP-994).
* v2 can ask by a pattern of the transactional id (KIP-1152).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import LIST_TRANSACTIONS
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message, since


@message
class ListTransactionsRequest:
    api: ClassVar[Api] = LIST_TRANSACTIONS

    state_filters: list[str]
    producer_id_filters: list[int64]
    duration_filter: int64 = since(1, default=-1)
    transactional_id_pattern: str | None = since(2, default=None)


@message
class TransactionState:
    transactional_id: str
    producer_id: int64
    transaction_state: str


@message
class ListTransactionsResponse:
    api: ClassVar[Api] = LIST_TRANSACTIONS

    throttle_time_ms: int32 = 0
    error_code: int16
    unknown_state_filters: list[str]
    transaction_states: list[TransactionState]
