"""
ShareFetch (78): records of partitions that a member of a share group acquires (KIP-932).

* v0 was early access, and is gone.
* v1 bounds the records, and announces how long they stay acquired.
* v2 can acquire exactly as many records as asked for (KIP-1206), and renews what is acquired
  (KIP-1222).
"""

from __future__ import annotations

from typing import ClassVar, Final
from uuid import UUID

from barnabas.protocol.apis import SHARE_FETCH
from barnabas.protocol.codec.primitives import INT32_MAX
from barnabas.protocol.codec.schema import (
    Api,
    Records,
    int8,
    int16,
    int32,
    int64,
    message,
    since,
)


@message
class AcknowledgementBatch:
    first_offset: int64
    last_offset: int64
    acknowledge_types: list[int8]


@message
class FetchPartition:
    partition_index: int32
    acknowledgement_batches: list[AcknowledgementBatch]


@message
class FetchTopic:
    topic_id: UUID
    partitions: list[FetchPartition]


@message
class ForgottenTopic:
    topic_id: UUID
    partitions: list[int32]


@message
class ShareFetchRequest:
    api: ClassVar[Api] = SHARE_FETCH

    group_id: str | None = None
    member_id: str | None
    share_session_epoch: int32
    max_wait_ms: int32
    min_bytes: int32
    max_bytes: int32 = INT32_MAX
    max_records: int32
    batch_size: int32
    share_acquire_mode: int8 = since(2, default=0)
    is_renew_ack: bool = since(2, default=False)
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic]


@message
class LeaderIdAndEpoch:
    leader_id: int32
    leader_epoch: int32


NO_LEADER: Final = LeaderIdAndEpoch(leader_id=0, leader_epoch=0)


@message(frozen=False)
class AcquiredRecords:
    first_offset: int64
    last_offset: int64
    delivery_count: int16


@message(frozen=False)
class PartitionData:
    partition_index: int32
    error_code: int16 = 0
    error_message: str | None = None
    acknowledge_error_code: int16 = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = NO_LEADER
    records: Records
    acquired_records: list[AcquiredRecords]


@message(frozen=False)
class ShareFetchableTopicResponse:
    topic_id: UUID
    partitions: list[PartitionData]


@message
class NodeEndpoint:
    node_id: int32
    host: str
    port: int32
    rack: str | None = None


@message(frozen=False)
class ShareFetchResponse:
    api: ClassVar[Api] = SHARE_FETCH

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int32 = 0
    responses: list[ShareFetchableTopicResponse]
    node_endpoints: list[NodeEndpoint]
