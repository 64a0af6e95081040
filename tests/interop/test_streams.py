"""
Kafka Streams counts words exactly once (KIP-129, KIP-447), whatever is killed meanwhile.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.interop.clients.confluent import Confluent
from tests.interop.conftest import IMPATIENT
from tests.support.apache_kafka import java, library
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import BrokerProcess, wait_for
from tests.support.java_programs import compiled

pytestmark = pytest.mark.prove

SOURCE = Path(__file__).parent / "java" / "WordCount.java"
APPLICATION = "word-count"
PARTITIONS = 2
PATIENCE = 60
VOCABULARY = [f"word-{number}" for number in range(40)]


@pytest.fixture(scope="module")
def jars() -> str:
    """
    The class path of the compiled application and of Kafka Streams.
    """
    streams = library("kafka-streams")
    return f"{compiled(SOURCE, extra_class_path=streams)}:{streams}"


class WordCount(BrokerProcess):
    """
    One instance of the application, whose state is in its own directory.
    """

    name = "the word count"

    def __init__(
        self, directory: Path, broker: BrokerProcess, jars: str, group_protocol: str = "classic"
    ) -> None:
        super().__init__(directory, port=broker.port)
        self._jars = jars
        self._group_protocol = group_protocol

    def command(self) -> list[str]:
        state = str(self.directory / "state")
        topics = ("lines", "counts")
        arguments = (self.bootstrap, APPLICATION, *topics, state, self._group_protocol)
        return java("WordCount", *arguments, extra_class_path=self._jars)

    def is_ready(self) -> bool:
        return "state RUNNING" in self.log_since_start()


class Counts:
    """
    What a reader of committed records has seen so far: how each word was counted, in order.
    """

    def __init__(self, bootstrap: str) -> None:
        self.by_word: dict[str, list[int]] = defaultdict(list)
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition("counts", index, 0) for index in range(PARTITIONS)])

    @property
    def total(self) -> int:
        return sum(map(len, self.by_word.values()))

    def read(self, seconds: float) -> None:
        """
        Take what there is, or what arrives within *seconds*.
        """
        for message in self._consumer.consume(1000, seconds):
            key, value = message.key(), message.value()
            if message.error() is None and key is not None and value is not None:
                self.by_word[key.decode()].append(int(value))

    def read_up_to(self, total: int) -> None:
        def reached() -> bool:
            self.read(0.1)
            return self.total >= total

        wait_for(reached, f"{total} counts", PATIENCE)

    def close(self) -> None:
        self._consumer.close()


class Story:
    """
    Lines are spoken without a pause, so that every kill hits an application at work.
    """

    def __init__(self, broker: BrokerProcess, counts: Counts) -> None:
        self.spoken: Counter[str] = Counter()
        self._counts = counts
        self._chance = random.Random(1)
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": 0,
            }
        )

    def go_on(self, more: int, application: WordCount) -> None:
        goal = self._counts.total + more

        def reached() -> bool:
            assert application.is_running, application.log_text()[-4000:]
            self._speak()
            self._counts.read(0.02)
            return self._counts.total >= goal

        wait_for(reached, f"{more} more counts", PATIENCE)

    def finish(self) -> None:
        assert 0 == self._producer.flush(PATIENCE), "lines that were not acknowledged"
        self._counts.read_up_to(self.spoken.total())

    def exact(self) -> dict[str, list[int]]:
        """
        The counts of each word, of which none is missing and none is there twice.
        """
        return {word: list(range(1, times + 1)) for word, times in self.spoken.items()}

    def _speak(self) -> None:
        for partition in range(PARTITIONS):
            words = self._chance.choices(VOCABULARY, k=5)
            self.spoken.update(words)
            self._producer.produce("lines", " ".join(words), partition=partition)
        self._producer.poll(0)


def begin(broker: BrokerProcess) -> tuple[Counts, Story]:
    for topic in ("lines", "counts"):
        Confluent().create_topic(broker.bootstrap, topic, PARTITIONS, {})
    counts = Counts(broker.bootstrap)
    return counts, Story(broker, counts)


@pytest.fixture
def start(jars: str, tmp_path: Path) -> Iterator[Callable[..., WordCount]]:
    """
    Starts an instance of the application in a directory of that name.
    """
    started: list[WordCount] = []

    def start_it(broker: BrokerProcess, name: str, group_protocol: str = "classic") -> WordCount:
        application = WordCount(tmp_path / name, broker, jars, group_protocol)
        started.append(application)
        application.start()
        return application

    yield start_it
    for application in started:
        application.close()
        print(application.log_text()[-8000:])


def test_streams_counts_words_exactly_once(
    impatient_broker: BrokerProcess, start: Callable[..., WordCount]
) -> None:
    """
    A word that was spoken n times is counted 1, 2, ... n and no count is there twice, although the
    broker is killed, then the application, then both.

    At first it is started again with its files. The second time there are none: it restores the
    counts from their changelog and waits for the transaction that was left open.
    """
    counts, story = begin(impatient_broker)
    first = start(impatient_broker, "first")
    story.go_on(500, first)

    impatient_broker.kill()
    impatient_broker.start()
    story.go_on(500, first)
    first.kill()
    first.start()
    story.go_on(500, first)
    first.kill()
    impatient_broker.kill()
    impatient_broker.start()
    second = start(impatient_broker, "second")
    story.go_on(500, second)
    story.finish()

    assert 0 == second.stop()
    counts.close()
    again = Counts(impatient_broker.bootstrap)
    again.read_up_to(counts.total)
    again.close()
    assert story.exact() == counts.by_word
    assert story.exact() == again.by_word


def test_streams_group_counts_words_exactly_once(
    impatient_broker: BrokerProcess, start: Callable[..., WordCount]
) -> None:
    """
    The same with ``group.protocol=streams`` (KIP-1071), by two instances that divide the tasks and
    keep standbys for each other: the broker is killed, then an instance, which is fenced; the other
    takes its tasks and reads what it has not read.
    """
    counts, story = begin(impatient_broker)
    first = start(impatient_broker, "first", "streams")
    second = start(impatient_broker, "second", "streams")
    story.go_on(500, first)

    impatient_broker.kill()
    impatient_broker.start()
    story.go_on(500, second)
    second.kill()
    story.go_on(500, first)
    second.start()
    story.go_on(500, second)
    story.finish()

    assert 0 == first.stop()
    assert 0 == second.stop()
    counts.close()
    assert story.exact() == counts.by_word


def test_live_streams_group_moves_to_apache_kafka_and_back(
    tmp_path: Path, start: Callable[..., WordCount]
) -> None:
    """
    One instance goes on. The other one is killed while there is no broker: its tasks are taken up
    where they are according to what the broker before has written.
    """
    with BothBrokers.in_turn(tmp_path / "broker", IMPATIENT) as both:
        both.barnabas.start()
        counts, story = begin(both.barnabas)
        first = start(both.barnabas, "first", "streams")
        second = start(both.barnabas, "second", "streams")
        story.go_on(300, first)

        for stops, starts in ((both.barnabas, both.kafka), (both.kafka, both.barnabas)):
            stops.stop()
            second.kill()
            starts.start()
            story.go_on(300, first)
            second.start()
            story.go_on(300, second)
        story.finish()

        assert 0 == first.stop()
        assert 0 == second.stop()
        counts.close()
        assert story.exact() == counts.by_word
