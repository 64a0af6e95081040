"""
ShareAcknowledge (79): what a member of a share group did with records that it acquired (KIP-932).

* v0 was early access, and is gone.
* v2 renews what is acquired, and announces for how long (KIP-1222).
"""

from __future__ import annotations

from typing import ClassVar, Final
from uuid import UUID

from barnabas.protocol.apis import SHARE_ACKNOWLEDGE
from barnabas.protocol.codec.schema import Api, int8, int16, int32, int64, message, since


@message
class AcknowledgementBatch:
    first_offset: int64
    last_offset: int64
    acknowledge_types: list[int8]


@message
class AcknowledgePartition:
    partition_index: int32
    acknowledgement_batches: list[AcknowledgementBatch]


@message
class AcknowledgeTopic:
    topic_id: UUID
    partitions: list[AcknowledgePartition]


@message
class ShareAcknowledgeRequest:
    api: ClassVar[Api] = SHARE_ACKNOWLEDGE

    group_id: str | None = None
    member_id: str | None
    share_session_epoch: int32
    is_renew_ack: bool = since(2, default=False)
    topics: list[AcknowledgeTopic]


@message
class LeaderIdAndEpoch:
    leader_id: int32
    leader_epoch: int32


NO_LEADER: Final = LeaderIdAndEpoch(leader_id=0, leader_epoch=0)


@message(frozen=False)
class PartitionData:
    partition_index: int32
    error_code: int16 = 0
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = NO_LEADER


@message(frozen=False)
class ShareAcknowledgeTopicResponse:
    topic_id: UUID
    partitions: list[PartitionData]


@message
class NodeEndpoint:
    node_id: int32
    host: str
    port: int32
    rack: str | None = None


@message(frozen=False)
class ShareAcknowledgeResponse:
    api: ClassVar[Api] = SHARE_ACKNOWLEDGE

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int32 = since(2, default=0)
    responses: list[ShareAcknowledgeTopicResponse]
    node_endpoints: list[NodeEndpoint]
