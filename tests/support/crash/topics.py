"""
The topics of a broker, as a subject of crashes.

An administrator sends one request after the other to a broker on a disk that can crash. The
promises of a point are what had been asked for and answered by then.

The metadata log is synced before anything is answered, whatever ``flush.messages`` says, so that
what was answered holds whatever a crash keeps.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Final
from uuid import UUID

from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.storage.fs.interface import Files
from barnabas.testing.manual_clock import ManualClock
from tests.support.config_requests import SET, TOPIC, change, describe, grow
from tests.support.crash.points import Machine, Point, Subject
from tests.support.server import (
    DATA,
    START_MS,
    TestBroker,
    batch,
    list_offsets_request,
    produce_request,
    running,
)
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


class Administrator:
    """
    Asks a broker, and is an instant to crash at after each answer.
    """

    def __init__(self, machine: Machine[Progress], clock: ManualClock) -> None:
        self.progress = Progress()
        self.watch = machine.watch(clock.now_ms, lambda keep: self.progress, key=repr)

    @asynccontextmanager
    async def asking_for(self, **changed: Known | None) -> AsyncIterator[None]:
        """
        The request in the block makes these topics so, or deletes them.
        """
        before = self.progress.topics
        after = {**before, **changed}
        asked = {name: known for name, known in after.items() if known is not None}
        self.progress = Progress(before, asked)
        yield
        self.progress = Progress(asked)
        self.watch.look("after the answer was noted")


class Topics(Subject[Progress]):
    """
    Topics that are made, changed, deleted, and made again.
    """

    name = "topics"
    second_crashes: ClassVar = (6, 30)
    directories_survive: ClassVar = False

    async def live(self, machine: Machine[Progress]) -> None:
        files, clock = machine.files, ManualClock(START_MS)
        files.make_directory(DATA)
        files.sync_directory(DATA.parent)
        async with running(files, clock, **OPTIONS) as broker:
            administrator = Administrator(machine, clock)
            await _live(broker, administrator)
            administrator.watch.end()

    async def recover(self, machine: Machine[Progress], point: Point[Progress]) -> None:
        clock = ManualClock(point.now_ms)
        watch = machine.watch(clock.now_ms, lambda keep: point.promised)
        async with running(machine.files, clock, **OPTIONS):
            watch.end()

    async def check(self, point: Point[Progress], *, lives: int, thoroughly: bool) -> None:
        """
        The broker has all that was answered, what was asked for wholly or not at all, and nothing
        else; *thoroughly*, it continues, and so does the one after it.
        """
        files, clock = point.last_files(), ManualClock(point.now_ms)
        async with running(files, clock, **OPTIONS) as broker:
            found = await topics_of(broker)
            assert found in point.promised.outcomes, f"{found}, not {point.promised}"
            _check_directories(files, found)
            if not thoroughly:
                return
            for topic, known in found.items():
                await produce(broker, topic)
                found[topic] = replace(known, records=known.records + 1)
            name = next(name for name in ("a", "b", "c") if name not in found)
            await broker.create(name)
            found[name] = Known(1)
        async with running(files, clock, **OPTIONS) as broker:
            assert found == await topics_of(broker)
            _check_directories(files, found)


async def _live(broker: TestBroker, administrator: Administrator) -> None:
    one, two = Known(1), Known(2, config="1000000")
    async with administrator.asking_for(a=one):
        await broker.create("a")
    async with administrator.asking_for(b=two):
        await broker.create("b", partitions=2, retention_ms="1000000")
    async with administrator.asking_for(b=(two := replace(two, records=1))):
        await produce(broker, "b")
    async with administrator.asking_for(a=(one := replace(one, partitions=3))):
        await _grow(broker, "a", 3)
    async with administrator.asking_for(a=replace(one, config="2000000")):
        await _configure(broker, "a", "2000000")
    async with administrator.asking_for(b=None):
        await broker.delete("b")
    async with administrator.asking_for(b=Known(1)):
        await broker.create("b")
    async with administrator.asking_for(b=Known(1, records=1)):
        await produce(broker, "b")
    async with administrator.asking_for(a=None):
        await broker.delete("a")


async def produce(broker: TestBroker, topic: str) -> None:
    async with await broker.client() as client:
        answer = await client.ask(produce_request(topic, batch("value"), acks=-1), 11)
    assert 0 == answer.responses[0].partition_responses[0].error_code, answer


async def _grow(broker: TestBroker, topic: str, count: int) -> None:
    async with await broker.client() as client:
        answer = await client.ask(grow(topic, count), 3)
    assert 0 == answer.results[0].error_code, answer


async def _configure(broker: TestBroker, topic: str, value: str) -> None:
    async with await broker.client() as client:
        answer = await client.ask(change(TOPIC, topic, (CONFIG, SET, value)), 1)
    assert 0 == answer.responses[0].error_code, answer


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
    answer = await client.ask(describe(TOPIC, topic, CONFIG), 4)
    (config,) = answer.results[0].configs
    return None if config.config_source != 1 else str(config.value)


async def _end(client: WireClient, topic: str) -> int:
    answer = await client.ask(list_offsets_request(topic, {0: END}), 5)
    (found,) = answer.topics[0].partitions
    assert 0 == found.error_code, found
    return int(found.offset)


def _check_directories(files: Files, topics: Mapping[str, Known]) -> None:
    """
    Each partition has its directory, and nothing is left of one that is not there.
    """
    expected = {f"{name}-{n}" for name, known in topics.items() for n in range(known.partitions)}
    found = {name for name in files.names(Path(DATA)) if files.is_directory(Path(DATA) / name)}
    found = {name for name in found if not name.endswith(("-delete", "-stray"))}
    assert expected | {"__cluster_metadata-0"} == found
