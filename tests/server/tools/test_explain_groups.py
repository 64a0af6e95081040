from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from barnabas.coordination.coordinator_runtime.partitioning import partition_of
from barnabas.coordination.groups.records import OffsetRecord, encode_record
from barnabas.protocol.internal_topics.group_records import OffsetCommitValue
from barnabas.protocol.records.batch import BatchOptions, build_batch
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.explain.wording.forecast import forecast_json
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.testing.manual_clock import ManualClock
from tests.support.commits import commit, commit_batch
from tests.support.explaining import Explainer
from tests.support.server import START_MS, TestBroker, batch, produce_request, running
from tests.support.share_client import ShareClient

MINUTE: Final = 60
TOPIC: Final = {"internal_segment_bytes": "1000"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@asynccontextmanager
async def broker_on(data: Path, clock: ManualClock) -> AsyncIterator[TestBroker]:
    options = {
        "log_dirs": str(data),
        "offsets_topic_num_partitions": "2",
        "transaction_partition_verification_enable": "false",
    }
    async with running(DiskFiles(), clock, **options) as broker:
        yield broker


async def produce(broker: TestBroker, topic: str, count: int, partition: int = 0) -> None:
    async with await broker.client() as client:
        for _ in range(count):
            records = batch("x" * 200, timestamp=broker.clock.now_ms())
            await client.ask(produce_request(topic, records, partition=partition), 9)


def groups(data: Path, now_ms: int, target: str = "t-0", *more: str) -> dict[str, Any]:
    found = Explainer(data, now_ms=now_ms).facts(target, "--groups", *more)
    return {each["group"]: each for each in found["groups"]}


async def test_explain_groups_agrees_with_the_broker(data: Path) -> None:
    clock = ManualClock(START_MS)
    async with broker_on(data, clock) as broker:
        await broker.create("__consumer_offsets", 2, cleanup_policy="compact")
        await broker.create("t", 1, **TOPIC)
        await broker.create("other", 1)
        await produce(broker, "t", 30)
        await commit(broker, "slow", "other", 5)
        assert broker.forecasts is not None
        for minute in range(4):
            await commit(broker, "slow", "t", minute)
            await commit(broker, "fast", "t", minute * 3)
            if minute == 0:
                await commit(broker, "stopped", "t", 7)
            await broker.forecasts.check()
            await clock.pass_time(2 * MINUTE)
        seen = groups(data, clock.now_ms())
        live = {
            name: forecast_json((await broker.forecasts.of_group(name))["t"][0])
            for name in ("slow", "fast", "stopped")
        }

    assert ["fast", "slow", "stopped"] == [*seen]
    for name, by_broker in live.items():
        by_files = {key: seen[name][key] for key in by_broker}
        assert 0 <= deleted_ms(by_broker) - deleted_ms(by_files) <= 300_000
        for facts in (by_broker, by_files):
            for key in ("deleted_ms", "begins_ms", "ends_ms"):
                for part in (facts["next_deletion"], facts["loss"] or {}):
                    part.pop(key, None)
            del facts["words"]
        assert by_broker == by_files
        assert seen[name]["is_share"] is False


def deleted_ms(facts: dict[str, Any]) -> int:
    return int(facts["next_deletion"]["deleted_ms"])


async def test_explain_groups_has_a_section_for_each_group(data: Path) -> None:
    clock = ManualClock(START_MS)
    async with broker_on(data, clock) as broker:
        await broker.create("__consumer_offsets", 2, cleanup_policy="compact")
        await broker.create("t", 2, **TOPIC, retention_ms=str(30 * MINUTE * 1000))
        await produce(broker, "t", 20)
        await commit(broker, "billing", "t", 2)
        await clock.pass_time(MINUTE)
        await commit(broker, "billing", "t", 3)
        await clock.pass_time(20 * MINUTE)
        await produce(broker, "t", 1)
        text = Explainer(data, now_ms=clock.now_ms()).text("t-0", "--groups")
        both = Explainer(data, now_ms=clock.now_ms()).text("t", "--groups")

    assert "\nGroup billing\n" in text
    at = "At       Its offset is 3, committed at 2023-11-14T22:14:20Z. 18 records are unread."
    assert at in text
    assert "Reads    It has stood still for 20 minutes." in text
    assert "Loses    Segment 3 is deleted in 9 minutes (retention.ms): " in text
    assert "(18 records from 3 on) will be deleted unread" in " ".join(text.split())
    assert "retention.ms" in text.split("Settings at")[1]
    assert "Segment 0:" not in text
    assert 1 == both.count("Group billing")
    assert "No group has committed an offset of it." in both


async def test_broker_downtime_is_no_standstill_of_groups(data: Path) -> None:
    """
    The rate is that before the stop, and the group continues at its offset.
    """
    clock = ManualClock(START_MS)
    async with broker_on(data, clock) as broker:
        await broker.create("__consumer_offsets", 2, cleanup_policy="compact")
        await broker.create("t", 1, **TOPIC)
        await produce(broker, "t", 30)
        for minute in range(4):
            await commit(broker, "g", "t", minute)
            await clock.pass_time(MINUTE)
        day_later = clock.now_ms() + 3600_000
        while_running = groups(data, day_later)["g"]
    stopped = groups(data, day_later)["g"]

    assert "stands" == while_running["pace"]
    assert ("moves", 3, 3) == (stopped["pace"], stopped["offset"], stopped["position"])
    assert pytest.approx(1 / 60) == stopped["records_per_second"]


async def test_share_groups_are_found_by_topic_id(data: Path) -> None:
    clock = ManualClock(START_MS)
    async with broker_on(data, clock) as broker:
        client = await ShareClient.of(broker.port, "t")
        await client.initialize("shares", start_offset=2)
        await client.initialize("unread", start_offset=-1)
        await client.produce(*[[b"x" * 100]] * 10)
        await client.close()
        seen = groups(data, clock.now_ms())

    assert ["shares"] == [*seen]
    assert seen["shares"]["is_share"] is True
    assert (2, 8) == (seen["shares"]["offset"], seen["shares"]["unread_records"])


async def test_later_commits_are_ignored_at_an_earlier_time(data: Path) -> None:
    clock = ManualClock(START_MS)
    async with broker_on(data, clock) as broker:
        await broker.create("__consumer_offsets", 2, cleanup_policy="compact")
        await broker.create("t", 1, **TOPIC)
        await produce(broker, "t", 30)
        for minute in range(4):
            await commit(broker, "g", "t", minute)
            await clock.pass_time(MINUTE)
        seen = groups(data, clock.now_ms(), "t-0", "--at", str(START_MS + 90_000))["g"]

    assert 1 == seen["offset"]


@pytest.mark.parametrize("kind", [ControlRecordType.COMMIT, ControlRecordType.ABORT, None])
async def test_transactional_commit_counts_once_committed(
    data: Path, kind: ControlRecordType | None
) -> None:
    clock = ManualClock(START_MS)
    async with broker_on(data, clock) as broker:
        await broker.create("__consumer_offsets", 2, cleanup_policy="compact")
        await broker.create("t", 1, **TOPIC)
        await produce(broker, "t", 30)
        await commit(broker, "g", "t", 1)
        partition = broker.partitions.get("__consumer_offsets", partition_of("g", 2))
        assert partition is not None
        now_ms = clock.now_ms()
        producer: BatchOptions = {"producer_id": 7, "producer_epoch": 0}
        first: BatchOptions = {**producer, "base_sequence": 0, "is_transactional": True}
        batches = [commit_batch("g", "t", 2, now_ms, **first)]
        if kind is not None:
            batches.append(EndTransactionMarker(kind, 0).batch(now_ms, **producer))
        log = partition.log
        for each in batches:
            origin = AppendOrigin.COORDINATOR
            log.append_as_leader(memoryview(each), 0, origin=origin, transaction_version=1)
        log.update_high_watermark(log.log_end_offset)
        seen = groups(data, clock.now_ms())["g"]

    assert (2 if kind is ControlRecordType.COMMIT else 1) == seen["offset"]


async def test_commits_after_a_deletion_or_a_later_commit_in_their_batch_count(data: Path) -> None:
    clock = ManualClock(START_MS)
    async with broker_on(data, clock) as broker:
        await broker.create("__consumer_offsets", 1, cleanup_policy="compact")
        await broker.create("t", 1, **TOPIC)
        await produce(broker, "t", 30)
        await commit(broker, "deleted", "t", 1)
        partition = broker.partitions.get("__consumer_offsets", 0)
        assert partition is not None
        now_ms = clock.now_ms()
        kept = OffsetCommitValue(offset=5, metadata="", commit_timestamp=now_ms)
        late = OffsetCommitValue(offset=6, metadata="", commit_timestamp=now_ms + 1)
        values = {"late": late, "deleted": None, "kept": kept}
        records = [OffsetRecord(group, "t", 0, value) for group, value in values.items()]
        both = build_batch([SimpleRecord(now_ms, *encode_record(record)) for record in records])
        partition.log.append_as_leader(memoryview(both), 0, origin=AppendOrigin.COORDINATOR)
        partition.log.update_high_watermark(partition.log.log_end_offset)
        seen = groups(data, now_ms)

    assert {"kept": 5} == {name: facts["offset"] for name, facts in seen.items()}
