"""
What a changed config changes: the next decision of a running broker goes by it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import RecordBatch, batches
from barnabas.server.clock import SystemClock
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.state_files.file_names import TopicPartition
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.config_requests import (
    APPEND,
    BROKER,
    DELETE,
    SET,
    TOPIC,
    VERSIONS,
    change,
    replace,
    told,
)
from tests.support.server import DATA, TestBroker, batch, produce_request, running
from tests.support.wire_client import Disconnected, WireClient

pytestmark = pytest.mark.broker(
    clock=SystemClock(),
    log_retention_check_interval_ms="3600000",
    log_initial_task_delay_ms="3600000",
    log_cleaner_backoff_ms="3600000",
)


FINE = [(ErrorCode.NONE, None)]


async def ask(broker: TestBroker, request: Any) -> Any:
    async with await broker.client() as client:
        return told(await client.ask(request, VERSIONS[request.api.key]))


async def produce(broker: TestBroker, topic: str, records: bytes) -> tuple[int, int]:
    """
    The error and the offset that producing to partition 0 is answered with.
    """
    async with await broker.client() as client:
        answer = await client.ask(produce_request(topic, records), 9)
        result = answer.responses[0].partition_responses[0]
        return result.error_code, result.base_offset


def log_of(broker: TestBroker, topic: str) -> Log:
    manager = broker.log_manager
    assert manager is not None
    log = manager.get_log(TopicPartition(topic, 0))
    assert log is not None
    return log


def first_batch(log: Log) -> RecordBatch:
    records = log.read(log.log_start_offset, 1 << 20, FetchIsolation.LOG_END, True).records
    assert records is not None
    return next(batches(records.read()))


async def test_changed_segment_bytes_applies_to_the_next_append(broker: TestBroker) -> None:
    await broker.create("t")
    one = batch("x" * 100)
    await produce(broker, "t", one)
    await produce(broker, "t", one)
    assert 1 == log_of(broker, "t").segments.number_of_segments

    assert FINE == await ask(
        broker, change(TOPIC, "t", ("internal.segment.bytes", SET, str(2 * len(one))))
    )
    await produce(broker, "t", one)

    assert 2 == log_of(broker, "t").segments.number_of_segments


async def test_changed_retention_applies_to_the_next_check(broker: TestBroker) -> None:
    await broker.create("t", internal_segment_bytes="200")
    old, young = broker.clock.now_ms() - 60_000, broker.clock.now_ms()
    for timestamp in (old, old, young):
        await produce(broker, "t", batch("x" * 60, timestamp=timestamp))
    manager, log = broker.log_manager, log_of(broker, "t")
    assert manager is not None
    manager.maintenance.check_retention()
    assert 0 == log.log_start_offset

    assert FINE == await ask(broker, change(TOPIC, "t", ("retention.ms", SET, "30000")))
    manager.maintenance.check_retention()
    assert 2 == log.log_start_offset

    assert FINE == await ask(broker, replace(TOPIC, "t", ("retention.bytes", "0")))
    manager.maintenance.check_retention()
    assert 3 == log.log_start_offset


async def test_broker_retention_applies_to_topics_without_their_own(broker: TestBroker) -> None:
    await broker.create("inherits", internal_segment_bytes="200")
    await broker.create("has-its-own", internal_segment_bytes="200", retention_ms="86400000")
    for topic in ("inherits", "has-its-own"):
        await produce(broker, topic, batch("x" * 60, timestamp=broker.clock.now_ms() - 60_000))
    manager = broker.log_manager
    assert manager is not None

    assert FINE == await ask(broker, change(BROKER, "", ("log.retention.ms", SET, "30000")))
    manager.maintenance.check_retention()

    assert (1, 0) == (
        log_of(broker, "inherits").log_start_offset,
        log_of(broker, "has-its-own").log_start_offset,
    )
    assert FINE == await ask(broker, change(BROKER, "1", ("log.retention.ms", SET, "-1")))
    assert -1 == log_of(broker, "inherits").config.retention_ms
    await broker.create("later")
    assert -1 == log_of(broker, "later").config.retention_ms


async def test_changed_file_delete_delay_of_the_broker_applies_to_deleted_topics(
    broker: TestBroker,
) -> None:
    await broker.create("t")
    manager = broker.log_manager
    assert manager is not None

    await ask(broker, change(BROKER, "", ("log.segment.delete.delay.ms", SET, "0")))
    await broker.delete("t")
    manager.remove_deleted()

    assert [] == [name for name in broker.files.names(DATA) if name.endswith("-delete")]


async def test_changed_cleanup_policy_applies_at_once(broker: TestBroker) -> None:
    await broker.create("t")
    assert (ErrorCode.NONE, 0) == await produce(broker, "t", batch("x"))

    assert FINE == await ask(broker, change(TOPIC, "t", ("cleanup.policy", SET, "compact")))
    assert (ErrorCode.INVALID_RECORD, -1) == await produce(broker, "t", batch("x"))
    assert log_of(broker, "t").config.compact

    assert FINE == await ask(broker, change(TOPIC, "t", ("cleanup.policy", APPEND, "delete")))
    assert ("compact", "delete") == log_of(broker, "t").config.cleanup_policy
    assert FINE == await ask(broker, change(TOPIC, "t", ("cleanup.policy", DELETE, None)))
    assert (ErrorCode.NONE, 1) == await produce(broker, "t", batch("x"))


async def test_changed_limits_for_batches_apply_to_the_next_batch(broker: TestBroker) -> None:
    await broker.create("t")
    one = batch("x" * 500)

    await ask(broker, change(TOPIC, "t", ("max.message.bytes", SET, "100")))
    assert (ErrorCode.MESSAGE_TOO_LARGE, -1) == await produce(broker, "t", one)
    await ask(broker, replace(TOPIC, "t", ("message.timestamp.before.max.ms", "1000")))
    assert (ErrorCode.INVALID_TIMESTAMP, -1) == await produce(broker, "t", one)
    await ask(
        broker,
        replace(
            TOPIC, "t", ("compression.type", "gzip"), ("message.timestamp.type", "LogAppendTime")
        ),
    )
    assert (ErrorCode.NONE, 0) == await produce(broker, "t", one)

    stored = first_batch(log_of(broker, "t"))
    assert CompressionType.GZIP == stored.compression
    assert stored.max_timestamp > 1_700_000_000_000


async def test_changed_flush_interval_syncs_the_next_append(broker: TestBroker) -> None:
    await broker.create("t")
    await produce(broker, "t", batch("x"))
    log = log_of(broker, "t")
    assert 0 == log.recovery_point

    await ask(broker, change(TOPIC, "t", ("flush.messages", SET, "1")))
    await produce(broker, "t", batch("x"))

    assert 2 == log.recovery_point


async def test_changed_cleaner_settings_apply_to_its_threads(broker: TestBroker) -> None:
    manager = broker.log_manager
    assert manager is not None
    assert manager.cleaner is not None
    assert 1 == len(manager.cleaner.threads)

    assert FINE == await ask(
        broker,
        change(
            BROKER,
            "",
            ("log.cleaner.threads", SET, "2"),
            ("log.cleaner.backoff.ms", SET, "3600001"),
        ),
    )

    assert 2 == len(manager.cleaner.threads)
    assert 3_600_001 == manager.cleaner.settings.backoff_ms
    assert FINE == await ask(broker, replace(BROKER, "", ("min.insync.replicas", "1")))
    assert 1 == len(manager.cleaner.threads)


async def test_changed_producer_id_expiration_applies_to_existing_and_new_logs(
    broker: TestBroker,
) -> None:
    await broker.create("t")
    await produce(broker, "t", batch("x", producer_id=7, producer_epoch=0, base_sequence=0))
    log = log_of(broker, "t")
    log.remove_expired_producers(1_700_000_000_000 + 5000)
    assert [7] == [producer.producer_id for producer in log.active_producers()]

    await ask(broker, change(BROKER, "", ("producer.id.expiration.ms", SET, "5000")))

    log.remove_expired_producers(1_700_000_000_000 + 5000)
    assert [] == log.active_producers()


async def test_changed_connection_limit_applies_to_an_address_with_open_connections(
    broker: TestBroker,
) -> None:
    first = await broker.client()
    request = change(BROKER, "", ("max.connections.per.ip", SET, "1"))
    assert FINE == told(await first.ask(request, 1))

    second = await WireClient.open(broker.port)
    with pytest.raises(Disconnected):
        await second.ask(request, 1)
    await second.close()

    more = change(BROKER, "1", ("max.connections.per.ip.overrides", SET, "127.0.0.1:2"))
    assert FINE == told(await first.ask(more, 1))
    third = await WireClient.open(broker.port)
    assert FINE == told(await third.ask(more, 1))
    await asyncio.gather(first.close(), third.close())


async def test_changed_thread_counts_apply_to_workers_and_log_recovery(broker: TestBroker) -> None:
    assert FINE == await ask(
        broker,
        change(
            BROKER,
            "1",
            ("background.threads", SET, "20"),
            ("num.recovery.threads.per.data.dir", SET, "4"),
        ),
    )

    manager = broker.log_manager
    assert manager is not None
    assert {20} == {pool._max_workers for pool in broker.workers.pools}
    assert 4 == manager._recovery_threads


async def test_stored_broker_configs_apply_before_the_first_log_is_loaded() -> None:
    files = MemoryFiles()
    async with running(files, SystemClock()) as broker:
        await broker.create("t")
        await ask(
            broker,
            change(
                BROKER,
                "1",
                ("log.cleaner.threads", SET, "2"),
                ("max.connections.per.ip", SET, "1"),
                ("log.segment.bytes", SET, "2000000"),
            ),
        )

    async with running(files, SystemClock()) as broker:
        manager = broker.log_manager
        assert manager is not None
        assert manager.cleaner is not None
        assert 2 == len(manager.cleaner.threads)
        assert 2_000_000 == log_of(broker, "t").config.segment_bytes
        first = await broker.client()
        second = await broker.client()
        with pytest.raises(Disconnected):
            await second.ask(change(BROKER, "1"), 1)
        await asyncio.gather(first.close(), second.close())
