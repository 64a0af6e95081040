"""
Records of ``__transaction_state``: one for each transactional id.

Key and value begin with an int16, their version. The value is flexible from v1 on, and only then
tells the producer ids before and after this one (KIP-890), and what the client is capable of.

The status is 0 Empty, 1 Ongoing, 2 PrepareCommit, 3 PrepareAbort, 4 CompleteCommit, 5
CompleteAbort, 6 Dead or 7 PrepareEpochFence. The partitions are null while it is Empty, and an
empty list when it is complete.
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.codec.schema import Api, int8, int16, int32, int64, message, since


@message
class TransactionLogKey:
    api: ClassVar[Api] = Api(0, versions=range(1))

    transactional_id: str


@message
class PartitionsSchema:
    topic: str
    partition_ids: list[int32]


@message
class TransactionLogValue:
    api: ClassVar[Api] = Api(0, versions=range(2), flexible=1)

    producer_id: int64
    previous_producer_id: int64 = since(1, default=-1, tag=0)
    next_producer_id: int64 = since(1, default=-1, tag=1)
    producer_epoch: int16
    next_producer_epoch: int16 = since(1, default=-1, tag=3)
    transaction_timeout_ms: int32
    transaction_status: int8
    transaction_partitions: list[PartitionsSchema] | None
    transaction_last_update_timestamp_ms: int64
    transaction_start_timestamp_ms: int64
    client_transaction_version: int16 = since(1, default=0, tag=2)
