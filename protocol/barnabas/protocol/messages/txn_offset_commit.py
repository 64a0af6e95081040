"""
TxnOffsetCommit (28): stores how far a group has read, as part of a transaction.

* v2 adds leader epochs (KIP-320).
* v3 is flexible, and adds the member that commits (KIP-447).
* v4 may answer TRANSACTION_ABORTABLE (KIP-890).
* v5 adds the group to the transaction by itself (KIP-890).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import TXN_OFFSET_COMMIT
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message, since


@message
class TxnOffsetCommitRequestPartition:
    partition_index: int32
    committed_offset: int64
    committed_leader_epoch: int32 = since(2, default=-1)
    committed_metadata: str | None


@message
class TxnOffsetCommitRequestTopic:
    name: str
    partitions: list[TxnOffsetCommitRequestPartition]


@message
class TxnOffsetCommitRequest:
    api: ClassVar[Api] = TXN_OFFSET_COMMIT

    transactional_id: str
    group_id: str
    producer_id: int64
    producer_epoch: int16
    generation_id: int32 = since(3, default=-1)
    member_id: str = since(3, default="")
    group_instance_id: str | None = since(3, default=None)
    topics: list[TxnOffsetCommitRequestTopic]


@message
class TxnOffsetCommitResponsePartition:
    partition_index: int32
    error_code: int16


@message
class TxnOffsetCommitResponseTopic:
    name: str
    partitions: list[TxnOffsetCommitResponsePartition]


@message
class TxnOffsetCommitResponse:
    api: ClassVar[Api] = TXN_OFFSET_COMMIT

    throttle_time_ms: int32 = 0
    topics: list[TxnOffsetCommitResponseTopic]
