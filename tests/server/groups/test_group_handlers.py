"""
Requests of members in every version, from bytes to bytes. test_group_answers.py compares what needs
no member with Apache Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast
from uuid import UUID

import pytest
import pytest_asyncio

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from tests.support.build import api_request
from tests.support.group_handlers import HandlerBroker
from tests.support.group_requests import (
    heartbeat_request,
    join_request,
    leave_request,
    sync_request,
)

GROUP = "group"
TOPIC_ID = UUID(int=7)
UNKNOWN_ID = UUID(int=8)


class Broker(HandlerBroker):
    """
    One topic with two partitions, and short cuts.
    """

    def __init__(self) -> None:
        super().__init__({"t": 2})

    async def join(self, version: int, member_id: str = "") -> JoinGroupResponse:
        waiting = asyncio.ensure_future(self.ask(join_request(GROUP, member_id), version))
        await asyncio.sleep(0)
        await self.world.clock.pass_time(0.001)
        return cast(JoinGroupResponse, await waiting)

    async def stable(self) -> str:
        joined = await self.join(3)
        assert 0 == (await self.ask(sync_request(GROUP, joined.member_id), 3)).error_code
        return joined.member_id

    async def commit(self, version: int, **changes: Any) -> OffsetCommitResponse:
        topics = [{"name": "t", "topic_id": TOPIC_ID, "partitions": [committed(0, "m", 3)]}]
        given: dict[str, Any] = {"group_id": GROUP, "member_id": "", "topics": topics}
        request = api_request("offset_commit", **given | changes)
        return cast(OffsetCommitResponse, await self.ask(request, version))


def committed(index: int, metadata: str | None = None, leader_epoch: int = -1) -> dict[str, Any]:
    """
    The offset 5 of a partition.
    """
    return {
        "partition_index": index,
        "committed_offset": 5,
        "committed_leader_epoch": leader_epoch,
        "committed_metadata": metadata,
    }


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    made = Broker()
    yield made
    await made.close()


@pytest.mark.parametrize("version", JoinGroupRequest.api.versions)
async def test_join_group_requires_a_member_id_since_v4(broker: Broker, version: int) -> None:
    answer = await broker.join(version)
    if version >= 4:
        assert (79, -1) == (answer.error_code, answer.generation_id)
        assert (None if version >= 7 else "") == answer.protocol_name
        answer = await broker.join(version, answer.member_id)

    assert (0, 1, "range") == (answer.error_code, answer.generation_id, answer.protocol_name)
    assert answer.leader == answer.member_id
    assert answer.member_id.startswith("client-")
    assert [(answer.member_id, b"m")] == [(m.member_id, m.metadata) for m in answer.members]
    assert ("consumer" if version >= 7 else None) == answer.protocol_type
    group = broker.world.coordinator.describe_group(GROUP, 6)
    assert ("client", "/127.0.0.1") == (group.members[0].client_id, group.members[0].client_host)


@pytest.mark.parametrize("version", SyncGroupRequest.api.versions)
async def test_sync_group_names_the_protocol_since_v5(broker: Broker, version: int) -> None:
    joined = await broker.join(3)
    request = sync_request(GROUP, joined.member_id, protocol_type="consumer", protocol_name="range")

    answer = await broker.ask(request, version)

    assert (0, b"mine") == (answer.error_code, answer.assignment)
    assert (("consumer", "range") if version >= 5 else (None, None)) == (
        answer.protocol_type,
        answer.protocol_name,
    )


@pytest.mark.parametrize("version", HeartbeatRequest.api.versions)
async def test_heartbeat_response_has_only_an_error_code(broker: Broker, version: int) -> None:
    member_id = await broker.stable()

    for generation_id, expected in ((1, 0), (2, 22)):
        request = heartbeat_request(GROUP, member_id, generation_id)
        assert expected == (await broker.ask(request, version)).error_code


@pytest.mark.parametrize("version", LeaveGroupRequest.api.versions)
async def test_leave_group_removes_several_members_since_v3(broker: Broker, version: int) -> None:
    member_id = await broker.stable()

    if version >= 3:
        answer = await broker.ask(leave_request(version, GROUP, member_id, "nobody"), version)
        assert 0 == answer.error_code
        assert [0, 25] == [m.error_code for m in answer.members]
    else:
        known = leave_request(version, GROUP, member_id)
        unknown = leave_request(version, GROUP, "nobody")
        assert 0 == (await broker.ask(known, version)).error_code
        assert 25 == (await broker.ask(unknown, version)).error_code
    assert "Empty" == broker.world.coordinator.describe_group(GROUP, 6).group_state


def fetch_request(version: int, indexes: list[int] | None) -> Message:
    if version < 8:
        old = None if indexes is None else [{"name": "t", "partition_indexes": indexes}]
        return api_request("offset_fetch", group_id=GROUP, topics=old)
    topics = None
    if indexes is not None:
        topics = [{"name": "t", "topic_id": TOPIC_ID, "partition_indexes": indexes}]
        if version >= 10:
            topics.append({"topic_id": UNKNOWN_ID, "partition_indexes": [0]})
    groups = [{"group_id": group_id, "topics": topics} for group_id in (GROUP, "nobody's")]
    return api_request("offset_fetch", groups=groups)


@pytest.mark.parametrize("version", range(2, 11))
async def test_offset_fetch_of_null_topics_returns_all_offsets(
    broker: Broker, version: int
) -> None:
    await broker.commit(9)
    broker.topics.put("gone", 1, UNKNOWN_ID)
    partition = committed(0) | {"committed_offset": 9}
    await broker.commit(9, topics=[{"name": "gone", "partitions": [partition]}])
    broker.topics.remove("gone")

    answer = await broker.ask(fetch_request(version, None), version)

    topics = answer.topics if version < 8 else answer.groups[0].topics
    offsets = [t.partitions[0].committed_offset for t in topics]
    assert ([5] if version >= 10 else [5, 9]) == offsets
    if version >= 8:
        assert ["group", "nobody's"] == [g.group_id for g in answer.groups]
        assert [] == answer.groups[1].topics
    if version >= 10:
        assert [TOPIC_ID] == [t.topic_id for t in answer.groups[0].topics]


@pytest.mark.parametrize("version", OffsetFetchRequest.api.versions)
async def test_offset_fetch_puts_a_coordinator_error_where_the_version_allows(
    broker: Broker, version: int
) -> None:
    broker.world.coordinator.shards.lead([], 0)
    broker.world.coordinator.shards.resign(0)

    answer = await broker.ask(fetch_request(version, [0]), version)

    if version < 2:
        assert [16] == [p.error_code for p in answer.topics[0].partitions]
    elif version < 8:
        assert (16, []) == (answer.error_code, answer.topics)
    else:
        assert [16, 16] == [g.error_code for g in answer.groups]


@pytest.mark.parametrize("version", DescribeGroupsRequest.api.versions)
async def test_describe_groups_reports_unknown_groups_as_dead(broker: Broker, version: int) -> None:
    member_id = await broker.stable()
    request = DescribeGroupsRequest(
        groups=[GROUP, "nobody's"], include_authorized_operations=version >= 3
    )

    answer = await broker.ask(request, version)

    known, unknown = answer.groups
    assert (GROUP, "Stable", "consumer", "range", 0) == (
        known.group_id,
        known.group_state,
        known.protocol_type,
        known.protocol_data,
        known.error_code,
    )
    (described,) = known.members
    assert (member_id, "client", "/127.0.0.1", b"m", b"mine") == (
        described.member_id,
        described.client_id,
        described.client_host,
        described.member_metadata,
        described.member_assignment,
    )
    not_asked = -(2**31)
    assert (0b1101_0100_1000 if version >= 3 else not_asked) == known.authorized_operations
    assert ("Dead", "", "") == (unknown.group_state, unknown.protocol_type, unknown.protocol_data)
    if version >= 6:
        assert (69, "Group nobody's not found.") == (unknown.error_code, unknown.error_message)
        assert not_asked == unknown.authorized_operations
    else:
        assert 0 == unknown.error_code
