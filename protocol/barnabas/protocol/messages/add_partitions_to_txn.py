"""
AddPartitionsToTxn (24): names partitions that a transaction is going to write to.

* v2 may answer PRODUCER_FENCED (KIP-588).
* v3 is flexible, and the last that clients use.
* v4 takes several transactions at once, and can verify without adding (KIP-890).
* v5 may answer TRANSACTION_ABORTABLE (KIP-890).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message, since


@message
class AddPartitionsToTxnTopic:
    name: str
    partitions: list[int32]


@message
class AddPartitionsToTxnTransaction:
    transactional_id: str
    producer_id: int64
    producer_epoch: int16
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic]


@message
class AddPartitionsToTxnRequest:
    api: ClassVar[Api] = ADD_PARTITIONS_TO_TXN

    transactions: list[AddPartitionsToTxnTransaction] = since(4, default=[])
    v3_and_below_transactional_id: str = since(0, until=3, default="")
    v3_and_below_producer_id: int64 = since(0, until=3, default=0)
    v3_and_below_producer_epoch: int16 = since(0, until=3, default=0)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = since(0, until=3, default=[])


@message
class AddPartitionsToTxnTopicResult:
    name: str
    results_by_partition: list[AddPartitionsToTxnPartitionResult]


@message
class AddPartitionsToTxnPartitionResult:
    partition_index: int32
    partition_error_code: int16


@message
class AddPartitionsToTxnResult:
    transactional_id: str
    topic_results: list[AddPartitionsToTxnTopicResult]


@message
class AddPartitionsToTxnResponse:
    api: ClassVar[Api] = ADD_PARTITIONS_TO_TXN

    throttle_time_ms: int32 = 0
    error_code: int16 = since(4, default=0)
    results_by_transaction: list[AddPartitionsToTxnResult] = since(4, default=[])
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = since(
        0, until=3, default=[]
    )
