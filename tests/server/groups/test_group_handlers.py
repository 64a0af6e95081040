"""
Requests about groups in every version, from bytes to bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast
from uuid import UUID

import pytest
import pytest_asyncio

from barnabas.protocol.codec.schema import ZERO_UUID, Message
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.server.scheduling.turns import finished
from tests.support.build import api_request
from tests.support.group_handlers import HandlerBroker
from tests.support.group_requests import (
    heartbeat_request,
    join_request,
    leave_request,
    offset_delete_request,
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
        """
        A stable group of one member.
        """
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
async def test_join(broker: Broker, version: int) -> None:
    """
    Since v4 with an id that is given out first.
    """
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
async def test_sync(broker: Broker, version: int) -> None:
    """
    Since v5 with the protocol.
    """
    joined = await broker.join(3)
    request = sync_request(GROUP, joined.member_id, protocol_type="consumer", protocol_name="range")

    answer = await broker.ask(request, version)

    assert (0, b"mine") == (answer.error_code, answer.assignment)
    assert (("consumer", "range") if version >= 5 else (None, None)) == (
        answer.protocol_type,
        answer.protocol_name,
    )


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name"), [(None, "range"), ("consumer", None), (None, None)]
)
async def test_sync_without_the_protocol(
    broker: Broker, protocol_type: str | None, protocol_name: str | None
) -> None:
    """
    Both are mandatory since v5 (KIP-559).
    """
    joined = await broker.join(3)
    request = sync_request(
        GROUP, joined.member_id, protocol_type=protocol_type, protocol_name=protocol_name
    )

    answer = await broker.ask(request, 5)

    assert ErrorCode.INCONSISTENT_GROUP_PROTOCOL == answer.error_code


@pytest.mark.parametrize("version", HeartbeatRequest.api.versions)
async def test_heartbeat(broker: Broker, version: int) -> None:
    """
    A code, and nothing else.
    """
    member_id = await broker.stable()

    for generation_id, expected in ((1, 0), (2, 22)):
        request = heartbeat_request(GROUP, member_id, generation_id)
        assert expected == (await broker.ask(request, version)).error_code


@pytest.mark.parametrize("version", LeaveGroupRequest.api.versions)
async def test_leave(broker: Broker, version: int) -> None:
    """
    One member until v2, several since v3, each with its error.
    """
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


@pytest.mark.parametrize("version", [0, 2, 3])
async def test_leave_an_unknown_group(broker: Broker, version: int) -> None:
    """
    Since v3 each member is told; before that there is only one place to say it.
    """
    answer = await broker.ask(leave_request(version, "nobody's", "m"), version)

    expected = (25, []) if version < 3 else (0, [25])
    assert expected == (answer.error_code, [m.error_code for m in answer.members])


@pytest.mark.parametrize("version", OffsetCommitRequest.api.versions)
async def test_commit(broker: Broker, version: int) -> None:
    """
    By name until v9, by id since v10; both are written.
    """
    answer = await broker.commit(version)

    (topic,) = answer.topics
    assert (("t", ZERO_UUID) if version < 10 else ("", TOPIC_ID)) == (topic.name, topic.topic_id)
    assert [(0, 0)] == [(p.partition_index, p.error_code) for p in topic.partitions]
    fetched = finished(
        broker.world.coordinator.fetch_offsets(
            OffsetFetchRequestGroup(group_id=GROUP, topics=None), 9, require_stable=False
        )
    )
    (found,) = fetched.topics
    (partition,) = found.partitions
    assert ("t", 5, "m") == (found.name, partition.committed_offset, partition.metadata)
    assert (3 if version >= 6 else -1) == partition.committed_leader_epoch
    (batch,) = broker.world.log.batches
    (record,) = batch.records()
    assert record.value is not None
    assert record.value.endswith(TOPIC_ID.bytes)


@pytest.mark.parametrize("version", [2, 9, 10])
async def test_commit_what_does_not_exist(broker: Broker, version: int) -> None:
    """
    Each part has its own answer, and what exists is committed.
    """
    partitions = [committed(index) for index in (0, 1, 2)]
    topics = [
        {"name": "u", "topic_id": UNKNOWN_ID, "partitions": partitions[:1]},
        {"name": "t", "topic_id": TOPIC_ID, "partitions": partitions},
    ]

    answer = await broker.commit(version, topics=topics)

    codes = {
        (topic.name or topic.topic_id, partition.partition_index): partition.error_code
        for topic in answer.topics
        for partition in topic.partitions
    }
    if version < 10:
        assert {("u", 0): 3, ("t", 0): 0, ("t", 1): 0, ("t", 2): 3} == codes
    else:
        known = {(TOPIC_ID, 0): 0, (TOPIC_ID, 1): 0, (TOPIC_ID, 2): 3}
        assert {(UNKNOWN_ID, 0): 100} | known == codes
    assert 2 == len(answer.topics)


async def test_commit_nothing_that_exists(broker: Broker) -> None:
    """
    The coordinator is not even asked: it would make the group.
    """
    answer = await broker.commit(9, topics=[{"name": "t", "partitions": [committed(9)]}])

    assert 3 == answer.topics[0].partitions[0].error_code
    assert [] == finished(broker.world.coordinator.list_groups([], []))


@pytest.mark.parametrize("version", [8, 9])
async def test_commit_to_a_group_that_does_not_exist(broker: Broker, version: int) -> None:
    """
    With a generation: v9 has a code for that.
    """
    answer = await broker.commit(version, generation_id_or_member_epoch=1, member_id="m")

    expected = 69 if version >= 9 else 22
    assert expected == answer.topics[0].partitions[0].error_code


@pytest.mark.parametrize("version", OffsetFetchRequest.api.versions)
async def test_fetch(broker: Broker, version: int) -> None:
    """
    One group until v7, several since v8; topics by id since v10.
    """
    await broker.commit(9)

    answer = await broker.ask(fetch_request(version, [0, 1]), version)

    topic = answer.topics[0] if version < 8 else answer.groups[0].topics[0]
    assert [(0, 5, "m", 0), (1, -1, "", 0)] == [
        (p.partition_index, p.committed_offset, p.metadata, p.error_code) for p in topic.partitions
    ]
    assert [3 if version >= 5 else -1, -1] == [p.committed_leader_epoch for p in topic.partitions]
    if version >= 10:
        assert [TOPIC_ID, UNKNOWN_ID] == [t.topic_id for t in answer.groups[0].topics]
        (unknown,) = answer.groups[0].topics[1].partitions
        assert (100, -1) == (unknown.error_code, unknown.committed_offset)


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
async def test_fetch_all(broker: Broker, version: int) -> None:
    """
    Topics null: everything that is stored. By id only what still exists can be told.
    """
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
async def test_fetch_without_a_coordinator(broker: Broker, version: int) -> None:
    """
    The error stands where the version has room for it.
    """
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
async def test_describe(broker: Broker, version: int) -> None:
    """
    What is no group is dead; since v6 that is an error, too.
    """
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


@pytest.mark.parametrize("version", ListGroupsRequest.api.versions)
async def test_list(broker: Broker, version: int) -> None:
    """
    With states since v4, with types since v5.
    """
    await broker.stable()

    answer = await broker.ask(ListGroupsRequest(), version)

    (group,) = answer.groups
    assert (GROUP, "consumer") == (group.group_id, group.protocol_type)
    assert ("Stable" if version >= 4 else "") == group.group_state
    assert ("classic" if version >= 5 else "") == group.group_type
    if version >= 4:
        nothing = ListGroupsRequest(states_filter=["Empty"])
        assert [] == (await broker.ask(nothing, version)).groups


@pytest.mark.parametrize("version", DeleteGroupsRequest.api.versions)
async def test_delete(broker: Broker, version: int) -> None:
    """
    Each group once, however often it is named.
    """
    await broker.stable()
    await broker.commit(9, group_id="simple")
    request = DeleteGroupsRequest(groups_names=["simple", GROUP, "nobody's", "simple"])

    answer = await broker.ask(request, version)

    assert [("simple", 0), (GROUP, 68), ("nobody's", 69)] == [
        (r.group_id, r.error_code) for r in answer.results
    ]


async def test_delete_offsets(broker: Broker) -> None:
    """
    What does not exist is answered for itself.
    """
    await broker.commit(9)

    answer = await broker.ask(offset_delete_request(GROUP, {"t": [0, 1, 2], "u": [0]}), 0)

    codes = {
        (topic.name, partition.partition_index): partition.error_code
        for topic in answer.topics
        for partition in topic.partitions
    }
    assert {("t", 0): 0, ("t", 1): 0, ("t", 2): 3, ("u", 0): 3} == codes
    assert 2 == len(answer.topics)
    fetched = await broker.ask(fetch_request(9, [0]), 9)
    assert -1 == fetched.groups[0].topics[0].partitions[0].committed_offset


async def test_delete_offsets_of_an_unknown_group(broker: Broker) -> None:
    """
    One error for all of it.
    """
    answer = await broker.ask(offset_delete_request("nobody's", {"u": [0]}), 0)

    assert (69, []) == (answer.error_code, answer.topics)
