"""
DescribeTransactions (65): the state of transactions (KIP-664).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import DESCRIBE_TRANSACTIONS
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message


@message
class DescribeTransactionsRequest:
    api: ClassVar[Api] = DESCRIBE_TRANSACTIONS

    transactional_ids: list[str]


@message
class TopicData:
    topic: str
    partitions: list[int32]


@message
class TransactionState:
    error_code: int16
    transactional_id: str
    transaction_state: str
    transaction_timeout_ms: int32
    transaction_start_time_ms: int64
    producer_id: int64
    producer_epoch: int16
    topics: list[TopicData]


@message
class DescribeTransactionsResponse:
    api: ClassVar[Api] = DESCRIBE_TRANSACTIONS

    throttle_time_ms: int32 = 0
    transaction_states: list[TransactionState]
