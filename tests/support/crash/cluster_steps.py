"""
Every instant at which a broker can die that makes, changes and deletes topics.

An administrator asks, one thing after the other, a broker on a disk that can crash. Before each
change of that disk, and after each answer, what a crash would leave is put aside with what had been
asked for and answered by then. From each of these points another broker is started and looked at.

The metadata log is synced before anything is answered, whatever ``flush.messages`` says, so that
what was answered holds whatever a crash keeps.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from uuid import UUID

from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.server.manual_clock import ManualClock
from tests.support.crash.points import Keep
from tests.support.crashable_disk import CrashableFiles, Image
from tests.support.server import DATA, START_MS, TestBroker, batch, produce_request, running
from tests.support.wire_client import WireClient

CONFIG: Final = "retention.ms"
TOPIC_RESOURCE: Final = 2
END: Final = -1
OPTIONS: Final = {
    "log_flush_interval_messages": "1",
    # Snapshots of the metadata soon, so that some are cut short.
    "metadata_log_max_record_bytes_between_snapshots": "600",
    "num_recovery_threads_per_data_dir": "1",
    "background_threads": "1",
}


@dataclass(frozen=True, slots=True)
class Known:
    """
    What is known of one topic.
    """

    partitions: int
    config: str | None = None
    """The value of the one config that is set at times."""
    records: int = 0
    """How many records the first partition has."""


@dataclass(frozen=True, slots=True)
class Progress:
    """
    How far the administrator has come.
    """

    topics: Mapping[str, Known] = field(default_factory=dict)
    """As the last answer left them."""
    asked: Mapping[str, Known] | None = None
    """As they are to be by what was asked for and has no answer yet."""

    @property
    def outcomes(self) -> list[Mapping[str, Known]]:
        return [self.topics] if self.asked is None else [self.topics, self.asked]


@dataclass(frozen=True, slots=True)
class ClusterPoint:
    """
    An instant, what is left of the disk, and how far the administrator had come.
    """

    place: str
    image: Image
    progress: Progress
    now_ms: int


class Watch:
    """
    Puts points aside while something is done, those only that are not like one before.
    """

    def __init__(
        self,
        files: CrashableFiles,
        clock: ManualClock,
        keeps: tuple[Keep, ...],
        *,
        progress: Progress | None = None,
        place: str = "",
    ) -> None:
        self.points: list[ClusterPoint] = []
        self.progress = progress or Progress()
        self._files = files
        self._clock = clock
        self._keeps = keeps
        self._place = place
        self._known: set[object] = set()
        files.before_change = lambda action, path: self.look(
            f"before {action} {path.parent.name}/{path.name}"
        )

    def look(self, instant: str) -> None:
        """
        Put aside what a crash would leave now.
        """
        for keep in self._keeps:
            image = self._files.image(keep.choose(self._files.steps))
            key = image.key, id(self.progress)
            if key in self._known:
                continue
            self._known.add(key)
            place = (
                f"{self._place}crash {instant} (change {self._files.steps}), keeping {keep.name}"
            )
            self.points.append(ClusterPoint(place, image, self.progress, self._clock.now_ms()))

    @asynccontextmanager
    async def asking_for(self, **changed: Known | None) -> AsyncIterator[None]:
        """
        What is asked for inside makes these topics so, or lets them be gone.
        """
        before = self.progress.topics
        after = {**before, **changed}
        asked = {name: known for name, known in after.items() if known is not None}
        self.progress = Progress(before, asked)
        yield
        self.progress = Progress(asked)
        self.look("after the answer was noted")

    def end(self) -> None:
        self._files.before_change = lambda action, path: None


@asynccontextmanager
async def started(files: CrashableFiles, clock: ManualClock) -> AsyncIterator[TestBroker]:
    async with running(files, clock, **OPTIONS) as broker:
        yield broker


# The life of an administrator


async def points_of(keeps: tuple[Keep, ...]) -> list[ClusterPoint]:
    """
    All points of a life in which topics are made, changed, deleted, and made again.
    """
    files, clock = CrashableFiles(directories_survive=False), ManualClock(START_MS)
    files.make_directory(DATA)
    files.sync_directory(DATA.parent)
    async with started(files, clock) as broker:
        watch = Watch(files, clock, keeps)
        await _live(broker, watch)
        watch.end()
    return watch.points


async def _live(broker: TestBroker, watch: Watch) -> None:
    one, two = Known(1), Known(2, config="1000000")
    async with watch.asking_for(a=one):
        await broker.create("a")
    async with watch.asking_for(b=two):
        await broker.create("b", partitions=2, retention_ms="1000000")
    async with watch.asking_for(b=(two := replace(two, records=1))):
        await produce(broker, "b")
    async with watch.asking_for(a=(one := replace(one, partitions=3))):
        await _grow(broker, "a", 3)
    async with watch.asking_for(a=replace(one, config="2000000")):
        await _configure(broker, "a", "2000000")
    async with watch.asking_for(b=None):
        await broker.delete("b")
    async with watch.asking_for(b=Known(1)):
        await broker.create("b")
    async with watch.asking_for(b=Known(1, records=1)):
        await produce(broker, "b")
    async with watch.asking_for(a=None):
        await broker.delete("a")


async def produce(broker: TestBroker, topic: str) -> None:
    async with await broker.client() as client:
        answer = await client.ask(produce_request(topic, batch("value"), acks=-1), 11)
    assert 0 == answer.responses[0].partition_responses[0].error_code, answer


async def _grow(broker: TestBroker, topic: str, count: int) -> None:
    topics = [CreatePartitionsTopic(name=topic, count=count, assignments=None)]
    async with await broker.client() as client:
        answer = await client.ask(
            CreatePartitionsRequest(topics=topics, timeout_ms=10_000, validate_only=False), 3
        )
    assert 0 == answer.results[0].error_code, answer


async def _configure(broker: TestBroker, topic: str, value: str) -> None:
    resource = AlterConfigsResource(
        resource_type=TOPIC_RESOURCE,
        resource_name=topic,
        configs=[AlterableConfig(name=CONFIG, config_operation=0, value=value)],
    )
    async with await broker.client() as client:
        answer = await client.ask(
            IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1
        )
    assert 0 == answer.responses[0].error_code, answer


async def points_of_recovery(point: ClusterPoint, keeps: tuple[Keep, ...]) -> list[ClusterPoint]:
    """
    All points of the start after a crash.
    """
    files, clock = CrashableFiles(image=point.image), ManualClock(point.now_ms)
    place = f"{point.place}; while that is recovered, "
    watch = Watch(files, clock, keeps, progress=point.progress, place=place)
    async with started(files, clock):
        watch.end()
    return watch.points


# What has to be true


async def check(point: ClusterPoint, *, thoroughly: bool = True) -> None:
    """
    A broker that starts from a point has all that was answered, what was asked for wholly or not at
    all, nothing else; *thoroughly*, it goes on, and so does the one after it.
    """
    files, clock = CrashableFiles(image=point.image), ManualClock(point.now_ms)
    async with started(files, clock) as broker:
        found = await topics_of(broker)
        assert found in point.progress.outcomes, f"{found}, not {point.progress}"
        _check_directories(files, broker, found)
        if not thoroughly:
            return
        for topic, known in found.items():
            await produce(broker, topic)
            found[topic] = replace(known, records=known.records + 1)
        name = next(name for name in ("a", "b", "c") if name not in found)
        await broker.create(name)
        found[name] = Known(1)
    async with started(files, clock) as broker:
        assert found == await topics_of(broker)
        _check_directories(files, broker, found)


async def topics_of(broker: TestBroker) -> dict[str, Known]:
    """
    What clients are told about topics.
    """
    async with await broker.client() as client:
        answer = await client.ask(MetadataRequest(topics=None), 12)
        found = {}
        for topic in answer.topics:
            name = str(topic.name)
            assert all(
                0 == partition.error_code and [] == partition.offline_replicas
                for partition in topic.partitions
            ), topic
            assert topic.topic_id != UUID(int=0)
            count = len(topic.partitions)
            assert list(range(count)) == sorted(p.partition_index for p in topic.partitions)
            found[name] = Known(count, await _config(client, name), await _end(client, name))
    return found


async def _config(client: WireClient, topic: str) -> str | None:
    resource = DescribeConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=[CONFIG]
    )
    answer = await client.ask(DescribeConfigsRequest(resources=[resource]), 4)
    (config,) = answer.results[0].configs
    return None if config.config_source != 1 else str(config.value)


async def _end(client: WireClient, topic: str) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=END)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])]
    )
    answer = await client.ask(request, 5)
    (found,) = answer.topics[0].partitions
    assert 0 == found.error_code, found
    return int(found.offset)


def _check_directories(files: CrashableFiles, broker: TestBroker, topics: object) -> None:
    """
    Each partition has its directory, and nothing is left of one that is not there.
    """
    assert isinstance(topics, dict)
    expected = {f"{name}-{n}" for name, known in topics.items() for n in range(known.partitions)}
    found = {name for name in files.names(Path(DATA)) if files.is_directory(Path(DATA) / name)}
    found = {name for name in found if not name.endswith(("-delete", "-stray"))}
    assert expected | {"__cluster_metadata-0"} == found
