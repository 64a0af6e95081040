"""
The memory that members of the later protocols take is bounded together with that of classic ones.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.coordination.groups.member_memory import RECORD_BYTES
from barnabas.coordination.groups.timeouts import Timeout
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.protocol.messages.streams_group_heartbeat import KeyValue
from tests.support.consumer_groups import ConsumerCoordination
from tests.support.coordination import GROUP, Coordination
from tests.support.group_requests import coordinator_request
from tests.support.server import running
from tests.support.share_groups import ShareCoordination
from tests.support.streams_groups import StreamsCoordination

LONG = ["t" * 249 + str(number) for number in range(1000)]  # 300 KB
TAGS = [KeyValue(key=str(number), value="v" * 30_000) for number in range(10)]
LIMIT = 1_000_000

KINDS = [
    (ConsumerCoordination, lambda c, member_id: c.enter(member_id, LONG)),
    (ShareCoordination, lambda c, member_id: c.enter(member_id, LONG)),
    (
        StreamsCoordination,
        lambda c, member_id: c.enter(member_id, client_tags=TAGS),
    ),
]


def members(c: Coordination) -> list[str]:
    group = c.state.groups.get(GROUP)
    return [] if group is None else list(group.members)


@pytest.mark.parametrize(("kind", "enter"), KINDS)
def test_members_beyond_the_memory_budget_cannot_join(
    kind: type[Any], enter: Callable[[Any, str], object]
) -> None:
    c = kind()
    c.memory.members.limit_bytes = LIMIT

    for number in range(6):
        enter(c, f"m{number}")

    assert ["m0", "m1", "m2"] == members(c)
    assert LIMIT >= c.memory.members.used_bytes > 800_000


@pytest.mark.parametrize(("kind", "enter"), KINDS)
def test_memory_of_removed_members_is_available_again(
    kind: type[Any], enter: Callable[[Any, str], object]
) -> None:
    c = kind()
    c.memory.members.limit_bytes = LIMIT
    for number in range(3):
        enter(c, f"m{number}")

    c.advance(10 * 60_000)
    gc.collect()

    assert [] == members(c)
    assert c.memory.members.used_bytes < 3 * RECORD_BYTES
    enter(c, "m9")
    assert ["m9"] == members(c)


def test_member_that_needs_no_more_memory_is_not_refused() -> None:
    c = ConsumerCoordination()
    c.memory.members.limit_bytes = LIMIT
    for number in range(3):
        c.enter(f"m{number}", LONG)
    c.memory.members.limit_bytes = 10

    answer = c.enter("m0", LONG[1:])

    assert ErrorCode.NONE == answer.error_code
    assert len(LONG) - 1 == len(c.member("m0").topic_names)


def test_members_of_both_protocols_share_the_memory_budget() -> None:
    c = ConsumerCoordination()
    c.memory.members.limit_bytes = LIMIT
    c.join(group_id="classic", protocols=[("range", bytes(900_000))], version=3)

    c.enter("m0", LONG)

    assert [] == members(c)


def test_patterns_count_with_their_matched_topics() -> None:
    c = ConsumerCoordination()
    for number in range(100):
        c.create(f"{'t' * 200}{number}", 1)
    c.enter("a", [], regex="t.*")
    before = c.memory.members.used_bytes

    c.executor.do()

    assert c.memory.members.used_bytes - before > 100 * 200


@pytest.mark.broker(offsets_topic_num_partitions="1")
@pytest.mark.parametrize(
    "request_type", [ConsumerGroupHeartbeatRequest, ShareGroupHeartbeatRequest]
)
async def test_client_beyond_the_memory_budget_is_told_to_retry(request_type: type[Any]) -> None:
    async with running(offsets_topic_num_partitions="1") as broker, await broker.client() as client:
        await client.ask(coordinator_request("g"), 4)
        groups = broker.inside.groups
        groups._memory.members.limit_bytes = 100_000
        facts: dict[str, Any] = {"group_id": "g", "member_epoch": 0}
        if request_type is ConsumerGroupHeartbeatRequest:
            facts |= {"rebalance_timeout_ms": 60_000, "topic_partitions": []}

        async def join(member_id: str, names: list[str]) -> Any:
            request = request_type(member_id=member_id, subscribed_topic_names=names, **facts)
            return await client.ask(request, 1)

        refused = await join("m0", LONG)
        taken = await join("m1", LONG[:10])

        assert ErrorCode.COORDINATOR_NOT_AVAILABLE == refused.error_code
        assert ErrorCode.NONE == taken.error_code
        timers = groups.state_of("g")._timers
        assert (Timeout.SESSION, "g", "m0") not in timers
        assert (Timeout.SESSION, "g", "m1") in timers
