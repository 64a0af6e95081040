"""
Clients over their quotas get on as fast with Barnabas as with Apache Kafka, are told the same, and
are refused the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import pytest

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess
from tests.support.cluster_requests import new_quotas
from tests.support.server import batch, fetch_request, fetch_topic, produce_request
from tests.support.topic_requests import create_request, delete_request, grow_request
from tests.support.wire_client import Disconnected, WireClient

pytestmark = pytest.mark.prove

T = TypeVar("T")

RATE: Final = 100_000
"""
Bytes in a second.
"""
RUN_S: Final = 6.0
SETTINGS: Final = {
    "quota.window.num": "3",
    "quota.window.size.seconds": "1",
    "controller.quota.window.num": "2",
    "controller.quota.window.size.seconds": "1",
}
QUOTAS: Final[Mapping[str, Mapping[str, float]]] = {
    "producer": {"producer_byte_rate": RATE},
    "consumer": {"consumer_byte_rate": RATE},
    "strict": {"controller_mutation_rate": 0.5},
    "old": {"controller_mutation_rate": 0.5},
    "slow": {"request_percentage": 1e-4},
}
"""
By client id.
"""
TOPIC: Final = "t"
BATCH: Final = batch("x" * 10_000)
PRODUCE, FETCH = 9, 12


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothBrokers]:
    directory = tmp_path_factory.mktemp("quotas")
    with BothBrokers.side_by_side(directory, SETTINGS) as brokers:
        brokers.start()
        asyncio.run(of_each(brokers, prepare))
        yield brokers


async def of_each(both: BothBrokers, work: Callable[[BrokerProcess], Awaitable[T]]) -> tuple[T, T]:
    """
    What *work* finds on Kafka and on Barnabas, at the same time.
    """
    kafka, barnabas = await asyncio.gather(work(both.kafka), work(both.barnabas))
    return kafka, barnabas


async def prepare(broker: BrokerProcess) -> None:
    entries = [({"client-id": name}, list(values.items())) for name, values in QUOTAS.items()]
    async with await WireClient.open(broker.port) as client:
        answer = await client.ask(new_quotas(*entries), 1)
        assert {0} == {entry.error_code for entry in answer.entries}
        assert [0] == await created(client, 6, **{TOPIC: 1})
        await asyncio.sleep(1.0)  # Kafka's broker hears of a change a moment after the answer.
        for _ in range(100):
            answer = await client.ask(produce_request(TOPIC, BATCH), PRODUCE)
            assert 0 == answer.responses[0].partition_responses[0].error_code


async def created(client: WireClient, version: int, **partitions: int) -> list[int]:
    return codes(await client.ask(create_request(**partitions), version))


def codes(answer: Any) -> list[int]:
    """
    In the order of the names.
    """
    (results,) = (
        getattr(answer, field)
        for field in ("topics", "results", "responses")
        if hasattr(answer, field)
    )
    return [each.error_code for each in sorted(results, key=lambda each: str(each.name))]


class Run(NamedTuple):
    """
    What a client that asks again and again gets within ``RUN_S``.
    """

    moved: int  # bytes
    before: int  # requests until it had to wait for the first time
    first_ms: int  # that time
    told_ms: int  # all such times together


async def run(
    broker: BrokerProcess, client_id: str, ask: Callable[[WireClient, int], Awaitable[Any]]
) -> Run:
    """
    Args:
        ask: asks once, beside so many bytes that have been moved; returns their number and the wait
            that the answer tells.
    """
    moved = before = first = told = 0
    async with await WireClient.open(broker.port, client_id=client_id) as client:
        end = time.monotonic() + RUN_S
        while time.monotonic() < end:
            size, throttle_ms = await ask(client, moved)
            moved += size
            told += throttle_ms
            if not told:
                before += 1
            elif not first:
                first = throttle_ms
    return Run(moved, before, first, told)


async def produced(client: WireClient, _moved: int) -> tuple[int, int]:
    answer = await client.ask(produce_request(TOPIC, BATCH), PRODUCE)
    assert 0 == answer.responses[0].partition_responses[0].error_code
    return len(BATCH), answer.throttle_time_ms


async def fetched(client: WireClient, moved: int) -> tuple[int, int]:
    offset = moved // len(BATCH)
    request = fetch_request(fetch_topic(TOPIC, {0: offset}, partition_max_bytes=len(BATCH)))
    answer = await client.ask(request, FETCH)
    records = [part.records for topic in answer.responses for part in topic.partitions]
    assert bool(records) != bool(answer.throttle_time_ms), "records or a wait"
    return sum(map(len, records)), answer.throttle_time_ms


async def both_ways(broker: BrokerProcess) -> tuple[Run, Run]:
    return await asyncio.gather(run(broker, "producer", produced), run(broker, "consumer", fetched))


async def test_producers_and_consumers_are_throttled_as_in_kafka(both: BothBrokers) -> None:
    kafka, barnabas = await of_each(both, both_ways)

    # A consumer gets nothing until enough has left the windows. How much it has after a few seconds
    # differs by as much as a window and a half from one run of Kafka to the next.
    for theirs, ours, slack in zip(kafka, barnabas, (0.0, 1.5), strict=True):
        assert ours.moved == pytest.approx(theirs.moved, rel=0.1, abs=slack * RATE), (kafka, ours)
        assert ours.before == pytest.approx(theirs.before, abs=1)
        assert ours.first_ms == pytest.approx(theirs.first_ms, rel=0.1, abs=100)
        # One of them may just have been told once more, at the end.
        assert ours.told_ms == pytest.approx(theirs.told_ms, abs=2000)
        # Two windows are there at once; then it is the quota.
        assert ours.moved == pytest.approx(RATE * (RUN_S + 2), rel=0.3)


async def asked_apart(
    broker: BrokerProcess, client_id: str, requests: Sequence[tuple[Message, int]]
) -> list[tuple[list[int], int]]:
    """
    The codes and the wait that each request is answered with. Each has a connection of its own, for
    those of the earlier ones are not read.
    """
    told = []
    for request, version in requests:
        async with await WireClient.open(broker.port, client_id=client_id) as client:
            answer = await client.ask(request, version)
            told.append((codes(answer), answer.throttle_time_ms))
    return told


STRICT: Final = (
    (create_request(a=4, b=1), 6),
    (create_request(c=1), 7),
    (grow_request(t=2), 3),
    (DeleteTopicsRequest(topic_names=["a", "x"], timeout_ms=10_000), 5),
    (delete_request(6, "a"), 6),
    (create_request(t=1), 7),
)
OLD: Final = (
    (create_request(d=4, e=1), 5),
    (grow_request(t=2), 2),
    (DeleteTopicsRequest(topic_names=["d", "x"], timeout_ms=10_000), 4),
)


@pytest.mark.parametrize(("client_id", "requests"), [("strict", STRICT), ("old", OLD)])
async def test_topic_changes_are_refused_as_in_kafka(
    both: BothBrokers, client_id: str, requests: Sequence[tuple[Message, int]]
) -> None:
    theirs, ours = await of_each(both, lambda broker: asked_apart(broker, client_id, requests))

    assert [each for each, _ in theirs] == [each for each, _ in ours]
    for (_, kafka_ms), (_, ms) in zip(theirs, ours, strict=True):
        assert ms == pytest.approx(kafka_ms, abs=400)
    assert any(ms for _, ms in ours)


async def beats(broker: BrokerProcess) -> int:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    async with await WireClient.open(broker.port, client_id="slow") as client:
        waits: list[int] = [(await client.ask(request, 3)).throttle_time_ms for _ in range(2)]
    return max(waits)


async def test_request_throttle_time_is_at_most_a_window(both: BothBrokers) -> None:
    assert (1000, 1000) == await of_each(both, beats)


async def connections(broker: BrokerProcess) -> tuple[int, int]:
    """
    How many of ten that come at once are served, and how many are closed.
    """
    async with await WireClient.open(broker.port) as admin:
        quota = ({"ip": "127.0.0.1"}, [("connection_creation_rate", 2.0)])
        await admin.ask(new_quotas(quota), 1)
        await asyncio.sleep(1.0)
        clients = [await WireClient.open(broker.port) for _ in range(10)]

        async def ask(client: WireClient) -> bool:
            async with client:
                try:
                    await client.ask(MetadataRequest(topics=[]), 9)
                except Disconnected:
                    return False
                return True

        answers = await asyncio.gather(*map(ask, clients))
        gone = ({"ip": "127.0.0.1"}, [("connection_creation_rate", None)])
        await admin.ask(new_quotas(gone), 1)
    return answers.count(True), answers.count(False)


async def test_connections_of_an_address_are_closed_as_in_kafka(both: BothBrokers) -> None:
    """
    Four are there at once: two windows with two each.
    """
    assert ((4, 6), (4, 6)) == await of_each(both, connections)
