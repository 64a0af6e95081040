"""
A member of a consumer group, as a process of its own: it can be closed, or killed.

Run as ``python -m tests.interop.group_member LIBRARY BOOTSTRAP GROUP TOPIC [INSTANCE]``. Prints a
line for each change of what it is assigned (``assigned 0,2``) and for what it has read and
committed (``seen 17 of 0``, the next offset of a partition). SIGTERM closes the consumer properly.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterable
from typing import Any

SESSION_TIMEOUT_MS = 6000
HEARTBEAT_MS = 500


class Stop:
    """
    Whether somebody has sent a SIGTERM.
    """

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, *_: Any) -> None:
        self.asked = True


class Report:
    """
    What the process prints.
    """

    def __init__(self) -> None:
        self._assigned: list[int] | None = None

    def assigned(self, partitions: Iterable[int]) -> None:
        """
        Tell what is assigned, if that has changed.
        """
        now = sorted(partitions)
        if now != self._assigned:
            self._assigned = now
            print("assigned", ",".join(map(str, now)) or "-", flush=True)

    def seen(self, partition: int, next_offset: int) -> None:
        """
        Tell how far a partition was read, and that this is committed.
        """
        print("seen", next_offset, "of", partition, flush=True)


def kafka_python(bootstrap: str, group: str, topic: str, instance: str | None) -> None:
    # Each process needs one library only.
    from kafka import KafkaConsumer  # type: ignore[import-untyped]  # noqa: PLC0415  # no hints
    from kafka.errors import KafkaConnectionError  # type: ignore[import-untyped]  # noqa: PLC0415  # same

    def patiently(call: Callable[[], Any]) -> Any:
        """
        Try again while the broker is away: this library tells its user, who has to do that.
        """
        while True:
            try:
                return call()
            except KafkaConnectionError:
                if stop.asked:
                    return None

    stop, report = Stop(), Report()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id=instance,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    while not stop.asked:
        batches = patiently(lambda: consumer.poll(timeout_ms=100)) or {}
        report.assigned(p.partition for p in consumer.assignment())
        if batches:
            patiently(consumer.commit)
        for partition, records in batches.items():
            report.seen(partition.partition, records[-1].offset + 1)
    consumer.close()


def confluent_kafka(bootstrap: str, group: str, topic: str, instance: str | None) -> None:
    from confluent_kafka import Consumer  # noqa: PLC0415  # each process needs one library only

    stop, report = Stop(), Report()
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": SESSION_TIMEOUT_MS,
        "heartbeat.interval.ms": HEARTBEAT_MS,
    }
    if instance is not None:
        settings["group.instance.id"] = instance
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    while not stop.asked:
        message = consumer.poll(0.1)
        report.assigned(p.partition for p in consumer.assignment())
        if message is not None and not message.error():
            consumer.commit(message=message, asynchronous=False)
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            report.seen(partition, offset + 1)
    consumer.close()


def aiokafka(bootstrap: str, group: str, topic: str, instance: str | None) -> None:
    # Each process needs one library only.
    from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]  # noqa: PLC0415  # no hints

    async def run() -> None:
        stop, report = Stop(), Report()
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            group_instance_id=instance,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=30_000,
            heartbeat_interval_ms=HEARTBEAT_MS,
        )
        await consumer.start()
        while not stop.asked:
            batches = await consumer.getmany(timeout_ms=100)
            report.assigned(p.partition for p in consumer.assignment())
            if batches:
                await consumer.commit()
            for partition, records in batches.items():
                report.seen(partition.partition, records[-1].offset + 1)
        await consumer.stop()

    asyncio.run(run())


LIBRARIES = {
    "kafka-python": kafka_python,
    "confluent-kafka": confluent_kafka,
    "aiokafka": aiokafka,
}

if __name__ == "__main__":
    library, *where = sys.argv[1:]
    LIBRARIES[library](where[0], where[1], where[2], where[3] if len(where) > 3 else None)
