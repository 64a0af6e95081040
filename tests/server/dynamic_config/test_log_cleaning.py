from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from barnabas.coordination.cluster.image import MetadataImage
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.dynamic_config.brokers import BrokerConfigs
from barnabas.server.dynamic_config.cleaner import cleaner_settings, configure_cleaner
from barnabas.storage.cleaner.settings import CleanerSettings
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.group_requests import commit_request, committed_request, coordinator_request
from tests.support.server import (
    DATA,
    PATIENCE,
    START_MS,
    broker_config,
    fetch_request,
    fetch_topic,
    produce_request,
    running,
)
from tests.support.wire_client import WireClient

SMALL = {"log_cleaner_dedupe_buffer_size": "3000000", "offsets_topic_num_partitions": "1"}
BACKOFF = 15.0


async def put(client: WireClient, topic: str, key: bytes, value: bytes | None) -> None:
    batch = bytes(build_batch([SimpleRecord(START_MS, key, value)]))
    answer = await client.ask(produce_request(topic, batch), 7)
    assert 0 == answer.responses[0].partition_responses[0].error_code


async def commit(client: WireClient, group: str, offset: int) -> None:
    answer = await client.ask(commit_request(group, "t", {0: offset}), 8)
    assert 0 == answer.topics[0].partitions[0].error_code


async def committed(client: WireClient, group: str) -> int:
    async with asyncio.timeout(PATIENCE):
        while (answer := await client.ask(committed_request(group, "t", 0), 8)).groups[
            0
        ].error_code != 0:
            pass  # It is being loaded.
    offset: int = answer.groups[0].topics[0].partitions[0].committed_offset
    return offset


async def find_coordinator(client: WireClient) -> None:
    answer = await client.ask(coordinator_request("a"), 4)
    assert 0 == answer.coordinators[0].error_code


@pytest.mark.scenario(72)
async def test_compacted_topic_is_cleaned_when_the_clock_moves() -> None:
    files, clock = MemoryFiles(), ManualClock(START_MS)
    async with running(files, clock, **SMALL) as broker, await broker.client() as client:
        await broker.create("t", cleanup_policy="compact")
        for key, value in ((b"a", b"1"), (b"b", b"1"), (b"a", b"2")):
            await put(client, "t", key, value)
        broker.log("t").roll()
        await put(client, "t", b"c", b"1")

        await clock.pass_time(BACKOFF)

        answer = await client.ask(fetch_request(fetch_topic("t", {0: 0})), 11)
        records = answer.responses[0].partitions[0].records
        assert records is not None
        assert 1 == int.from_bytes(records[:8])
        assert b"0\n1\nt 0 3\n" == files.read_bytes(DATA / "cleaner-offset-checkpoint")
        assert 1 == broker.metrics.value("log_cleaner_time_since_last_run_ms") + 1
        assert 50 < broker.metrics.value("log_cleaner_recopy_percent") < 100


async def test_committed_offsets_survive_compaction_and_restarts() -> None:
    files, clock = MemoryFiles(), ManualClock(START_MS)
    async with running(files, clock, **SMALL) as broker, await broker.client() as client:
        await broker.create("t")
        await find_coordinator(client)
        await commit(client, "once", 7)
        for offset in range(100):
            await commit(client, "often", offset)
        log = broker.log("__consumer_offsets")
        log.roll()
        size, end = log.size, log.log_end_offset

        await clock.pass_time(BACKOFF)

        assert (log.size < size / 4, end) == (True, log.log_end_offset)
        assert (7, 99) == (await committed(client, "once"), await committed(client, "often"))

    async with running(files, clock, **SMALL) as broker, await broker.client() as client:
        assert (7, 99) == (await committed(client, "once"), await committed(client, "often"))
        for offset in range(100, 200):
            await commit(client, "often", offset)
        broker.log("__consumer_offsets").roll()
        await clock.pass_time(BACKOFF)
        assert broker.log("__consumer_offsets").size < size / 4

    async with running(files, clock, **SMALL) as broker, await broker.client() as client:
        assert (7, 199) == (await committed(client, "once"), await committed(client, "often"))


