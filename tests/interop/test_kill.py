"""
A broker that is killed under load, again and again.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.interop.clients.base import PATIENCE
from tests.interop.clients.confluent import Confluent
from tests.interop.conftest import new_broker
from tests.support.broker_process import BrokerProcess, wait_for
from tests.support.some import some

pytestmark = pytest.mark.prove

KILLS = 20
PARTITIONS = 3
TOPIC = "load"
CODECS = ("none", "lz4", "zstd")

BURST = 5
"""
Records after which a producer rests: many requests say more here than many records.
"""

SIZE = 800
"""
Of a record, so that few fill a segment.
"""


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """
    A broker for one test alone, with small segments so that kills hit rolls as well.
    """
    with new_broker(tmp_path, log__segment__bytes=str(1 << 20)) as broker:
        yield broker


def test_acknowledged_records_survive_twenty_kills(own_broker: BrokerProcess) -> None:
    """
    Producers and a group member live through twenty kills at moments that twenty seeds choose.

    After each restart every acknowledged record is at its offset with its value, the offsets have
    no gap, and producers and consumer go on: what is new is read after each, and everything at the
    end. As the producers are idempotent, each record is in the log once and in order, also those
    whose acknowledgement the kill swallowed.
    """
    Confluent().create_topic(own_broker.bootstrap, TOPIC, PARTITIONS, {})
    log: Log = {}
    with _member(own_broker.bootstrap) as member, _load(own_broker.bootstrap) as producers:
        for seed in range(KILLS):
            time.sleep(random.Random(seed).uniform(0.2, 1.0))
            own_broker.kill()
            acknowledged = [dict(producer.acknowledged) for producer in producers]
            own_broker.start()

            _read_on(own_broker.bootstrap, log)
            for known in some(acknowledged):
                assert known.items() <= log.items(), f"kill {seed}"
            for producer, known in zip(producers, acknowledged, strict=True):
                producer.wait_for_more_than(len(known))
    for producer in producers:
        assert producer.errors == []
    whole: Log = {}
    _read_on(own_broker.bootstrap, whole)
    assert log.items() <= whole.items()
    for producer in producers:
        assert producer.acknowledged.items() <= whole.items()
        producer.assert_all_once_and_in_order(whole)
    assert set(whole) <= member.seen, "the member of the group saw every record"


Place = tuple[int, int]
Log = dict[Place, bytes]


class LoadingProducer:
    """
    Sends numbered records as fast as they are taken, and remembers what was acknowledged where.
    """

    def __init__(self, bootstrap: str, codec: str) -> None:
        self.codec = codec
        self.sent = 0
        self.acknowledged: dict[Place, bytes] = {}
        self.errors: list[str] = []
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "enable.idempotence": True,
                "reconnect.backoff.max.ms": 200,
                "queue.buffering.max.messages": 2000,
                "linger.ms": 1,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run, name=f"producer-{codec}")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        left = self._producer.flush(PATIENCE)
        assert left == 0, f"{left} records of {self.codec} were not acknowledged"

    def _run(self) -> None:
        while not self._stop.is_set():
            value = b"%s-%d" % (self.codec.encode(), self.sent)
            try:
                self._producer.produce(
                    TOPIC,
                    value.ljust(SIZE, b"."),
                    partition=self.sent % PARTITIONS,
                    on_delivery=self._delivered,
                )
                self.sent += 1
            except BufferError:
                self._producer.poll(0.05)
            self._producer.poll(0 if self.sent % BURST else 0.01)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(str(error))
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert isinstance(value, bytes)
        self.acknowledged[partition, offset] = value.rstrip(b".")

    def wait_for_more_than(self, count: int) -> None:
        """
        Wait until more than *count* records are acknowledged: the producer goes on.
        """
        what = f"{self.codec} to have more than {count} acknowledgements"
        wait_for(lambda: len(self.acknowledged) > count, what, PATIENCE)

    def assert_all_once_and_in_order(self, log: Log) -> None:
        """
        Everything that was sent is in the log, each record once, in the order of sending.
        """
        mine: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
        for (partition, _), value in sorted(log.items()):
            codec, number = value.split(b"-")
            if codec.decode() == self.codec:
                mine[partition].append(int(number))
        for partition, numbers in some(mine.items()):
            assert list(range(partition, self.sent, PARTITIONS)) == numbers


class GroupMember:
    """
    Consumes in a group until it has seen everything up to a set of end offsets.
    """

    def __init__(self, bootstrap: str) -> None:
        self.seen: set[Place] = set()
        self._ends: dict[int, int] | None = None
        self._bootstrap = bootstrap
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="member")

    def start(self) -> None:
        self._thread.start()

    def finish(self, ends: dict[int, int]) -> None:
        self._ends = ends
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), f"the member did not reach {ends}"
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "survivors",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 200,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        positions: dict[int, int] = {}
        try:
            consumer.subscribe([TOPIC])
            while self._ends is None or any(
                positions.get(partition, 0) < end for partition, end in self._ends.items()
            ):
                self._take(consumer.consume(1000, 0.1), positions)
        except Exception as failure:  # it is raised again where the thread is joined
            self._failure = failure
        finally:
            consumer.close()

    def _take(self, messages: list[Message], positions: dict[int, int]) -> None:
        for message in messages:
            if message.error() is not None:
                continue
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self.seen.add((partition, offset))
            positions[partition] = max(positions.get(partition, 0), offset + 1)


@contextlib.contextmanager
def _load(bootstrap: str) -> Iterator[list[LoadingProducer]]:
    producers = [LoadingProducer(bootstrap, codec) for codec in CODECS]
    for producer in producers:
        producer.start()
    try:
        yield producers
    finally:
        for producer in producers:
            producer.stop()


@contextlib.contextmanager
def _member(bootstrap: str) -> Iterator[GroupMember]:
    member = GroupMember(bootstrap)
    member.start()
    try:
        yield member
    finally:
        member.finish(_ends(bootstrap))


def _ends(bootstrap: str) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "log_level": 0})
    try:
        return {partition: _end(consumer, partition) for partition in range(PARTITIONS)}
    finally:
        consumer.close()


def _end(consumer: Consumer, partition: int) -> int:
    """
    The end offset of a partition, asked again while the broker is not ready to say.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), PATIENCE)[1]
        except KafkaException as error:
            is_early = error.args[0].code() == KafkaError.NOT_LEADER_FOR_PARTITION
            if not is_early or time.monotonic() > deadline:
                raise


def _read_on(bootstrap: str, log: Log) -> None:
    """
    Add every record from the end of *log* to the end offsets of now, which have no gap.
    """
    ends = _ends(bootstrap)
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "auto.offset.reset": "error"}
    )
    next_offsets = dict.fromkeys(range(PARTITIONS), 0) | {p: o + 1 for p, o in sorted(log)}
    deadline = time.monotonic() + PATIENCE
    try:
        consumer.assign([TopicPartition(TOPIC, *place) for place in next_offsets.items()])
        while any(next_offsets[partition] < end for partition, end in ends.items()):
            assert time.monotonic() < deadline, f"at {next_offsets} of {ends}"
            for message in consumer.consume(10_000, 0.2):
                assert message.error() is None, message.error()
                partition, value = message.partition(), message.value()
                assert partition is not None
                assert isinstance(value, bytes)
                assert next_offsets[partition] == message.offset()
                log[partition, next_offsets[partition]] = value.rstrip(b".")
                next_offsets[partition] += 1
    finally:
        consumer.close()
