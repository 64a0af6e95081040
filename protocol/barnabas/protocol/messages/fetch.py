"""
Fetch (1): records of partitions, from an offset on.

* v4 is the oldest still understood; it has the isolation level (KIP-98).
* v5 adds the log start offset.
* v7 adds fetch sessions (KIP-227).
* v9 fences by leader epoch (KIP-320).
* v10 allows zstd (KIP-110).
* v11 lets consumers read from the nearest replica (KIP-392).
* v12 is flexible, and finds diverging logs by the epoch fetched last (KIP-595).
* v13 has topic ids in place of names (KIP-516).
* v14 may answer OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405).
* v15 moves the replica id into a tagged struct with its epoch (KIP-903).
* v16 adds the endpoints of new leaders (KIP-951).
* v17 adds the directory of the replica (KIP-853).
* v18 adds the high watermark that the replica knows (KIP-1166).
"""

from __future__ import annotations

from typing import ClassVar, Final
from uuid import UUID

from barnabas.protocol.apis import FETCH
from barnabas.protocol.codec.primitives import INT32_MAX, INT64_MAX
from barnabas.protocol.codec.schema import (
    ZERO_UUID,
    Api,
    Records,
    int8,
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
NO_HIGH_WATERMARK: Final = INT64_MAX
"""
The high watermark of a replica that knows none.
"""


@message
class ReplicaState:
    replica_id: int32 = -1
    replica_epoch: int64 = -1


NO_REPLICA: Final = ReplicaState()


@message(frozen=False)
class FetchPartition:
    partition: int32
    current_leader_epoch: int32 = since(9, default=-1)
    fetch_offset: int64
    last_fetched_epoch: int32 = since(12, default=-1)
    log_start_offset: int64 = since(5, default=-1)
    partition_max_bytes: int32
    replica_directory_id: UUID = since(17, default=ZERO_UUID, tag=0)
    high_watermark: int64 = since(18, default=NO_HIGH_WATERMARK, tag=1)


@message(frozen=False)
class FetchTopic:
    topic: str = since(0, until=12, default="")
    topic_id: UUID = since(13, default=ZERO_UUID)
    partitions: list[FetchPartition]


@message
class ForgottenTopic:
    topic: str = since(0, until=12, default="")
    topic_id: UUID = since(13, default=ZERO_UUID)
    partitions: list[int32]


@message(frozen=False)
class FetchRequest:
    api: ClassVar[Api] = FETCH

    cluster_id: str | None = since(12, default=None, tag=0)
    replica_id: int32 = since(0, until=14, default=-1)
    replica_state: ReplicaState = since(15, default=NO_REPLICA, tag=1)
    max_wait_ms: int32
    min_bytes: int32
    max_bytes: int32 = INT32_MAX
    isolation_level: int8 = 0
    session_id: int32 = since(7, default=0)
    session_epoch: int32 = since(7, default=-1)
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic] = since(7, default=[])
    rack_id: str = since(11, default="")


@message
class EpochEndOffset:
    epoch: int32 = -1
    end_offset: int64 = -1


@message
class LeaderIdAndEpoch:
    leader_id: int32 = -1
    leader_epoch: int32 = -1


@message
class SnapshotId:
    end_offset: int64 = -1
    epoch: int32 = -1


NO_DIVERGING_EPOCH: Final = EpochEndOffset()
NO_LEADER: Final = LeaderIdAndEpoch()
NO_SNAPSHOT: Final = SnapshotId()


@message(frozen=False)
class AbortedTransaction:
    producer_id: int64
    first_offset: int64


@message(frozen=False)
class PartitionData:
    partition_index: int32
    error_code: int16
    high_watermark: int64
    last_stable_offset: int64 = -1
    log_start_offset: int64 = since(5, default=-1)
    diverging_epoch: EpochEndOffset = since(12, default=NO_DIVERGING_EPOCH, tag=0)
    current_leader: LeaderIdAndEpoch = since(12, default=NO_LEADER, tag=1)
    snapshot_id: SnapshotId = since(12, default=NO_SNAPSHOT, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = None
    preferred_read_replica: int32 = since(11, default=-1)
    records: Records | None


@message(frozen=False)
class FetchableTopicResponse:
    topic: str = since(0, until=12, default="")
    topic_id: UUID = since(13, default=ZERO_UUID)
    partitions: list[PartitionData]


@message
class NodeEndpoint:
    node_id: int32
    host: str
    port: int32
    rack: str | None = None


@message(frozen=False)
class FetchResponse:
    api: ClassVar[Api] = FETCH

    throttle_time_ms: int32 = 0
    error_code: int16 = since(7, default=0)
    session_id: int32 = since(7, default=0)
    responses: list[FetchableTopicResponse]
    node_endpoints: list[NodeEndpoint] = since(16, default=[], tag=0)