async def test_topic_can_be_deleted_while_it_is_cleaned() -> None:
    files, clock = MemoryFiles(), ManualClock(START_MS)
    slow = SMALL | {"log_cleaner_io_max_bytes_per_second": "1"}
    async with running(files, clock, **slow) as broker, await broker.client() as client:
        await broker.create("t", cleanup_policy="compact")
        for _ in range(5):
            await put(client, "t", b"k", b"v")
        await clock.pass_time(BACKOFF)
        broker.log("t").roll()
        await clock.pass_time(BACKOFF)
        assert broker.cleaner.manager.states.get(TopicPartition("t", 0)) is not None

        await broker.delete("t")

        assert broker.logs.get_log(TopicPartition("t", 0)) is None
        assert 0 == broker.cleaner.dead_thread_count


async def test_uncleanable_partition_is_counted_in_the_metrics() -> None:
    files, clock = MemoryFiles(), ManualClock(START_MS)
    async with running(files, clock, **SMALL) as broker, await broker.client() as client:
        await broker.create("t", cleanup_policy="compact")
        await put(client, "t", b"k", b"v")
        log = broker.log("t")
        log.roll()
        size = log.size

        broker.cleaner.manager.mark_uncleanable(log)

        metrics = broker.metrics
        assert 1 == metrics.value("log_cleaner_uncleanable_partitions_count")
        assert size == metrics.value("log_cleaner_uncleanable_bytes", log_directory=str(DATA))
        await clock.pass_time(BACKOFF)
        assert 0 == metrics.value("log_cleaner_max_dirty_percent")
        assert 0 == metrics.value("log_cleaner_dead_thread_count")


async def test_nothing_is_cleaned_with_a_disabled_cleaner() -> None:
    files, clock = MemoryFiles(), ManualClock(START_MS)
    options = SMALL | {"log_cleaner_enable": "false"}
    async with running(files, clock, **options) as broker:
        assert broker.logs.cleaner is None
        assert 0 == broker.metrics.value("log_cleaner_dead_thread_count")


async def test_idle_cleaner_costs_little_over_a_simulated_day() -> None:
    files, clock = MemoryFiles(), ManualClock(START_MS)
    async with running(files, clock, **SMALL) as broker:
        await broker.create("t", cleanup_policy="compact")
        await clock.pass_time(600.0)

        (thread,) = broker.cleaner.threads
        assert thread._cleaner is None
        assert 0 == broker.metrics.value("log_cleaner_time_since_last_run_ms")


def brokers(**options: str) -> BrokerConfigs:
    return BrokerConfigs(broker_config(**options), MetadataImage(), 1)


def test_cleaner_options_become_settings() -> None:
    given: dict[str, Any] = {
        "log_cleaner_enable": "false",
        "log_cleaner_threads": "3",
        "log_cleaner_dedupe_buffer_size": "9000000",
        "log_cleaner_io_buffer_load_factor": "0.5",
        "log_cleaner_io_buffer_size": "70000",
        "log_cleaner_io_max_bytes_per_second": "1e6",
        "log_cleaner_backoff_ms": "100",
        "message_max_bytes": "2000000",
    }

    assert CleanerSettings() == cleaner_settings(brokers())
    assert CleanerSettings(
        enabled=False,
        threads=3,
        dedupe_buffer_bytes=9_000_000,
        load_factor=0.5,
        io_buffer_bytes=70_000,
        max_message_bytes=2_000_000,
        max_io_bytes_per_second=1e6,
        backoff_ms=100,
    ) == cleaner_settings(brokers(**given))


async def test_cleaner_settings_change_while_the_broker_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(**SMALL) as broker:
        cleaner = broker.cleaner

        configure_cleaner(broker.logs, brokers(**SMALL, log_cleaner_threads="2"))
        assert 2 == len(cleaner.threads)
        with caplog.at_level(logging.ERROR):
            configure_cleaner(broker.logs, brokers(log_cleaner_threads="9"))

        assert 2 == len(cleaner.threads)
        assert (
            "the options log.cleaner.* are not applied: Log cleaner threads cannot be"
            in caplog.text
        )
