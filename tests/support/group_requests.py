"""
Requests of groups and their offsets, in few words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from barnabas.protocol.codec.schema import ZERO_UUID, Message
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from tests.support.build import api_request, build


def coordinator_request(*keys: str, key_type: int = 0) -> Message:
    """
    Who coordinates groups (key type 0) or transactional ids (1); v4.
    """
    return api_request("find_coordinator", key_type=key_type, coordinator_keys=keys)


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
        "protocols": [{"name": "range", "metadata": b"m"}],
    }
    return build(JoinGroupRequest, **given | facts)


def sync_request(
    group_id: str, member_id: str, generation_id: int = 1, **facts: Any
) -> SyncGroupRequest:
    """
    The leader assigns everything to itself.
    """
    given: dict[str, Any] = {
        "group_id": group_id,
        "generation_id": generation_id,
        "member_id": member_id,
        "assignments": [{"member_id": member_id, "assignment": b"mine"}],
    }
    return build(SyncGroupRequest, **given | facts)


def heartbeat_request(
    group_id: str, member_id: str, generation_id: int = 1, **facts: Any
) -> HeartbeatRequest:
    """
    A member of the classic protocol is still there.
    """
    return HeartbeatRequest(
        group_id=group_id, generation_id=generation_id, member_id=member_id, **facts
    )


def leave_request(version: int, group_id: str, *member_ids: str) -> Message:
    """
    Members of the classic protocol leave; only one of them up to v2.
    """
    if version < 3:
        (member_id,) = member_ids
        return api_request("leave_group", group_id=group_id, member_id=member_id)
    members = [{"member_id": member_id} for member_id in member_ids]
    return api_request("leave_group", group_id=group_id, members=members)


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
        {"partition_index": index, "committed_offset": offset, "committed_metadata": metadata}
        for index, offset in pairs
    ]
    topics = [{"name": topic, "topic_id": topic_id, "partitions": partitions}]
    given: dict[str, Any] = {"group_id": group_id, "member_id": "", "topics": topics}
    return build(OffsetCommitRequest, **given | facts)


def offset_delete_request(
    group_id: str, partitions: Mapping[str, Sequence[int]]
) -> OffsetDeleteRequest:
    """
    Delete the offsets of partitions, by the names of their topics.
    """
    topics = [
        {"name": name, "partitions": [{"partition_index": index} for index in indexes]}
        for name, indexes in partitions.items()
    ]
    return build(OffsetDeleteRequest, group_id=group_id, topics=topics)


def committed_request(
    group_id: str, topic: str, *partitions: int, require_stable: bool = False
) -> Message:
    """
    The committed offsets of partitions of a topic; v8.
    """
    topics = [{"name": topic, "partition_indexes": partitions}]
    groups = [{"group_id": group_id, "topics": topics}]
    return api_request("offset_fetch", groups=groups, require_stable=require_stable)
