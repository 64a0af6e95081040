from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import RecordBatch, batches
from barnabas.server.clock import EventLoopClock
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
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
    clock=EventLoopClock(),
    log_retention_check_interval_ms="3600000",
    log_initial_task_delay_ms="3600000",
    log_cleaner_backoff_ms="3600000",
)


FINE = [(ErrorCode.NONE, None)]


async def ask(broker: TestBroker, request: Any) -> Any:
    async with await broker.client() as client:
        return told(await client.ask(request, VERSIONS[request.api.key]))


async def produce(broker: TestBroker, topic: str, records: bytes) -> tuple[int, int]:
    async with await broker.client() as client:
        answer = await client.ask(produce_request(topic, records), 9)
        result = answer.responses[0].partition_responses[0]
        return result.error_code, result.base_offset


async def set_configs(broker: TestBroker, kind: int, name: str, **values: str) -> None:
    changes = [(option.replace("_", "."), SET, value) for option, value in values.items()]
    assert FINE == await ask(broker, change(kind, name, *changes))


def first_batch(log: Log) -> RecordBatch:
    records = log.read(log.log_start_offset, 1 << 20, FetchIsolation.LOG_END, True).records
    assert records is not None
    return next(batches(records.read()))


async def test_changed_segment_bytes_applies_to_the_next_append(broker: TestBroker) -> None:
    await broker.create("t")
    one = batch("x" * 100)
    await produce(broker, "t", one)
    await produce(broker, "t", one)
    assert 1 == broker.log("t").segments.number_of_segments

    await set_configs(broker, TOPIC, "t", internal_segment_bytes=str(2 * len(one)))
    await produce(broker, "t", one)

    assert 2 == broker.log("t").segments.number_of_segments


async def test_changed_retention_applies_to_the_next_check(broker: TestBroker) -> None:
    await broker.create("t", internal_segment_bytes="200")
    old, young = broker.clock.now_ms() - 60_000, broker.clock.now_ms()
    for timestamp in (old, old, young):
        await produce(broker, "t", batch("x" * 60, timestamp=timestamp))
    log = broker.log("t")
    broker.logs.maintenance.check_retention()
    assert 0 == log.log_start_offset

    await set_configs(broker, TOPIC, "t", retention_ms="30000")
    broker.logs.maintenance.check_retention()
    assert 2 == log.log_start_offset

    assert FINE == await ask(broker, replace(TOPIC, "t", ("retention.bytes", "0")))
    broker.logs.maintenance.check_retention()
    assert 3 == log.log_start_offset


async def test_broker_retention_applies_to_topics_without_their_own(broker: TestBroker) -> None:
    await broker.create("inherits", internal_segment_bytes="200")
    await broker.create("has-its-own", internal_segment_bytes="200", retention_ms="86400000")
    for topic in ("inherits", "has-its-own"):
        await produce(broker, topic, batch("x" * 60, timestamp=broker.clock.now_ms() - 60_000))

    await set_configs(broker, BROKER, "", log_retention_ms="30000")
    broker.logs.maintenance.check_retention()

    assert (1, 0) == (
        broker.log("inherits").log_start_offset,
        broker.log("has-its-own").log_start_offset,
    )
    await set_configs(broker, BROKER, "1", log_retention_ms="-1")
    assert -1 == broker.log("inherits").config.retention_ms
    await broker.create("later")
    assert -1 == broker.log("later").config.retention_ms


async def test_changed_file_delete_delay_of_the_broker_applies_to_deleted_topics(
    broker: TestBroker,
) -> None:
    await broker.create("t")

    await set_configs(broker, BROKER, "", log_segment_delete_delay_ms="0")
    await broker.delete("t")
    broker.logs.remove_deleted()

    assert [] == [name for name in broker.files.names(DATA) if name.endswith("-delete")]


async def test_changed_cleanup_policy_applies_at_once(broker: TestBroker) -> None:
    await broker.create("t")
    assert (ErrorCode.NONE, 0) == await produce(broker, "t", batch("x"))

    await set_configs(broker, TOPIC, "t", cleanup_policy="compact")
    assert (ErrorCode.INVALID_RECORD, -1) == await produce(broker, "t", batch("x"))
    assert broker.log("t").config.compact

    assert FINE == await ask(broker, change(TOPIC, "t", ("cleanup.policy", APPEND, "delete")))
    assert ("compact", "delete") == broker.log("t").config.cleanup_policy
    assert FINE == await ask(broker, change(TOPIC, "t", ("cleanup.policy", DELETE, None)))
    assert (ErrorCode.NONE, 1) == await produce(broker, "t", batch("x"))


async def test_changed_limits_for_batches_apply_to_the_next_batch(broker: TestBroker) -> None:
    await broker.create("t")
    one = batch("x" * 500)

    await set_configs(broker, TOPIC, "t", max_message_bytes="100")
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

    stored = first_batch(broker.log("t"))
    assert CompressionType.GZIP == stored.compression
    assert stored.max_timestamp > 1_700_000_000_000


async def test_changed_flush_interval_syncs_the_next_append(broker: TestBroker) -> None:
    await broker.create("t")
    await produce(broker, "t", batch("x"))
    log = broker.log("t")
    assert 0 == log.recovery_point

    await set_configs(broker, TOPIC, "t", flush_messages="1")
    await produce(broker, "t", batch("x"))

    assert 2 == log.recovery_point


async def test_changed_cleaner_settings_apply_to_its_threads(broker: TestBroker) -> None:
    assert 1 == len(broker.cleaner.threads)

    await set_configs(broker, BROKER, "", log_cleaner_threads="2", log_cleaner_backoff_ms="3600001")

    assert 2 == len(broker.cleaner.threads)
    assert 3_600_001 == broker.cleaner.settings.backoff_ms
    assert FINE == await ask(broker, replace(BROKER, "", ("min.insync.replicas", "1")))
    assert 1 == len(broker.cleaner.threads)


async def test_changed_producer_id_expiration_applies_to_existing_and_new_logs(
    broker: TestBroker,
) -> None:
    await broker.create("t")
    await produce(broker, "t", batch("x", producer_id=7, producer_epoch=0, base_sequence=0))
    log = broker.log("t")
    log.remove_expired_producers(1_700_000_000_000 + 5000)
    assert [7] == [producer.producer_id for producer in log.active_producers()]

    await set_configs(broker, BROKER, "", producer_id_expiration_ms="5000")

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
    await set_configs(
        broker, BROKER, "1", background_threads="20", num_recovery_threads_per_data_dir="4"
    )

    assert {20} == {pool._max_workers for pool in broker.workers.pools}
    assert 4 == broker.logs._recovery_threads


async def test_stored_broker_configs_apply_before_the_first_log_is_loaded() -> None:
    files = MemoryFiles()
    async with running(files, EventLoopClock()) as broker:
        await broker.create("t")
        await set_configs(
            broker,
            BROKER,
            "1",
            log_cleaner_threads="2",
            max_connections_per_ip="1",
            log_segment_bytes="2000000",
        )

    async with running(files, EventLoopClock()) as broker:
        assert 2 == len(broker.cleaner.threads)
        assert 2_000_000 == broker.log("t").config.segment_bytes
        first = await broker.client()
        second = await broker.client()
        with pytest.raises(Disconnected):
            await second.ask(change(BROKER, "1"), 1)
        await asyncio.gather(first.close(), second.close())
