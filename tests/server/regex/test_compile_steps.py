"""
Patterns are compiled in short steps, however expensive they are.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Generator, Iterator
from typing import Final, TypeVar

import pytest

from barnabas.coordination.regex.pattern import InvalidPattern, LinearPattern
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.server.config.client_metrics import ClientMetricsConfig
from barnabas.storage.config.option_values import ConfigError
from tests.server.requests.test_absurd_requests import TRIES, Broker, longest_turn, turn_of
from tests.support.limits import stated
from tests.support.wire_client import WireClient, request_frame

T = TypeVar("T")

LONGEST_STEP_S: Final = 0.03
"""A tenth of this, but for a busy machine."""
EXPENSIVE: Final = {
    "alternatives": "|".join("a" * 3300),
    "nested groups": "(" * 999 + "a" * 8000 + ")" * 999,
    "nested repetitions": "(?:" * 999 + "a{1000}" + "b{1000}" * 7 + ")" * 999,
    "nested alternatives": "(b|" * 999 + "a{1000}" * 4 + ")" * 999,
    "too large": "a{1000}b{1000}c{1000}d{1000}e{1000}f{1000}g{1000}|" * 170,
    "a class": "[" + "a" * 9990 + "]",
}


def longest_step(steps: Generator[None, None, T]) -> float:
    """
    The processor time of the longest step, in seconds.
    """
    longest = 0.0
    is_over = False
    while not is_over:
        begin = time.process_time()
        try:
            next(steps)
        except (StopIteration, InvalidPattern):
            is_over = True
        longest = max(longest, time.process_time() - begin)
    return longest


@pytest.mark.parametrize("name", EXPENSIVE)
def test_pattern_is_compiled_in_short_steps(name: str) -> None:
    text = EXPENSIVE[name]

    assert min(longest_step(LinearPattern.in_steps(text)) for _ in range(3)) < LONGEST_STEP_S


def test_class_of_very_many_members_is_matched_in_short_steps() -> None:
    members = "".join(map(chr, range(0x4E00, 0x4E00 + 4900)))
    patterns = [LinearPattern(f"(?:[{members}]?){{1000}}") for _ in range(3)]

    assert min(longest_step(pattern.matching("a")) for pattern in patterns) < LONGEST_STEP_S
    pattern = patterns[0]
    assert pattern.fullmatch(members[0] + members[-1])
    assert not pattern.fullmatch("a")


@pytest.mark.parametrize(
    ("members", "inside", "outside"),
    [
        ("a-cb-de", "abcde", "f`"),
        ("d-fa-bx", "abdefx", "cgy"),
        (r"\d\d[:alpha:]_", "0aZ_", "-"),
        ("^a-cx", "dy", "abcx"),
    ],
)
def test_class_has_the_union_of_its_members(members: str, inside: str, outside: str) -> None:
    pattern = LinearPattern(f"[{members}]")

    assert all(map(pattern.fullmatch, inside))
    assert not any(map(pattern.fullmatch, outside))


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    thresholds = gc.get_threshold()
    with Broker() as broker:
        asyncio.run(coordinated(broker))
        yield broker
    gc.set_threshold(*thresholds)
    gc.unfreeze()


async def coordinated(broker: Broker) -> None:
    """
    Return once there are coordinators.
    """
    async with await WireClient.open(broker.port) as client:
        for kind in (0, 1):
            while (await client.ask(FindCoordinatorRequest(key="g", key_type=kind), 3)).error_code:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("name", EXPENSIVE)
async def test_heartbeat_with_an_expensive_pattern_keeps_nobody_waiting(
    broker: Broker, name: str
) -> None:
    longest = []
    for number in range(TRIES):
        request = ConsumerGroupHeartbeatRequest(
            group_id=f"{name} {number}",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            subscribed_topic_regex=EXPENSIVE[name],
            topic_partitions=[],
        )
        longest.append(await turn_of(broker, request_frame(request, 1)))

    assert min(longest) < stated("longest-turn") / 2


async def test_list_of_transactions_by_an_expensive_pattern_keeps_nobody_waiting(
    broker: Broker,
) -> None:
    request = ListTransactionsRequest(
        state_filters=[],
        producer_id_filters=[],
        transactional_id_pattern=EXPENSIVE["nested groups"],
    )

    assert await longest_turn(broker, request_frame(request, 2)) < stated("longest-turn") / 2


@pytest.mark.parametrize(
    "pattern", ["(" * 5000 + ")" * 5000, "a{99999999999}", "(", "(?:a{1000}){9}", "x" * 20_000]
)
def test_pattern_of_a_metrics_subscription_is_bounded(pattern: str) -> None:
    with pytest.raises(ConfigError, match="client matching pattern"):
        ClientMetricsConfig.parse({"match": f"client_id={pattern}"})


def test_patterns_of_a_metrics_subscription_are_bounded_together() -> None:
    facts = ["client_id", "client_software_name", "client_software_version"]
    patterns = [f"{fact}=" + "a{1000}" * 4 for fact in facts]

    ClientMetricsConfig.parse({"match": ",".join(patterns[:2])})
    with pytest.raises(ConfigError, match="too large"):
        ClientMetricsConfig.parse({"match": ",".join(patterns)})
