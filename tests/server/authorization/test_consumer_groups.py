from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from barnabas.coordination.security.acl.permissions import (
    ALTER_CONFIGS_GROUP,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    READ_GROUP,
)
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.support.acls import AUTHORIZER, EVERYTHING, allow_only
from tests.support.group_requests import coordinator_request
from tests.support.server import TestBroker, running
from tests.support.wire_client import WireClient

NO_TOPIC, NO_GROUP = 29, 30
READ_G: Final = (READ_GROUP, "g")
DESCRIBE_G: Final = (DESCRIBE_GROUP, "g")
SMALL: Final = {
    "offsets_topic_num_partitions": "1",
    "group_consumer_assignment_interval_ms": "0",
}


@pytest.fixture
async def broker() -> AsyncIterator[TestBroker]:
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


async def test_pattern_matches_only_topics_that_the_member_may_describe(
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


async def test_group_description_requires_describe_on_the_group_and_its_topics(
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

    assert (0, "Stable", "uniform", 1 << 8 | 1 << 10 | 1 << 11) == (
        group.error_code,
        group.group_state,
        group.assignor_name,
        group.authorized_operations,
    )
    assert ["m"] == [member.member_id for member in group.members]
