"""
aiokafka's clients as a test wants them: started, and stopped at its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from typing import Any

from aiokafka import (  # type: ignore[import-untyped]  # the library ships no type hints
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    TopicPartition,
)
from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped]  # the same

PATIENCE = 60.0
"""
Seconds after which a client that still has not got what it waits for has failed.
"""


class Clients(AsyncExitStack):
    """
    Opens clients of one broker; as a context it closes all that are still open, the last one first.
    """

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self.bootstrap = bootstrap

    async def consumer(self, *topics: str, start: bool = True, **options: Any) -> Any:
        """
        A consumer that reads from the beginning unless *options* say otherwise.
        """
        chosen = {"bootstrap_servers": self.bootstrap, "auto_offset_reset": "earliest"} | options
        consumer = AIOKafkaConsumer(*topics, **chosen)
        self.push_async_callback(consumer.stop)
        if start:
            await consumer.start()
        return consumer

    async def producer(self, **options: Any) -> Any:
        """
        A producer; two records of one partition may be on their way at a time.
        """
        producer = AIOKafkaProducer(**({"bootstrap_servers": self.bootstrap} | options))
        self.push_async_callback(producer.stop)
        await producer.start()
        return producer

    async def admin(self) -> Any:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        self.push_async_callback(admin.close)
        await admin.start()
        return admin

    async def send(self, topic: str, partition: int, values: Iterable[bytes]) -> list[Any]:
        """
        Send *values* one after the other, each in a batch of its own; where each of them was put.
        """
        producer = await self.producer()
        return [await producer.send_and_wait(topic, value, partition=partition) for value in values]

    async def send_batch(
        self, topic: str, partition: int, values: Iterable[bytes], **options: Any
    ) -> Any:
        """
        Send *values* as one batch; where the first of them was put.
        """
        producer = await self.producer(**options)
        batch = producer.create_batch()
        for value in values:
            assert batch.append(key=None, value=value, timestamp=None) is not None
        return await (await producer.send_batch(batch, topic, partition=partition))


class Rebalances(ConsumerRebalanceListener):  # type: ignore[misc]  # it has no type hints
    """
    What a member of a group was told.
    """

    def __init__(self) -> None:
        self.assigned: list[set[TopicPartition]] = []
        self.revoked: list[set[TopicPartition]] = []
        self._news = asyncio.Event()

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self.revoked.append(set(revoked))

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.assigned.append(set(assigned))
        self._news.set()

    async def until(self, expected: set[TopicPartition]) -> None:
        """
        Wait until the member has exactly these partitions.
        """
        async with asyncio.timeout(PATIENCE):
            while not self.assigned or self.assigned[-1] != expected:
                self._news.clear()
                await self._news.wait()


def partitions_of(topic: str, *numbers: int) -> list[TopicPartition]:
    """
    These partitions of *topic*.
    """
    return [TopicPartition(topic, number) for number in numbers]


async def values(consumer: Any, count: int, *partitions: TopicPartition) -> list[bytes]:
    """
    The values of the next *count* records.
    """
    async with asyncio.timeout(PATIENCE):
        return [(await consumer.getone(*partitions)).value for _ in range(count)]


async def eventually(condition: Callable[[], bool]) -> None:
    """
    Wait for something that the library does not say, only shows.
    """
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110  # there is no event to wait for
            await asyncio.sleep(0.01)


async def nothing_comes(consumer: Any, milliseconds: int = 300) -> bool:
    """
    Whether no record arrives for that long.
    """
    return not await consumer.getmany(timeout_ms=milliseconds)


def numbered(count: int, first: int = 0) -> list[bytes]:
    """
    Values that can be told apart.
    """
    return [b"%d" % number for number in range(first, first + count)]
