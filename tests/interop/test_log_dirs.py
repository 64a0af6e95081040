"""
Several log directories, of which one fails: Apache Kafka and Barnabas side by side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from tests.support.apache_kafka import ApacheKafka, class_path
from tests.support.both_brokers import BothBrokers
from tests.support.broker_process import Barnabas, BrokerProcess, wait_for
from tests.support.config_requests import grow, trim
from tests.support.server import (
    batch,
    fetch_request,
    fetch_topic,
    list_offsets_request,
    produce_request,
)
from tests.support.topic_requests import creatable
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.prove

PATIENCE: Final = 60.0
DIRECTORIES: Final = ("first", "second", "third")
TOPICS: Final = ("one", "two", "three", "four", "five", "six")
OFFLINE: Final = 56
LEADER_NOT_AVAILABLE, NOT_LEADER = 5, 6
NOTHING: Final = (-1, -1, -1)

SETTINGS: Final = {
    "node.id": "1",
    "auto.create.topics.enable": "false",
    # A directory that has failed is noticed when something is written into it.
    "log.flush.offset.checkpoint.interval.ms": "500",
    "log.initial.task.delay.ms": "100",
    "log.retention.ms": "-1",
}

Facts = dict[str, Any]


class Broker:
    def __init__(self, process: BrokerProcess) -> None:
        self.process = process
        self.directories = [process.directory / name for name in DIRECTORIES]
        for path in self.directories:
            path.mkdir(parents=True)
        process.settings["log.dirs"] = ",".join(map(str, self.directories))
        process.settings["metadata.log.dir"] = str(self.directories[0])
        process.data = self.directories[0]

    def ask(self, request: Any, version: int) -> Any:
        async def once() -> Any:
            async with await WireClient.open(self.process.port) as client:
                return await client.ask(request, version)

        return asyncio.run(once())

    def lose(self, name: str) -> None:
        """
        Put a file where a directory was; what is open stays open.
        """
        path = self.process.directory / name
        path.rename(path.with_suffix(".away"))
        path.write_text("not a directory")

    def give_back(self, name: str) -> None:
        path = self.process.directory / name
        path.unlink()
        path.with_suffix(".away").rename(path)

    # Apache Kafka answers a change when the controller has it: the broker's metadata follow, and
    # its logs follow these.

    def wait_until_served(self, partitions: Iterable[str]) -> None:
        """
        Until the metadata name a leader for each, and the leader has the log and serves it.
        """
        for partition in partitions:
            wait_for(partial(self._serves, partition), f"{partition} to be served", PATIENCE)

    def _serves(self, partition: str) -> bool:
        if self.metadata().get(partition, NOTHING)[:3] != (0, 0, 1):
            return False
        topic, _, index = partition.rpartition("-")
        error_code, _ = self.offsets(topic, int(index))
        return error_code == 0

    def wait_until_lost(self, partitions: Iterable[str]) -> None:
        """
        Until their directory is offline, and the metadata tell so of each.
        """
        wait_for(lambda: OFFLINE in self.log_dir_codes(), "a directory to be offline", PATIENCE)
        for partition in partitions:
            wait_for(partial(self._has_lost, partition), f"{partition} to be offline", PATIENCE)

    def _has_lost(self, partition: str) -> bool:
        *_, offline_replicas = self.metadata()[partition]
        return bool(offline_replicas)

    def wait_until_deleted(self, topic: str) -> None:
        """
        Until neither the metadata have it nor a directory that is online.
        """
        wait_for(
            lambda: not self.partitions_of(topic), f"the partitions of {topic} to go", PATIENCE
        )

    def partitions_of(self, topic: str) -> list[str]:
        known = [name for name in self.metadata() if name.rpartition("-")[0] == topic]
        held = [
            f"{name}-{index}"
            for _, partitions, *_ in self.log_dirs().values()
            for name, index, _ in partitions
            if name == topic
        ]
        return known + held

    def log_dir_codes(self) -> list[int]:
        answer = self.ask(DescribeLogDirsRequest(topics=None), 4)
        return [result.error_code for result in answer.results]

    # What clients see

    def create(self, topic: str, partitions: int = 1) -> int:
        wanted = creatable(topic, partitions)
        answer = self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 7)
        return int(answer.topics[0].error_code)

    def place(self) -> dict[str, list[str]]:
        """
        Which partitions each directory has, also of topics that were deleted meanwhile.
        """
        return {
            path.name: sorted(
                each.name.partition(".")[0]
                for each in path.iterdir()
                if each.is_dir() and not each.name.startswith("__") and "-delete" not in each.name
            )
            for path in self.directories
            if path.is_dir()
        }

    def facts(self, topics: Iterable[str] = TOPICS) -> Facts:
        return {
            "metadata": self.metadata(),
            "log dirs": self.log_dirs(),
            "produce": {topic: self.produce(topic) for topic in topics},
            "fetch": {topic: self.fetch(topic) for topic in topics},
            "offsets": {topic: self.offsets(topic) for topic in topics},
            "delete records": {topic: self.delete_records(topic) for topic in topics},
        }

    def refusals(self, topic: str) -> set[int]:
        """
        With which error codes whoever wants something of *topic* is refused.
        """
        produced = self.produce(topic)
        fetched, *_ = self.fetch(topic)
        found, _ = self.offsets(topic)
        deleted, _ = self.delete_records(topic)
        return {produced, fetched, found, deleted}

    def metadata(self) -> Facts:
        answer = self.ask(MetadataRequest(topics=None), 12)
        return {
            f"{topic.name}-{partition.partition_index}": (
                topic.error_code,
                partition.error_code,
                partition.leader_id,
                partition.replica_nodes,
                partition.isr_nodes,
                partition.offline_replicas,
            )
            for topic in answer.topics
            for partition in topic.partitions
        }

    def log_dirs(self) -> Facts:
        answer = self.ask(DescribeLogDirsRequest(topics=None), 4)
        return {
            Path(result.log_dir).name: (
                result.error_code,
                sorted(
                    (topic.name, partition.partition_index, partition.offset_lag)
                    for topic in result.topics
                    for partition in topic.partitions
                    if not topic.name.startswith("__")
                ),
                result.total_bytes > 0,
                result.usable_bytes > 0,
            )
            for result in answer.results
        }

    def produce(self, topic: str) -> int:
        answer = self.ask(produce_request(topic, batch("value"), acks=-1), 11)
        return int(answer.responses[0].partition_responses[0].error_code)

    def fetch(self, topic: str) -> Any:
        answer = self.ask(fetch_request(fetch_topic(topic, {0: 0}), min_bytes=0), 11)
        (found,) = answer.responses[0].partitions
        return found.error_code, found.high_watermark, len(found.records or b"")

    def offsets(self, topic: str, index: int = 0) -> tuple[int, int]:
        answer = self.ask(list_offsets_request(topic, {index: -1}), 7)
        (found,) = answer.topics[0].partitions
        return found.error_code, found.offset

    def delete_records(self, topic: str) -> Any:
        answer = self.ask(trim(topic, (0, 0)), 2)
        (found,) = answer.topics[0].partitions
        return found.error_code, found.low_watermark

    def grow(self, topic: str, count: int) -> int:
        return int(self.ask(grow(topic, count), 3).results[0].error_code)

    def delete(self, topic: str) -> int:
        request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=30_000)
        return int(self.ask(request, 5).responses[0].error_code)


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[list[Broker]]:
    with BothBrokers.side_by_side(tmp_path, SETTINGS) as both:
        yield [Broker(process) for process in both]


def alike(brokers: list[Broker], ask: Callable[[Broker], Any]) -> Any:
    """
    What both say, which has to be the same.
    """
    kafkas, ours = (ask(broker) for broker in brokers)
    assert kafkas == ours, f"{kafkas}\n{ours}"
    return ours


def wait_until_served(brokers: list[Broker], *partitions: str) -> None:
    for broker in brokers:
        broker.wait_until_served(partitions)


def test_failed_directory_comes_back(brokers: list[Broker]) -> None:
    """
    Where partitions go, what clients are told while a directory is lost, what they can still do,
    also after a restart without it; and all of it is there when the directory is.
    """
    for broker in brokers:
        broker.process.start()
    # One by one: what Kafka's broker hears of at once, it makes in no certain order.
    for topic in (*TOPICS, "large"):
        alike(brokers, partial(Broker.create, topic=topic))
        wait_until_served(brokers, f"{topic}-0")
    for count in (2, 3, 4):
        alike(brokers, partial(Broker.grow, topic="large", count=count))
        wait_until_served(brokers, f"large-{count - 1}")
    lost = alike(brokers, Broker.place)["second"]
    assert ["five-0", "large-1", "two-0"] == lost
    alike(brokers, Broker.facts)

    for broker in brokers:
        broker.lose("second")
        broker.wait_until_lost(lost)
    told = alike(brokers, Broker.facts)
    assert {"five", "two"} == {topic for topic, code in told["produce"].items() if code == OFFLINE}
    assert (0, LEADER_NOT_AVAILABLE, -1, [1], [], [1]) == told["metadata"]["two-0"]
    alike(brokers, lambda broker: broker.create("new"))
    wait_until_served(brokers, "new-0")
    alike(brokers, lambda broker: broker.create("big", 3))
    wait_until_served(brokers, "big-0", "big-1", "big-2")
    alike(brokers, lambda broker: broker.grow("large", 5))
    wait_until_served(brokers, "large-4")
    for topic in ("two", "six"):
        alike(brokers, partial(Broker.delete, topic=topic))
        for broker in brokers:
            broker.wait_until_deleted(topic)
    known = alike(brokers, Broker.metadata)
    assert "large-4" in known

    for broker in brokers:
        broker.process.restart()
        broker.wait_until_served(known.keys() - lost)
    alike(brokers, partial(Broker.facts, topics=[name for name in TOPICS if name != "five"]))
    kafkas, ours = (broker.refusals("five") for broker in brokers)
    # Kafka's broker finds that it has no log for it, and once more if its metadata of before the
    # start were published before they had its registration: then it knows why.
    assert kafkas in ({NOT_LEADER}, {OFFLINE})
    assert {NOT_LEADER} == ours
    alike(brokers, lambda broker: sorted(map(len, broker.place().values())))

    for broker in brokers:
        broker.process.stop()
        broker.give_back("second")
        broker.process.start()
        broker.wait_until_served(known)
    told = alike(brokers, Broker.facts)
    assert (0, 2, 73 * 2) == told["fetch"]["five"]
    assert {"five-0", "large-1"} < set(alike(brokers, Broker.place)["second"])


@pytest.mark.parametrize("kind", [ApacheKafka, Barnabas])
def test_both_brokers_refuse_a_directory_that_is_not_a_log(
    kind: type[BrokerProcess], tmp_path: Path
) -> None:
    """
    As the top of a file system has one.
    """
    class_path()
    broker = kind(tmp_path)
    (broker.data / "lost+found").mkdir(parents=True)

    with pytest.raises(AssertionError, match="ended at once"):
        broker.start()

    assert "'lost+found' is not in the form of topic-partition" in broker.log_text()
    if kind is Barnabas:
        assert not (broker.data / "meta.properties").exists()
