"""
Heartbeats that no record can hold do not block the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final
from uuid import UUID, uuid4

import pytest

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_group_heartbeat import Topology
from tests.server.requests.test_absurd_requests import TRIES, Broker, longest_turn
from tests.support.build import api_request
from tests.support.group_requests import coordinator_request
from tests.support.limits import stated
from tests.support.streams_programs import part, topology
from tests.support.wire_client import WireClient, request_frame

pytestmark = pytest.mark.prove

TOPICS: Final = [f"{number}".ljust(249, "x") for number in range(40_000)]
MEMBER: Final = {"group_id": "g", "member_id": str(UUID(int=1)), "member_epoch": 0}
MEMBER_OF_A_CLASSIC_GROUP: Final = {
    "group_id": "g",
    "member_id": "",
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 1000,
    "protocol_type": "consumer",
}
TIMES: Final = {"rebalance_timeout_ms": 10_000}
NO_TASKS: Final[dict[str, Any]] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}

TOO_LARGE: Final = [
    api_request(
        "consumer_group_heartbeat",
        **MEMBER,
        **TIMES,
        subscribed_topic_names=TOPICS,
        topic_partitions=[],
    ),
    api_request("share_group_heartbeat", **MEMBER, subscribed_topic_names=TOPICS),
]
"""
Heartbeats whose records fit into no batch.
"""


SUBTOPOLOGIES: Final = int(stated("subtopologies"))
SOURCES: Final = int(stated("topology-topics"))


def streams_heartbeat(**values: Any) -> Message:
    return api_request(
        "streams_group_heartbeat",
        **MEMBER | values,
        **TIMES,
        **NO_TASKS,
        endpoint_information_epoch=0,
        process_id="p",
    )


def of_subtopologies(count: int) -> Topology:
    return topology(*(part(str(number), [f"t{number}"]) for number in range(count)), epoch=1)


def of_sources(count: int) -> Topology:
    return topology(part("0", [f"t{number}" for number in range(count)]), epoch=1)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(group_coordinator_rebalance_protocols="classic,consumer,share,streams") as broker:
        yield broker


@pytest.mark.parametrize("request_", TOO_LARGE, ids=lambda each: type(each).__name__)
async def test_heartbeat_whose_record_fits_into_no_batch_is_refused_at_once(
    broker: Broker, request_: Message
) -> None:
    version = request_.api.versions[-1]
    async with await WireClient.open(broker.port) as client:
        while (await client.ask(coordinator_request("g"), 4)).coordinators[0].error_code:
            pass
        answer = await client.ask(request_, version)

    assert ErrorCode.UNKNOWN_SERVER_ERROR == answer.error_code
    assert await longest_turn(broker, request_frame(request_, version)) <= stated("longest-turn")


async def longest_turn_of_first(
    broker: Broker, make: Callable[[str], Message], code: ErrorCode
) -> float:
    """
    The shortest of the longest turns, in seconds, of requests that each begin a group of their own.
    """
    turns = []
    async with await WireClient.open(broker.port) as client:
        while (await client.ask(coordinator_request("g"), 4)).coordinators[0].error_code:
            pass
        for number in range(TRIES):
            request = make(f"{uuid4()}-{number}")
            broker.longest_s = 0.0
            answer = await client.ask(request, request.api.versions[-1])
            assert code == answer.error_code
            await client.ask(coordinator_request("g"), 4)
            turns.append(broker.longest_s)
    return min(turns)


@pytest.mark.parametrize("api", ["consumer_group_heartbeat", "share_group_heartbeat"])
async def test_member_that_joins_with_very_many_unknown_topics_does_not_block_the_event_loop(
    broker: Broker, api: str
) -> None:
    names = [f"t{number}" for number in range(40_000)]
    more = {**TIMES, "topic_partitions": []} if api.startswith("consumer") else {}

    def join(group_id: str) -> Message:
        facts = {**MEMBER, "group_id": group_id, **more}
        return api_request(api, **facts, subscribed_topic_names=names)

    assert await longest_turn_of_first(broker, join, ErrorCode.NONE) <= stated("longest-turn")


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (of_subtopologies(SUBTOPOLOGIES), ErrorCode.NONE),
        (of_subtopologies(SUBTOPOLOGIES + 1), ErrorCode.STREAMS_INVALID_TOPOLOGY),
        (of_subtopologies(50_000), ErrorCode.STREAMS_INVALID_TOPOLOGY),
        (of_sources(SOURCES), ErrorCode.NONE),
        (of_sources(SOURCES + 1), ErrorCode.STREAMS_INVALID_TOPOLOGY),
        (
            topology(part("0", [name * 130 for name in TOPICS[:3000]])),
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ),
    ],
    ids=[
        "subtopologies",
        "a subtopology more",
        "very many",
        "topics",
        "a topic more",
        "long names",
    ],
)
async def test_member_with_a_large_topology_does_not_block_the_event_loop(
    broker: Broker, value: Topology, code: ErrorCode
) -> None:
    def join(group_id: str) -> Message:
        return streams_heartbeat(group_id=group_id, topology=value)

    assert await longest_turn_of_first(broker, join, code) <= stated("longest-turn")


async def test_turn_of_a_large_value_is_that_of_its_bytes(broker: Broker) -> None:
    size_bytes = 60 << 20
    request = api_request(
        "join_group",
        **MEMBER_OF_A_CLASSIC_GROUP,
        protocols=[{"name": "range", "metadata": bytes(size_bytes)}],
    )
    most = stated("longest-turn") + stated("value-turn") * (size_bytes >> 20)

    assert await longest_turn(broker, request_frame(request, request.api.versions[-1])) <= most
