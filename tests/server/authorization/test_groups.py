"""
What clients are told of groups and offsets that they have no rights for. What is expected is what
Apache Kafka 4.3.1 answers (``KafkaApis``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final
from uuid import UUID

import pytest

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.server.cluster.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.server.requests.authorized import NOT_REQUESTED
from barnabas.server.security.acl.bindings import CLUSTER_NAME
from barnabas.server.security.acl.permissions import (
    ALTER_CONFIGS_GROUP,
    CLUSTER_ACTION,
    DELETE_GROUP,
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    DESCRIBE_TRANSACTIONAL_ID,
    READ_GROUP,
    READ_TOPIC,
)
from tests.support.acls import AUTHORIZER, EVERYTHING, Right, allow_only
from tests.support.build import api_request, named
from tests.support.group_requests import (
    commit_request,
    coordinator_request,
    heartbeat_request,
    join_request,
    leave_request,
    offset_delete_request,
    sync_request,
)
from tests.support.refusals import codes
from tests.support.server import TestBroker, running
from tests.support.wire_client import WireClient

UNKNOWN_TOPIC, NO_TOPIC, NO_GROUP, NO_CLUSTER, NO_TRANSACTION = 3, 29, 30, 31, 53
WRONG_MEMBER, INVALID, NO_MEMBER_ID, NO_SUCH_GROUP, UNKNOWN_ID = 25, 42, 79, 69, 100
NO_PROTOCOL = 23

READ_G: Final = (READ_GROUP, "g")
DESCRIBE_G: Final = (DESCRIBE_GROUP, "g")
DELETE_G: Final = (DELETE_GROUP, "g")
READ_T: Final = (READ_TOPIC, "t")
UNKNOWN: Final = UUID(int=5)


@pytest.fixture
async def broker() -> AsyncIterator[TestBroker]:
    """
    The topics t and u have a partition each; the groups g and h have offsets of both.
    """
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


@pytest.mark.parametrize(
    ("asked", "rights", "expected"),
    [
        ((4, 0), (), [NO_GROUP, NO_GROUP]),
        ((4, 0), (DESCRIBE_G,), [0, NO_GROUP]),
        ((6, 0), (READ_G,), [0, NO_GROUP]),
        ((4, 1), (DESCRIBE_G,), [NO_TRANSACTION, NO_TRANSACTION]),
        ((6, 1), ((DESCRIBE_TRANSACTIONAL_ID, "h"),), [NO_TRANSACTION, 0]),
        ((5, 2), (), [INVALID, INVALID]),
        ((6, 2), (DESCRIBE_G,), [NO_CLUSTER, NO_CLUSTER]),
        ((6, 2), ((CLUSTER_ACTION, CLUSTER_NAME),), [INVALID, INVALID]),
        ((6, 9), (), [INVALID, INVALID]),
    ],
)
async def test_coordinators_are_found_by_those_who_may_describe_the_key(
    broker: TestBroker,
    client: WireClient,
    asked: tuple[int, int],
    rights: Sequence[Right],
    expected: Sequence[int],
) -> None:
    version, key_type = asked
    await allow_only(broker, rights)

    answer = await client.ask(coordinator_request("g", "h", key_type=key_type), version)

    assert expected == [each.error_code for each in answer.coordinators]
    assert ["g", "h"] == [each.key for each in answer.coordinators]
    assert {-1} == {each.node_id for each in answer.coordinators if each.error_code}


@pytest.mark.parametrize("version", range(4))
async def test_the_coordinator_of_one_key_is_refused(
    broker: TestBroker, client: WireClient, version: int
) -> None:
    expected = {0: NO_GROUP, 1: NO_TRANSACTION}
    for key_type, code in expected.items() if version else ((0, NO_GROUP),):
        answer = await client.ask(FindCoordinatorRequest(key="g", key_type=key_type), version)
        assert (code, -1, "", -1) == (answer.error_code, answer.node_id, answer.host, answer.port)
        assert (ErrorCode(code).sentence if version else None) == answer.error_message

    await allow_only(broker, [DESCRIBE_G])
    answer = await client.ask(FindCoordinatorRequest(key="g"), version)
    assert (0, broker.port) == (answer.error_code, answer.port)


async def test_a_refused_key_creates_no_topic() -> None:
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


# Members


@pytest.mark.parametrize(
    ("version", "request_", "unknown"),
    [
        (0, join_request("g", "m"), WRONG_MEMBER),
        (4, join_request("g"), NO_MEMBER_ID),
        (9, join_request("g"), NO_MEMBER_ID),
        (0, sync_request("g", "m"), WRONG_MEMBER),
        (4, sync_request("g", "m"), WRONG_MEMBER),
        (0, heartbeat_request("g", "m"), WRONG_MEMBER),
        (4, heartbeat_request("g", "m"), WRONG_MEMBER),
        (2, leave_request(2, "g", "m"), WRONG_MEMBER),
        (5, leave_request(5, "g", "m"), 0),
    ],
)
async def test_members_need_to_read_the_group(
    broker: TestBroker, client: WireClient, version: int, request_: Message, unknown: int
) -> None:
    """
    What the rest of a refused answer says is in ``tests/server/requests/test_error_response.py``.
    """
    await allow_only(broker, [DESCRIBE_G, DELETE_G])
    assert [NO_GROUP] == codes(await client.ask(request_, version), version)

    await allow_only(broker, [READ_G])
    assert unknown == codes(await client.ask(request_, version), version)[0]


async def test_a_protocol_that_is_missing_is_answered_before_the_group_is_refused(
    client: WireClient,
) -> None:
    request = sync_request("g", "m")

    assert NO_PROTOCOL == (await client.ask(request, 5)).error_code
    assert NO_GROUP == (await client.ask(request, 4)).error_code


# Offsets


def commit(*topics: str | UUID, group_id: str = "g") -> Message:
    """
    Commit the offsets of the partitions 0 and 1 of each topic, of which the second does not exist.
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
async def test_offsets_are_committed_of_topics_that_may_be_read(
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


async def test_offsets_are_committed_by_id_of_topics_that_may_be_read(
    broker: TestBroker, client: WireClient
) -> None:
    t, u = await ids(broker)
    await allow_only(broker, [READ_G, READ_T])

    answer = await client.ask(commit(t, u, UNKNOWN), 10)

    assert {t: [0, UNKNOWN_TOPIC], u: [NO_TOPIC] * 2, UNKNOWN: [UNKNOWN_ID] * 2} == {
        topic.topic_id: sorted(codes(topic.partitions, 10)) for topic in answer.topics
    }
    await allow_only(broker, [READ_T])
    assert [NO_GROUP] * 4 == codes(await client.ask(commit(t, UNKNOWN), 10), 10)


async def ids(broker: TestBroker) -> list[UUID]:
    await allow_only(broker, EVERYTHING)
    return [await broker.topic_id("t"), await broker.topic_id("u")]


def fetch(topics: Sequence[str] | None) -> Message:
    """
    The offsets of one group, up to version 7.
    """
    return api_request("offset_fetch", group_id="g", topics=partition_0(topics))


def fetch_of_groups(topics: Sequence[str | UUID] | None, *groups: str) -> Message:
    """
    The offsets of several groups, since version 8.
    """
    wanted = [{"group_id": group, "topics": partition_0(topics)} for group in groups]
    return api_request("offset_fetch", groups=wanted)


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


@pytest.mark.parametrize("version", [1, 2, 7])
async def test_offsets_of_a_group_are_fetched_as_far_as_they_may_be_described(
    broker: TestBroker, client: WireClient, version: int
) -> None:
    named = fetch(["u", "x", "t"])
    await allow_only(broker, [(DELETE_GROUP, "h"), READ_T])
    answer = await client.ask(named, version)
    if version == 1:
        assert [(name, -1, NO_GROUP) for name in "uxt"] == fetched(answer.topics)
    else:
        assert (NO_GROUP, []) == (answer.error_code, answer.topics)

    await allow_only(broker, [DESCRIBE_G, READ_T])
    answer = await client.ask(named, version)
    assert 0 == answer.error_code
    assert [("t", 7, 0), ("u", -1, NO_TOPIC), ("x", -1, NO_TOPIC)] == fetched(answer.topics)
    assert ["", "", ""] == [topic.partitions[0].metadata for topic in answer.topics]

    if version > 1:
        answer = await client.ask(fetch(None), version)
        assert (0, [("t", 7, 0)]) == (answer.error_code, fetched(answer.topics))


@pytest.mark.parametrize("version", [8, 9])
async def test_offsets_of_groups_are_fetched_as_far_as_they_may_be_described(
    broker: TestBroker, client: WireClient, version: int
) -> None:
    await allow_only(broker, [DESCRIBE_G, READ_T])

    named, everything = [
        await client.ask(fetch_of_groups(topics, "h", "g"), version)
        for topics in (["u", "t"], None)
    ]

    assert [("h", NO_GROUP), ("g", 0)] == [
        (each.group_id, each.error_code) for each in named.groups
    ]
    assert [[], [("t", 7, 0), ("u", -1, NO_TOPIC)]] == [fetched(g.topics) for g in named.groups]
    assert [("h", NO_GROUP, []), ("g", 0, [("t", 7, 0)])] == [
        (each.group_id, each.error_code, fetched(each.topics)) for each in everything.groups
    ]


async def test_offsets_are_fetched_by_id_of_topics_that_may_be_described(
    broker: TestBroker, client: WireClient
) -> None:
    t, u = await ids(broker)
    await allow_only(broker, [DESCRIBE_G, READ_T])

    named = await client.ask(fetch_of_groups([u, UNKNOWN, t], "g"), 10)
    everything = await client.ask(fetch_of_groups(None, "g"), 10)

    assert [(t, 7, 0), (u, -1, NO_TOPIC), (UNKNOWN, -1, UNKNOWN_ID)] == fetched(
        named.groups[0].topics
    )
    assert [(t, 7, 0)] == fetched(everything.groups[0].topics)


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
async def test_offsets_are_deleted_of_topics_that_may_be_read(
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


async def test_an_unknown_group_is_told_even_if_no_topic_may_be_read(
    broker: TestBroker, client: WireClient
) -> None:
    await allow_only(broker, [(DELETE_GROUP, "*")])

    answer = await client.ask(offset_delete_request("nobody", {"t": [0]}), 0)

    assert (NO_SUCH_GROUP, []) == (answer.error_code, answer.topics)


# Groups


@pytest.mark.parametrize("version", [0, 2])
async def test_groups_are_deleted_by_those_who_may(
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


async def test_groups_are_described_to_those_who_may_describe_them(
    broker: TestBroker, client: WireClient
) -> None:
    await allow_only(broker, [DESCRIBE_G, (ALTER_CONFIGS_GROUP, "g")])
    request = DescribeGroupsRequest(groups=["g", "h"], include_authorized_operations=True)

    answer = await client.ask(request, 6)

    operations = 1 << 8 | 1 << 10 | 1 << 11
    assert [("h", NO_GROUP, "", NOT_REQUESTED), ("g", 0, "Empty", operations)] == [
        (each.group_id, each.error_code, each.group_state, each.authorized_operations)
        for each in answer.groups
    ]
    assert answer.groups[0].error_message is None


@pytest.mark.parametrize(
    ("rights", "expected"),
    [
        ((), set()),
        ((DESCRIBE_G,), {"g"}),
        (((READ_GROUP, "h"),), {"h"}),
        (((DESCRIBE_CLUSTER, CLUSTER_NAME),), {"g", "h"}),
    ],
)
async def test_groups_are_listed_that_may_be_described(
    broker: TestBroker, client: WireClient, rights: Sequence[Right], expected: set[str]
) -> None:
    await allow_only(broker, rights)

    answer = await client.ask(ListGroupsRequest(), 5)

    assert (0, expected) == (answer.error_code, {each.group_id for each in answer.groups})
