"""
confluent-kafka, which is librdkafka in C.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.interop.clients.base import PATIENCE, NewRecord, Place, Seen
from tests.interop.clients.two_members import SharedCount, two_members

ANY_PARTITION = -1
AT_ONCE = 500
NOW = 0

Delivered = Callable[[KafkaError | None, Message], None]


class Confluent:
    """
    The client that most languages but Java build upon.
    """

    name = "confluent-kafka"
    sends_null_headers = True

    def create_topic(
        self, bootstrap: str, topic: str, partitions: int, configs: Mapping[str, str]
    ) -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        new = NewTopic(topic, num_partitions=partitions, config=dict(configs))
        admin.create_topics([new])[topic].result(PATIENCE)

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[NewRecord], codec: str
    ) -> list[Place]:
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
        return _send_all(producer, topic, records)

    def transact(
        self, bootstrap: str, topic: str, records: Sequence[NewRecord], codec: str, size: int
    ) -> list[Place]:
        """
        The same in transactions of *size* records, every second of which is aborted.
        """
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "transactional.id": f"{topic}-librdkafka",
            }
        )
        producer.init_transactions(PATIENCE)
        places: list[Place] = []
        for number, start in enumerate(range(0, len(records), size)):
            producer.begin_transaction()
            places += _send_all(producer, topic, records[start : start + size])
            end = producer.abort_transaction if number % 2 else producer.commit_transaction
            end(PATIENCE)
        return places

    def read(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[Seen]:
        consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "unused", "auto.offset.reset": "earliest"}
        )
        deadline = time.monotonic() + PATIENCE
        seen: list[Seen] = []
        try:
            consumer.assign([TopicPartition(topic, n, 0) for n in range(partitions)])
            while len(seen) < count and time.monotonic() < deadline:
                seen += _poll(consumer)
        finally:
            consumer.close()
        return seen

    def consume_in_group(
        self, bootstrap: str, topic: str, group: str, count: int
    ) -> tuple[list[Seen], list[Seen]]:
        def member(enough: SharedCount) -> list[Seen]:
            consumer = Consumer(
                {
                    "bootstrap.servers": bootstrap,
                    "group.id": group,
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                }
            )
            pending: list[Seen] = []
            seen: list[Seen] = []

            def settle(*_: object) -> None:
                if pending:
                    consumer.commit(offsets=_behind(topic, pending), asynchronous=False)
                    enough.add(len(pending))
                    seen.extend(pending)
                    pending.clear()

            try:
                # With a callback, the group waits until this thread lets go of the partitions.
                consumer.subscribe([topic], on_revoke=settle)
                while not enough.is_reached:
                    message = consumer.poll(0.2)
                    if message is not None:
                        pending.append(_seen(message))
                    if message is None or len(pending) == AT_ONCE:
                        settle()
            finally:
                consumer.close()
            return seen

        return two_members(member, count)


def _send_all(producer: Producer, topic: str, records: Sequence[NewRecord]) -> list[Place]:
    places: dict[int, Place] = {}
    for number, record in enumerate(records):

        def delivered(error: KafkaError | None, message: Message, number: int = number) -> None:
            if error is not None:
                raise KafkaException(error)
            places[number] = _place(message)

        _send(producer, topic, record, delivered)
    left = producer.flush(PATIENCE)
    assert left == 0, f"{left} of {len(records)} records are not acknowledged"
    return [places[number] for number in range(len(records))]


def _send(producer: Producer, topic: str, record: NewRecord, delivered: Delivered) -> None:
    """
    Hand a record over, waiting for room in the library's queue as its documentation says.
    """
    while True:
        try:
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                on_delivery=delivered,
                partition=ANY_PARTITION if record.partition is None else record.partition,
                timestamp=NOW if record.timestamp_ms is None else record.timestamp_ms,
            )
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def _behind(topic: str, seen: Sequence[Seen]) -> list[TopicPartition]:
    ends = {one.partition: one.offset + 1 for one in seen}
    return [TopicPartition(topic, partition, end) for partition, end in ends.items()]


def _place(message: Message) -> Place:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return Place(partition, offset)


def _poll(consumer: Consumer) -> list[Seen]:
    return [_seen(message) for message in consumer.consume(AT_ONCE, 0.2)]


def _seen(message: Message) -> Seen:
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    when = message.timestamp()[1]
    key, value = _bytes(message.key()), _bytes(message.value())
    return Seen(*_place(message), when, key, value, _headers(message))


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    headers = message.headers() or []
    assert not isinstance(headers, dict), "a consumer gets a list: names may come twice"
    return tuple((name, _bytes(value)) for name, value in headers)


def _bytes(value: str | bytes | None) -> bytes | None:
    assert not isinstance(value, str), "only a deserializer makes text of it"
    return value
