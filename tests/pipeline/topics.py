"""
Topics filled by a real producer, and the rows that a reader has to return.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql import DataFrame

from tests.interop.clients.base import PATIENCE, NewRecord, Place, Seen
from tests.interop.clients.confluent import Confluent
from tests.support.broker_process import BrokerProcess

START_MS: Final = 1_700_000_000_000
"""
The timestamp of the first record, unless a test says otherwise.
"""


class Topic:
    """
    A topic of a running broker. ``expected`` has the sent records that were not deleted.
    """

    def __init__(
        self, broker: BrokerProcess, name: str, partitions: int = 1, **configs: str
    ) -> None:
        self.broker = broker
        self.name = name
        self.expected: list[Seen] = []
        self._client = Confluent()
        self._partitions = partitions
        self._configs = {option.replace("_", "."): value for option, value in configs.items()}
        self._client.create_topic(broker.bootstrap, name, partitions, self._configs)

    @property
    def directory(self) -> Path:
        return self.broker.data

    def send(self, records: Sequence[NewRecord], codec: str = "none") -> list[Seen]:
        places = self._client.produce(self.broker.bootstrap, self.name, records, codec)
        sent = [_seen(record, place) for record, place in zip(records, places, strict=True)]
        self.expected = sorted([*self.expected, *sent])
        return sent

    def transaction(self, records: Iterable[NewRecord], *, end: str) -> None:
        """
        Send a transaction and end it with ``commit`` or ``abort``, or ``leave`` it open.
        """
        producer = Producer(
            {"bootstrap.servers": self.broker.bootstrap, "transactional.id": f"{self.name}-{end}"}
        )
        producer.init_transactions(PATIENCE)
        producer.begin_transaction()
        records = list(records)
        places: list[Place] = []
        for record in records:
            producer.produce(
                self.name,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=record.partition or 0,
                timestamp=record.timestamp_ms or START_MS,
                on_delivery=lambda _, message: places.append(
                    Place(message.partition() or 0, message.offset() or 0)
                ),
            )
            producer.flush(PATIENCE)
        if end == "commit":
            producer.commit_transaction(PATIENCE)
            sent = [_seen(record, place) for record, place in zip(records, places, strict=True)]
            self.expected = sorted([*self.expected, *sent])
        elif end == "abort":
            producer.abort_transaction(PATIENCE)
        else:
            assert end == "leave", end

    def delete_records(self, before: int, partition: int = 0) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        place = TopicPartition(self.name, partition, before)
        for future in admin.delete_records([place]).values():
            future.result(PATIENCE)
        self.expected = [
            seen for seen in self.expected if seen.partition != partition or seen.offset >= before
        ]

    def recreate(self) -> None:
        """
        Delete the topic, and create it under the same name.
        """
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        for future in admin.delete_topics([self.name]).values():
            future.result(PATIENCE)
        self._client.create_topic(self.broker.bootstrap, self.name, self._partitions, self._configs)
        self.expected = []

    def grow(self, partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        for future in admin.create_partitions([NewPartitions(self.name, partitions)]).values():
            future.result(PATIENCE)

    def end(self, partition: int = 0) -> int:
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": "unused"})
        try:
            offsets = consumer.get_watermark_offsets(TopicPartition(self.name, partition))
        finally:
            consumer.close()
        assert offsets is not None
        return int(offsets[1])

    def read_times(self) -> list[int]:
        """
        The timestamps that librdkafka reads, for topics whose broker sets them.
        """
        count = len(self.expected)
        partitions = 1 + max(seen.partition for seen in self.expected)
        seen = self._client.read(self.broker.bootstrap, self.name, partitions, count)
        return [record.timestamp_ms for record in sorted(seen)]


def records(count: int, *, partitions: int = 1, seed: int = 0) -> list[NewRecord]:
    """
    Records of every shape, a millisecond apart, to each partition in turn.
    """
    return list(_records(count, partitions, random.Random(seed)))


def _records(count: int, partitions: int, chance: random.Random) -> Iterator[NewRecord]:
    headers: tuple[tuple[tuple[str, bytes | None], ...], ...] = (
        (),
        (("trace", b"\x00\xff"),),
        (("a", None), ("a", b""), ("b", b"1")),
    )
    for number in range(count):
        yield NewRecord(
            value=chance.choice((None, b"", f"value {number}".encode() * chance.randint(1, 30))),
            key=chance.choice((None, b"", f"key {chance.randrange(50)}".encode())),
            headers=chance.choice(headers),
            timestamp_ms=START_MS + number,
            partition=number % partitions,
        )


def seen_in(frame: DataFrame) -> list[Seen]:
    """
    The rows of a frame with the columns of Spark's connector, by partition and offset.
    """
    columns = ("partition", "offset", "unix_millis(timestamp)", "key", "value", "headers")
    return sorted(
        Seen(
            partition,
            offset,
            timestamp_ms,
            _bytes(key),
            _bytes(value),
            tuple((header.key, _bytes(header.value)) for header in headers or ()),
        )
        for partition, offset, timestamp_ms, key, value, headers in frame.selectExpr(
            *columns
        ).collect()
    )


def seen_row(row: tuple[Any, ...]) -> Seen:
    """
    The same columns of a row of ``tests.support.scanned``.
    """
    key, value, _, partition, offset, timestamp, _, headers = row
    return Seen(partition, offset, timestamp, key, value, tuple(headers or ()))


def _seen(record: NewRecord, place: Place) -> Seen:
    assert record.timestamp_ms is not None, "what is compared is known beforehand"
    return Seen(*place, record.timestamp_ms, record.key, record.value, record.headers)


def _bytes(value: bytes | bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
