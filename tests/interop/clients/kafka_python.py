"""
kafka-python.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from kafka import (  # type: ignore[import-untyped]  # the library has no type hints
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    TopicPartition,
)
from kafka.admin import NewTopic  # type: ignore[import-untyped]  # the same

from tests.interop.clients.base import PATIENCE, NewRecord, Place, Seen
from tests.interop.clients.two_members import SharedCount, two_members


class KafkaPython:
    """
    The pure Python client.
    """

    name = "kafka-python"
    sends_null_headers = False

    def create_topic(
        self, bootstrap: str, topic: str, partitions: int, configs: Mapping[str, str]
    ) -> None:
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        try:
            admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=dict(configs))])
        finally:
            admin.close()

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[NewRecord], codec: str
    ) -> list[Place]:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec
        )
        try:
            return _send_all(producer, topic, records)
        finally:
            producer.close()

    def transact(
        self, bootstrap: str, topic: str, records: Sequence[NewRecord], codec: str, size: int
    ) -> list[Place]:
        """
        The same in transactions of *size* records, every second of which is aborted.
        """
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            transactional_id=f"{topic}-python",
        )
        places: list[Place] = []
        try:
            producer.init_transactions()
            for number, start in enumerate(range(0, len(records), size)):
                producer.begin_transaction()
                places += _send_all(producer, topic, records[start : start + size])
                if number % 2:
                    producer.abort_transaction()
                else:
                    producer.commit_transaction()
        finally:
            producer.close()
        return places

    def read(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[Seen]:
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        deadline = time.monotonic() + PATIENCE
        seen: list[Seen] = []
        try:
            consumer.assign([TopicPartition(topic, n) for n in range(partitions)])
            while len(seen) < count and time.monotonic() < deadline:
                seen += _poll(consumer)
        finally:
            consumer.close()
        return seen

    def consume_in_group(
        self, bootstrap: str, topic: str, group: str, count: int
    ) -> tuple[list[Seen], list[Seen]]:
        def member(enough: SharedCount) -> list[Seen]:
            consumer = KafkaConsumer(
                topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest"
            )
            seen: list[Seen] = []
            try:
                while not enough.is_reached:
                    fresh = _poll(consumer)
                    seen += fresh
                    enough.add(len(fresh))
                    if fresh:
                        consumer.commit()
            finally:
                consumer.close()
            return seen

        return two_members(member, count)


def _send_all(producer: Any, topic: str, records: Sequence[NewRecord]) -> list[Place]:
    futures = [
        producer.send(
            topic,
            value=record.value,
            key=record.key,
            headers=list(record.headers),
            timestamp_ms=record.timestamp_ms,
            partition=record.partition,
        )
        for record in records
    ]
    producer.flush(PATIENCE)
    answers = [future.get(PATIENCE) for future in futures]
    return [Place(answer.partition, answer.offset) for answer in answers]


def _poll(consumer: Any) -> list[Seen]:
    return [
        Seen(r.partition, r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
        for batch in consumer.poll(timeout_ms=200).values()
        for r in batch
    ]
