"""
The consumer protocol beside an authorizer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import pytest

from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.server.security.acl.permissions import (
    ALTER_CONFIGS_GROUP,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    READ_GROUP,
)
from tests.support.acls import AUTHORIZER, EVERYTHING, allow_only
from tests.support.group_requests import coordinator_request
from tests.support.server import TestBroker, running
from tests.support.wire_client import WireClient

NO_TOPIC, NO_GROUP, UNSUPPORTED = 29, 30, 35
NOT_FOUND: Final = 69
READ_G: Final = (READ_GROUP, "g")
DESCRIBE_G: Final = (DESCRIBE_GROUP, "g")
SMALL: Final = {
    "offsets_topic_num_partitions": "1",
    "group_consumer_assignment_interval_ms": "0",
}


@pytest.fixture
async def broker() -> AsyncIterator[TestBroker]:
    """
    The topics t and u have a partition each.
    """
    async with running(**AUTHORIZER, **SMALL) as broker:
        await allow_only(broker, EVERYTHING)
        for topic in ("t", "u"):
            await broker.create(topic)
        async with await broker.client() as client:
            await client.ask(coordinator_request("g"), 4)
        await allow_only(broker, ())
        yield broker


def join(*topics: str, regex: str | None = None, member_id: str = "m") -> Any:
    return ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=list(topics),
        subscribed_topic_regex=regex,
        topic_partitions=[],
    )


def beat(epoch: int) -> Any:
    return ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch)


@pytest.mark.parametrize(
    ("rights", "topics", "code"),
    [
        ((), ("t",), NO_GROUP),
        ((DESCRIBE_G, (DESCRIBE_TOPIC, "t")), ("t",), NO_GROUP),
        ((READ_G,), ("t",), NO_TOPIC),
        ((READ_G, (DESCRIBE_TOPIC, "t")), ("t", "u"), NO_TOPIC),
        ((READ_G, (DESCRIBE_TOPIC, "t")), ("t", "t"), 0),
        ((READ_G, (DESCRIBE_TOPIC, "t")), ("t", "missing"), NO_TOPIC),
        ((READ_G,), (), 0),
    ],
)
async def test_a_member_reads_the_group_and_describes_its_topics(
    broker: TestBroker,
    client: WireClient,
    rights: Sequence[Any],
    topics: tuple[str, ...],
    code: int,
) -> None:
    await allow_only(broker, rights)

    answer = await client.ask(join(*topics), 1)

    assert (code, None) == (answer.error_code, answer.error_message)


async def test_a_pattern_matches_topics_that_its_member_may_describe(
    broker: TestBroker, client: WireClient
) -> None:
    await allow_only(broker, [READ_G, (DESCRIBE_TOPIC, "u")])
    epoch = (await client.ask(join(regex="[tu]"), 1)).member_epoch

    assigned = None
    while assigned is None:
        answer = await client.ask(beat(epoch), 1)
        assert 0 == answer.error_code
        epoch, assigned = answer.member_epoch, answer.assignment

    (topic,) = assigned.topic_partitions
    known = broker.inside.topics.get("u")
    assert known is not None
    assert known.id == topic.topic_id


async def test_a_group_is_described_to_those_who_may_describe_it_and_its_topics(
    broker: TestBroker, client: WireClient
) -> None:
    await allow_only(broker, [READ_G, (DESCRIBE_TOPIC, "t")])
    assert 0 == (await client.ask(join("t"), 1)).error_code
    request = ConsumerGroupDescribeRequest(
        group_ids=["g", "missing", ""], include_authorized_operations=True
    )

    await allow_only(broker, [])
    assert [NO_GROUP] * 3 == [g.error_code for g in (await client.ask(request, 1)).groups]
    await allow_only(broker, [DESCRIBE_G, (ALTER_CONFIGS_GROUP, "g")])
    hidden, *others = sorted(
        (await client.ask(request, 1)).groups, key=lambda each: each.group_id != "g"
    )
    assert (NO_TOPIC, []) == (hidden.error_code, hidden.members)
    assert hidden.error_message == (
        "The group has described topic(s) that the client is not authorized to describe."
    )
    assert [NO_GROUP] * 2 == [each.error_code for each in others]
    await allow_only(broker, [DESCRIBE_G, (ALTER_CONFIGS_GROUP, "g"), (DESCRIBE_TOPIC, "t")])
    group = next(each for each in (await client.ask(request, 1)).groups if each.group_id == "g")

    assert (0, "Stable", 1 << 8 | 1 << 10 | 1 << 11) == (
        group.error_code,
        group.group_state,
        group.authorized_operations,
    )
    assert ["m"] == [member.member_id for member in group.members]


async def test_groups_that_cannot_be_described_have_errors(
    broker: TestBroker, client: WireClient
) -> None:
    await allow_only(broker, EVERYTHING)
    request = ConsumerGroupDescribeRequest(
        group_ids=["missing", ""], include_authorized_operations=False
    )

    found = {g.group_id: g for g in (await client.ask(request, 1)).groups}

    assert (NOT_FOUND, "Group missing not found.") == (
        found["missing"].error_code,
        found["missing"].error_message,
    )
    assert (24, None) == (found[""].error_code, found[""].error_message)


async def test_a_protocol_that_is_off_is_not_spoken() -> None:
    options = {"group_coordinator_rebalance_protocols": "classic", **SMALL}
    async with running(**options) as broker, await broker.client() as client:
        await client.ask(coordinator_request("g"), 4)

        assert UNSUPPORTED == (await client.ask(join(), 1)).error_code
        request = ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=False)
        assert [UNSUPPORTED] == [g.error_code for g in (await client.ask(request, 1)).groups]
