from __future__ import annotations

from typing import Any, Final

import pytest

from barnabas.coordination.groups.streams.statuses import StatusCode
from barnabas.coordination.security.acl.bindings import CLUSTER_NAME
from barnabas.coordination.security.acl.permissions import (
    CREATE_CLUSTER,
    CREATE_TOPIC,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    READ_GROUP,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from barnabas.protocol.messages.streams_group_heartbeat import Topology
from tests.support.acls import AUTHORIZER, EVERYTHING, Right, allow_only, create_topics
from tests.support.group_requests import coordinator_request
from tests.support.server import TestBroker
from tests.support.streams_programs import first_heartbeat, internal, part, topology
from tests.support.wire_client import WireClient

E = ErrorCode
pytestmark = pytest.mark.broker(**AUTHORIZER)

PROGRAM: Final = topology(part("0", ["t"], changelogs=[internal("log")]))
MEMBER: Final[tuple[Right, ...]] = (
    (READ_GROUP, "g"),
    (DESCRIBE_TOPIC, "t"),
    (DESCRIBE_TOPIC, "log"),
)
MISSING: Final = "Internal topics are missing: log"


async def join(client: WireClient, program: Topology = PROGRAM) -> Any:
    return await client.ask(first_heartbeat("g", program, rebalance_timeout_ms=1000), 0)


def missing_topics(answer: Any) -> str:
    """
    The status about missing topics; empty without one.
    """
    code = StatusCode.MISSING_INTERNAL_TOPICS
    return "".join(each.status_detail for each in answer.status if each.status_code == code)


async def begin(broker: TestBroker, client: WireClient) -> None:
    await create_topics(broker, {"t": 2})
    await allow_only(broker, EVERYTHING)
    await client.ask(coordinator_request("g"), 4)


def has(broker: TestBroker, topic: str) -> bool:
    return broker.inside.topics.is_usable(topic)


@pytest.mark.parametrize("right", [(CREATE_TOPIC, "log"), (CREATE_CLUSTER, CLUSTER_NAME)])
async def test_internal_topics_are_created_only_with_permission(
    broker: TestBroker, client: WireClient, right: Right
) -> None:
    """
    Other members join, and are informed of the missing topics.
    """
    await begin(broker, client)
    await allow_only(broker, MEMBER)

    unauthorized = f"{MISSING}; Unauthorized to CREATE on topics log."
    assert unauthorized == missing_topics(await join(client))
    assert not has(broker, "log")

    await allow_only(broker, (*MEMBER, right))
    assert MISSING == missing_topics(await join(client))
    while missing_topics(await join(client)):
        pass
    assert has(broker, "log")


async def test_topic_that_cannot_be_created_is_reported(
    broker: TestBroker, client: WireClient
) -> None:
    await begin(broker, client)
    program = topology(
        part("0", ["t"], changelogs=[internal("log", 0, 0, **{"cleanup.policy": "nonsense"})])
    )

    await join(client, program)
    details = ""
    while "Creation failed" not in details:
        details = missing_topics(await join(client, program))

    assert details.startswith(f"{MISSING}; Creation failed: log (Invalid value nonsense")


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (
            ["__consumer_offsets", "t", "__transaction_state"],
            "Use of Kafka internal topics __consumer_offsets,__transaction_state in a Kafka Streams"
            " topology is prohibited.",
        ),
        (["a b", "t", "c/d"], "Topic names a b,c/d are not valid topic names."),
    ],
)
async def test_invalid_internal_topics_are_named(
    broker: TestBroker, client: WireClient, names: list[str], sentence: str
) -> None:
    await begin(broker, client)

    answer = await join(client, topology(part("0", names)))

    assert (E.STREAMS_INVALID_TOPOLOGY, sentence) == (answer.error_code, answer.error_message)


async def test_streams_group_description_requires_describe_on_its_topics(
    broker: TestBroker, client: WireClient
) -> None:
    await begin(broker, client)
    await join(client)
    request = StreamsGroupDescribeRequest(
        group_ids=["g", "", "none"], include_authorized_operations=False
    )

    async def codes(*rights: Right) -> list[int]:
        await allow_only(broker, rights)
        return [group.error_code for group in (await client.ask(request, 0)).groups]

    refused = E.GROUP_AUTHORIZATION_FAILED
    assert [refused] * 3 == await codes()
    assert [refused, refused, E.TOPIC_AUTHORIZATION_FAILED] == await codes((DESCRIBE_GROUP, "g"))
    seen = await codes((DESCRIBE_GROUP, "g"), (DESCRIBE_TOPIC, "t"), (DESCRIBE_TOPIC, "log"))
    assert [refused, refused, E.NONE] == seen
