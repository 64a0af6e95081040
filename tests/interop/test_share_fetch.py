"""
ShareFetch and ShareAcknowledge beside Apache Kafka: the same requests, answers and states.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from barnabas.protocol.records.batch import batches
from barnabas.protocol.structs import items
from tests.interop.test_share_coordinator import SETTINGS as OF_STATES
from tests.interop.test_share_coordinator import until_ready
from tests.support.both_brokers import BothBrokers
from tests.support.share_client import Member, ShareClient

pytestmark = [pytest.mark.interop, pytest.mark.prove]

TOPIC = "t"
REQUESTS = 300
SEEDS = range(4)
WAIT_MS = 20
"""
How long a fetch waits that finds nothing.
"""
FIRST_WAIT_MS = 2000
"""
The same for the first one, which waits for Kafka to read the state.
"""
RELEASE_S = 1.0
"""
How long Kafka may take to release the records of a member that ends: it answers before.
"""
SETTINGS = {
    **OF_STATES,
    "group.share.record.lock.duration.ms": "3600000",
    "group.share.max.record.lock.duration.ms": "3600000",
}
Step = Callable[["Side"], Awaitable[Any]]


class Side:
    """
    One broker, and the members of a group there.
    """

    def __init__(self, clients: list[ShareClient], group: str, release_s: float) -> None:
        """
        Args:
            release_s: how long to wait for the release of what a member had, in seconds.
        """
        self.clients = clients
        self.release_s = release_s
        self.members = [Member(group, f"m{number}") for number, _ in enumerate(clients)]


def plain(value: Any) -> Any:
    """
    An answer without topic ids, sentences and the order of partitions; batches by their offsets.
    """
    if isinstance(value, list):
        return sorted((plain(each) for each in value), key=repr)
    if isinstance(value, bytes | bytearray | memoryview):
        return [(batch.base_offset, batch.last_offset) for batch in batches(value)]
    if not hasattr(type(value), "__slots__") or isinstance(value, int | str):
        return value
    return {
        name: plain(each)
        for name, each in items(value)
        if name not in ("topic_id", "error_message", "acknowledge_error_message")
    }


class Script:
    """
    Random requests, chosen by what one side was given.
    """

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.acquired: list[tuple[int, int, int, int]] = []  # member, partition, offsets
        self._last = 0  # who fetched last

    def step(self) -> Step:
        choose = self.choose
        kinds: dict[Callable[[], Step], float] = {
            self._fetch: 6,
            self._acknowledge: 6,
            self._wrong: 1,
            self._end: 0.3,
            self._begin: 0.3,
        }
        (kind,) = choose.choices([*kinds], [*kinds.values()])
        return kind()

    def _values(self) -> dict[str, Any]:
        choose = self.choose
        return {
            "max_wait_ms": WAIT_MS,
            "max_bytes": choose.choice([1 << 20, 1 << 20, 400]),
            "max_records": choose.choice([1, 3, 10, 100]),
            "batch_size": choose.choice([1, 5, 100]),
            "share_acquire_mode": choose.choice([0, 0, 1]),
        }

    def _fetch(self) -> Step:
        choose = self.choose
        number = self._last = choose.randrange(2)
        partitions = choose.choice([[], [], [0], [0], [0, 7]])
        forgotten = choose.choice([[], [], [], [0], [7]])
        values = self._values()
        acknowledged = []
        if choose.random() < 0.3 and 7 not in partitions:
            taken = self._take(number)
            if taken is not None:
                partition, first, last = taken
                partitions = [partition]
                acknowledged = [(first, last, [choose.choice([1, 1, 3])])]

        async def run(side: Side) -> Any:
            return await side.clients[number].share_fetch(
                side.members[number],
                acknowledged,
                partitions=partitions,
                forgotten=forgotten,
                **values,
            )

        return run

    def _take(self, number: int) -> tuple[int, int, int] | None:
        """
        Something that a member has acquired: a partition, and offsets.
        """
        those = [each for each in self.acquired if each[0] == number]
        if not those:
            return None
        taken = self.choose.choice(those)
        self.acquired.remove(taken)
        return taken[1:]

    def _acknowledge(self) -> Step:
        choose = self.choose
        number = choose.randrange(2)
        taken = self._take(number)
        if taken is None:
            return self._fetch()
        partition, first, last = taken
        kind = choose.random()
        acknowledged: list[tuple[int, int, list[int]]] = [
            (first, last, [choose.choice([1, 2, 2, 3])])
        ]
        if kind < 0.3:
            types = choose.choices([0, 1, 2, 3], k=last - first + 1)
            acknowledged = [(first, last, types)]
        elif kind < 0.5 and first < last:
            middle = choose.randrange(first, last)
            acknowledged = [(first, middle, [1]), (middle + 1, last, [2])]
        elif kind < 0.6:
            acknowledged = [(first, last, [4])]
            self.acquired.append((number, *taken))
        return self._acknowledging(number, partition, acknowledged)

    def _wrong(self) -> Step:
        """
        An acknowledgement that nobody may give.
        """
        choose = self.choose
        first = choose.randrange(60)
        last = first + choose.randrange(-1, 5)
        types = choose.choice([[1], [], [5], [1, 2], [-1], [4], [2, 2, 2]])
        partition = choose.choice([0, 0, 7])
        return self._acknowledging(choose.randrange(2), partition, [(first, last, types)])

    def _acknowledging(
        self, number: int, partition: int, acknowledged: list[tuple[int, int, list[int]]]
    ) -> Step:
        is_renewal = any(4 in types for _, _, types in acknowledged) and self.choose.random() < 0.8

        async def run(side: Side) -> Any:
            return await side.clients[number].share_acknowledge(
                side.members[number],
                acknowledged,
                partition=partition,
                is_renew_ack=is_renewal,
            )

        return run

    def _end(self) -> Step:
        number = self.choose.randrange(2)
        self.acquired = [each for each in self.acquired if each[0] != number]

        async def run(side: Side) -> Any:
            member = side.members[number]
            member.epoch = -1
            answer = await side.clients[number].share_fetch(member, partitions=[], epoch=-1)
            await asyncio.sleep(side.release_s)
            return answer

        return run

    def _begin(self) -> Step:
        number = self._last = self.choose.randrange(2)
        values = self._values()

        async def run(side: Side) -> Any:
            member = side.members[number]
            member.epoch = -1
            return await side.clients[number].share_fetch(member, partitions=[0], **values)

        return run

    def learn(self, answer: Any) -> None:
        for topic in getattr(answer, "responses", ()):
            for partition in topic.partitions:
                for each in getattr(partition, "acquired_records", ()):
                    self.acquired.append(
                        (self._last, partition.partition_index, each.first_offset, each.last_offset)
                    )


@pytest.mark.parametrize("seed", SEEDS)
async def test_random_share_fetches_are_answered_as_in_kafka(both: BothBrokers, seed: int) -> None:
    async with AsyncExitStack() as clients:
        await _compare(both, seed, clients)


async def _compare(both: BothBrokers, seed: int, clients: AsyncExitStack) -> None:
    group = f"g{seed}"
    sides = []
    for broker in both:
        first = await ShareClient.of(broker.port, f"{TOPIC}{seed}")
        clients.push_async_callback(first.close)
        await until_ready(first)
        second = await first.another()
        clients.push_async_callback(second.close)
        sides.append(Side([first, second], group, RELEASE_S if broker is both.kafka else 0))
        choose = random.Random(seed)
        assert 0 == (await first.initialize(group, 0)).error_code
        for _ in range(100):
            await first.produce([b"v"] * choose.choice([1, 1, 2, 8]))
    kafka, barnabas = sides
    script = Script(seed)
    for side in sides:
        client, member = side.clients[0], side.members[0]
        await client.share_fetch(member, max_wait_ms=FIRST_WAIT_MS, max_records=1)
    for number in range(REQUESTS):
        step = script.step()

        theirs, ours = await step(kafka), await step(barnabas)

        assert plain(theirs) == plain(ours), number
        script.learn(theirs)
    states = [await each.clients[0].read(group, -1) for each in sides]
    assert plain(states[0]) == plain(states[1])
