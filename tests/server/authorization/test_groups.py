"""
A request about several groups or topics changes only those that the client may change.
test_authorization.py compares the responses with Apache Kafka.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final
from uuid import UUID

import pytest

from barnabas.coordination.cluster.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.coordination.security.acl.bindings import CLUSTER_NAME
from barnabas.coordination.security.acl.permissions import (
    DELETE_GROUP,
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    READ_GROUP,
    READ_TOPIC,
)
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from tests.support.acls import AUTHORIZER, EVERYTHING, Right, allow_only
from tests.support.build import api_request, named
from tests.support.group_requests import (
    commit_request,
    coordinator_request,
    offset_delete_request,
)
from tests.support.refusals import codes
from tests.support.server import TestBroker, running
from tests.support.wire_client import WireClient

UNKNOWN_TOPIC, NO_TOPIC, NO_GROUP = 3, 29, 30
NO_SUCH_GROUP = 69

READ_G: Final = (READ_GROUP, "g")
DESCRIBE_G: Final = (DESCRIBE_GROUP, "g")
DELETE_G: Final = (DELETE_GROUP, "g")
READ_T: Final = (READ_TOPIC, "t")


@pytest.fixture
async def broker() -> AsyncIterator[TestBroker]:
    small = {"offsets_topic_num_partitions": "1", "group_initial_rebalance_delay_ms": "0"}
    async with running(**AUTHORIZER, **small) as broker:
        await allow_only(broker, EVERYTHING)
        for topic in ("t", "u"):
            await broker.create(topic)
        async with await broker.client() as client:
            await client.ask(coordinator_request("g"), 4)
            for group in ("g", "h"):
                for topic in ("t", "u"):
                    answer = await client.ask(commit_request(group, topic, {0: 7}), 8)
                    assert [0] == codes(answer, 8)
        await allow_only(broker, ())
        yield broker


# Coordinators


async def test_refused_key_creates_no_coordinator_topic() -> None:
    async with running(**AUTHORIZER) as broker, await broker.client() as client:
        topics = broker.inside.topics
        await client.ask(coordinator_request("g", "h"), 4)
        await client.ask(coordinator_request("g", key_type=1), 4)
        assert GROUP_METADATA_TOPIC not in topics
        assert TRANSACTION_STATE_TOPIC not in topics

        await allow_only(broker, [DESCRIBE_G])
        answer = await client.ask(coordinator_request("h", "g"), 4)
        assert [NO_GROUP, 0] == codes(answer.coordinators, 4)
        assert GROUP_METADATA_TOPIC in topics


# Offsets


def commit(*topics: str | UUID, group_id: str = "g") -> Message:
    """
    Commit offsets of the partitions 0 and 1 of each topic; partition 1 does not exist.
    """
    partitions = [
        {"partition_index": index, "committed_offset": 9, "committed_metadata": ""}
        for index in (0, 1)
    ]
    wanted = [{**named(topic), "partitions": partitions} for topic in topics]
    return api_request("offset_commit", group_id=group_id, member_id="", topics=wanted)


@pytest.mark.parametrize("version", [2, 9])
@pytest.mark.parametrize(
    ("rights", "expected"),
    [
        ((), {("t", NO_GROUP), ("u", NO_GROUP), ("x", NO_GROUP)}),
        ((DESCRIBE_G, READ_T), {("t", NO_GROUP), ("u", NO_GROUP), ("x", NO_GROUP)}),
        ((READ_G, (DESCRIBE_TOPIC, "t")), {("t", NO_TOPIC), ("u", NO_TOPIC), ("x", NO_TOPIC)}),
        ((READ_G, READ_T), {("t", 0), ("t", UNKNOWN_TOPIC), ("u", NO_TOPIC), ("x", NO_TOPIC)}),
        (
            (READ_G, (READ_TOPIC, "u"), (READ_TOPIC, "x")),
            {("t", NO_TOPIC), ("u", 0), ("u", UNKNOWN_TOPIC), ("x", UNKNOWN_TOPIC)},
        ),
    ],
)
async def test_offset_commit_requires_read_on_the_topic(
    broker: TestBroker,
    client: WireClient,
    version: int,
    rights: Sequence[Right],
    expected: set[tuple[str, int]],
) -> None:
    await allow_only(broker, rights)

    answer = await client.ask(commit("t", "u", "x"), version)

    assert [2, 2, 2] == [len(topic.partitions) for topic in answer.topics]
    assert expected == {
        (topic.name, partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }
    await allow_only(broker, EVERYTHING)
    fetched = await client.ask(fetch(None), 2)
    assert {("t", 9 if ("t", 0) in expected else 7), ("u", 9 if ("u", 0) in expected else 7)} == {
        (topic.name, topic.partitions[0].committed_offset) for topic in fetched.topics
    }


def fetch(topics: Sequence[str] | None) -> Message:
    return api_request("offset_fetch", group_id="g", topics=partition_0(topics))


def partition_0(topics: Sequence[str | UUID] | None) -> list[dict[str, Any]] | None:
    if topics is None:
        return None
    return [{**named(topic), "partition_indexes": [0]} for topic in topics]


def fetched(topics: Any) -> list[tuple[str | UUID, int, int]]:
    return [
        (topic.name or topic.topic_id, partition.committed_offset, partition.error_code)
        for topic in topics
        for partition in topic.partitions
    ]


@pytest.mark.parametrize(
    ("rights", "expected"),
    [
        ((), (NO_GROUP, [])),
        ((READ_G, READ_T), (NO_GROUP, [])),
        ((DELETE_G,), (0, [("t", [NO_TOPIC, NO_TOPIC]), ("u", []), ("x", [NO_TOPIC])])),
        (
            (DELETE_G, READ_T, (READ_TOPIC, "x")),
            (0, [("t", [UNKNOWN_TOPIC, 0]), ("u", []), ("x", [UNKNOWN_TOPIC])]),
        ),
        (((DELETE_GROUP, "*"), READ_T), (0, [("t", [3, 0]), ("u", []), ("x", [NO_TOPIC])])),
    ],
)
async def test_offset_delete_requires_read_on_the_topic(
    broker: TestBroker,
    client: WireClient,
    rights: Sequence[Right],
    expected: tuple[int, list[tuple[str, list[int]]]],
) -> None:
    await allow_only(broker, rights)

    answer = await client.ask(offset_delete_request("g", {"t": [0, 1], "u": [], "x": [0]}), 0)

    code, topics = expected
    assert code == answer.error_code
    assert topics == sorted((topic.name, codes(topic.partitions, 0)) for topic in answer.topics)
    await allow_only(broker, EVERYTHING)
    left = await client.ask(fetch(["t"]), 2)
    was_deleted = ("t", [UNKNOWN_TOPIC, 0]) in topics
    assert [("t", -1 if was_deleted else 7, 0)] == fetched(left.topics)


# Groups


@pytest.mark.parametrize("version", [0, 2])
async def test_delete_groups_requires_delete_on_the_group(
    broker: TestBroker, client: WireClient, version: int
) -> None:
    await allow_only(broker, [DELETE_G, (DELETE_GROUP, "nobody"), (READ_GROUP, "h")])

    answer = await client.ask(DeleteGroupsRequest(groups_names=["h", "nobody", "g", "h"]), version)

    assert [("nobody", NO_SUCH_GROUP), ("g", 0), ("h", NO_GROUP)] == [
        (each.group_id, each.error_code) for each in answer.results
    ]
    await allow_only(broker, [(DESCRIBE_CLUSTER, CLUSTER_NAME)])
    listed = await client.ask(ListGroupsRequest(), 4)
    assert ["h"] == [each.group_id for each in listed.groups]
