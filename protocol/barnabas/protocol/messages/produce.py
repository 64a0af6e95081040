"""
Produce (0): appends records to partitions.

* v0-2 are listed, since librdkafka would otherwise not compress (KAFKA-18659), but not understood.
* v3 is the oldest still understood; it takes record batches (KIP-98).
* v5 answers with the log start offset.
* v7 allows zstd (KIP-110).
* v8 answers with the records that spoiled a batch (KIP-467).
* v9 is flexible.
* v10 adds the current leader, for producers that ask the wrong broker (KIP-951).
* v11 may answer TRANSACTION_ABORTABLE (KIP-890).
* v12 adds partitions to the transaction by itself (KIP-890).
* v13 has topic ids in place of names (KIP-516).
"""

from __future__ import annotations

from typing import ClassVar, Final
from uuid import UUID

from barnabas.protocol.apis import PRODUCE
from barnabas.protocol.codec.schema import (
    ZERO_UUID,
    Api,
    Records,
    int16,
    int32,
    int64,
    message,
    since,
)

FIRST_TOPIC_ID_VERSION: Final = 13
"""
The first version with topic ids in place of names.
"""


@message(frozen=False)
class PartitionProduceData:
    index: int32
    records: Records | None


@message(frozen=False)
class TopicProduceData:
    name: str = since(0, until=12, default="")
    topic_id: UUID = since(13, default=ZERO_UUID)
    partition_data: list[PartitionProduceData]


@message(frozen=False)
class ProduceRequest:
    api: ClassVar[Api] = PRODUCE

    transactional_id: str | None = None
    acks: int16
    timeout_ms: int32
    topic_data: list[TopicProduceData]


@message(frozen=False)
class BatchIndexAndErrorMessage:
    batch_index: int32
    batch_index_error_message: str | None = None


@message
class LeaderIdAndEpoch:
    leader_id: int32 = -1
    leader_epoch: int32 = -1


NO_LEADER: Final = LeaderIdAndEpoch()


@message(frozen=False)
class PartitionProduceResponse:
    index: int32
    error_code: int16
    base_offset: int64
    log_append_time_ms: int64 = -1
    log_start_offset: int64 = since(5, default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = since(8, default=[])
    error_message: str | None = since(8, default=None)
    current_leader: LeaderIdAndEpoch = since(10, default=NO_LEADER, tag=0)


@message(frozen=False)
class TopicProduceResponse:
    name: str = since(0, until=12, default="")
    topic_id: UUID = since(13, default=ZERO_UUID)
    partition_responses: list[PartitionProduceResponse]


@message
class NodeEndpoint:
    node_id: int32
    host: str
    port: int32
    rack: str | None = None


@message(frozen=False)
class ProduceResponse:
    api: ClassVar[Api] = PRODUCE

    responses: list[TopicProduceResponse]
    throttle_time_ms: int32 = 0
    node_endpoints: list[NodeEndpoint] = since(10, default=[], tag=0)
