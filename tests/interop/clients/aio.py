"""
aiokafka.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka import (  # type: ignore[import-untyped]  # the library ships no type hints
    AIOKafkaConsumer,
    AIOKafkaProducer,
    TopicPartition,
)
from aiokafka.admin import (  # type: ignore[import-untyped]  # the same
    AIOKafkaAdminClient,
    NewTopic,
)

from tests.interop.clients.base import PATIENCE, NewRecord, Place, Seen
from tests.interop.clients.two_members import SharedCount


class AioKafka:
    """
    The asyncio client.
    """

    name = "aiokafka"
    sends_null_headers = True

    def create_topic(
        self, bootstrap: str, topic: str, partitions: int, configs: Mapping[str, str]
    ) -> None:
        async def create() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
            await admin.start()
            try:
                new = NewTopic(topic, partitions, 1, topic_configs=dict(configs))
                answer = await admin.create_topics([new])
            finally:
                await admin.close()
            assert [code for _, code, *_ in answer.topic_errors] == [0], answer

        asyncio.run(create())

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[NewRecord], codec: str
    ) -> list[Place]:
        async def produce() -> list[Place]:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec
            )
            await producer.start()
            try:
                futures = [
                    await producer.send(
                        topic,
                        value=record.value,
                        key=record.key,
                        headers=list(record.headers),
                        timestamp_ms=record.timestamp_ms,
                        partition=record.partition,
                    )
                    for record in records
                ]
                answers = await asyncio.wait_for(asyncio.gather(*futures), PATIENCE)
            finally:
                await producer.stop()
            return [Place(answer.partition, answer.offset) for answer in answers]

        return asyncio.run(produce())

    def read(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[Seen]:
        async def read() -> list[Seen]:
            consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
            deadline = time.monotonic() + PATIENCE
            seen: list[Seen] = []
            await consumer.start()
            try:
                consumer.assign([TopicPartition(topic, n) for n in range(partitions)])
                while len(seen) < count and time.monotonic() < deadline:
                    seen += await _poll(consumer)
            finally:
                await consumer.stop()
            return seen

        return asyncio.run(read())

    def consume_in_group(
        self, bootstrap: str, topic: str, group: str, count: int
    ) -> tuple[list[Seen], list[Seen]]:
        async def member(enough: SharedCount) -> list[Seen]:
            consumer = AIOKafkaConsumer(
                topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest"
            )
            seen: list[Seen] = []
            await consumer.start()
            try:
                while not enough.is_reached:
                    fresh = await _poll(consumer)
                    seen += fresh
                    enough.add(len(fresh))
                    if fresh:
                        await consumer.commit()
            finally:
                await consumer.stop()
            return seen

        async def both() -> tuple[list[Seen], list[Seen]]:
            enough = SharedCount(count)
            one, two = await asyncio.gather(member(enough), member(enough))
            return one, two

        return asyncio.run(both())


async def _poll(consumer: Any) -> list[Seen]:
    batches = await consumer.getmany(timeout_ms=200, max_records=500)
    return [
        Seen(r.partition, r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
        for batch in batches.values()
        for r in batch
    ]
