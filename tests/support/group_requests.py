"""
Requests of groups and their offsets, in few words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment


def coordinator_request(*keys: str, key_type: int = 0) -> FindCoordinatorRequest:
    """
    Who coordinates groups (key type 0) or transactional ids (1); v4.
    """
    return FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))


def join_request(group_id: str, member_id: str = "", **facts: Any) -> JoinGroupRequest:
    """
    A member of the classic protocol joins with one assignor.
    """
    given: dict[str, Any] = {
        "group_id": group_id,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"m")],
    }
    return JoinGroupRequest(**given | facts)


def sync_request(group_id: str, member_id: str, generation_id: int = 1) -> SyncGroupRequest:
    """
    The leader assigns everything to itself.
    """
    mine = SyncGroupRequestAssignment(member_id=member_id, assignment=b"mine")
    return SyncGroupRequest(
        group_id=group_id, generation_id=generation_id, member_id=member_id, assignments=[mine]
    )


def commit_request(
    group_id: str,
    topic: str,
    offsets: Mapping[int, int] | Sequence[tuple[int, int]],
    *,
    metadata: str | None = "",
    topic_id: UUID = ZERO_UUID,
    **facts: Any,
) -> OffsetCommitRequest:
    """
    Commit offsets of a topic by partition, as one that is no member unless *facts* say otherwise.
    """
    pairs = offsets.items() if isinstance(offsets, Mapping) else offsets
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=metadata
        )
        for index, offset in pairs
    ]
    topics = [OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=partitions)]
    return OffsetCommitRequest(**{"group_id": group_id, "member_id": "", "topics": topics} | facts)


def offset_delete_request(
    group_id: str, partitions: Mapping[str, Sequence[int]]
) -> OffsetDeleteRequest:
    """
    Delete the offsets of partitions, by the names of their topics.
    """
    topics = [
        OffsetDeleteRequestTopic(
            name=name,
            partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
        )
        for name, indexes in partitions.items()
    ]
    return OffsetDeleteRequest(group_id=group_id, topics=topics)


def committed_request(
    group_id: str, topic: str, *partitions: int, require_stable: bool = False
) -> OffsetFetchRequest:
    """
    The committed offsets of partitions of a topic; v8.
    """
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))]
    groups = [OffsetFetchRequestGroup(group_id=group_id, topics=topics)]
    return OffsetFetchRequest(groups=groups, require_stable=require_stable)
