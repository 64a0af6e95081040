"""
The checkers on brokers, here and in a process of its own.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from barnabas.coordination.groups.offsets.offsets import CommittedOffset
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.broker_process import Barnabas
from tests.support.build import api_request
from tests.support.checkers import findings
from tests.support.commits import commit
from tests.support.server import (
    DATA,
    TestBroker,
    batch,
    fetch_request,
    fetch_topic,
    metadata_request,
    produce_request,
    running,
    until,
)


async def produced(broker: TestBroker) -> None:
    await broker.create("orders")
    async with await broker.client() as client:
        await client.ask(produce_request("orders", batch("one")), 9)


async def test_healthy_broker_breaks_no_rule() -> None:
    with findings.captured() as found:
        async with running(
            offsets_topic_num_partitions="1", log_index_interval_bytes="1"
        ) as broker:
            await broker.create("__consumer_offsets", 1, cleanup_policy="compact")
            await broker.create("orders")
            async with await broker.client() as client:
                for value in ("one", "two", "three", "four"):
                    await client.ask(produce_request("orders", batch(value)), 9)
                for offset in (3, 2):
                    topic = delete_records_topic("orders", offset)
                    request = api_request("delete_records", topics=[topic], timeout_ms=1000)
                    await client.ask(request, 2)
                    await commit(broker, "office", "orders", offset)

    assert [] == found


def delete_records_topic(name: str, offset: int) -> dict[str, Any]:
    return {"name": name, "partitions": [{"partition_index": 0, "offset": offset}]}


async def test_high_watermark_that_goes_back_is_found() -> None:
    with findings.captured() as found:
        async with running() as broker:
            await produced(broker)
            broker._watch_of_tests.look()  # type: ignore[attr-defined]  # the watch
            broker.log("orders").update_high_watermark(0)

    assert "orders-0: the high watermark went back from 1 to 0" in found


async def test_leader_epoch_that_goes_back_is_found() -> None:
    with findings.captured() as found:
        async with running() as broker:
            await produced(broker)
            partition = broker.partitions.get("orders", 0)
            assert partition is not None
            partition.leader_epoch -= 1

    assert "orders-0: the leader epoch went back from 0 to -1" in found


async def test_acknowledged_batch_that_is_cut_off_is_found() -> None:
    with findings.captured() as found:
        async with running() as broker:
            await produced(broker)
            broker.log("orders").truncate_to(0)

    assert "orders-0: the batch at offset 0 was acknowledged and is lost" in found


async def test_file_that_stays_open_is_found() -> None:
    files = MemoryFiles()
    with findings.captured() as found:
        async with running(files) as broker:
            await produced(broker)
            leaked = files.open(DATA / "orders-0/00000000000000000000.log")
        leaked.close()

    assert any("1 files are open after the stop: /data/orders-0/" in text for text in found)


async def test_memory_of_a_request_that_is_never_released_is_found() -> None:
    with findings.captured() as found:
        async with running() as broker:
            await produced(broker)
            connections: Any = broker.connections
            connections.resources.request_memory.change(object(), 0, 100)

    assert [
        "after the stop 100 bytes of requests are held",
        "after the stop 1 connections hold memory of requests",
    ] == found


async def test_connection_that_is_never_forgotten_is_found() -> None:
    with findings.captured() as found:
        async with running() as broker:
            connections: Any = broker.connections
            watch = broker._watch_of_tests  # type: ignore[attr-defined]
            async with await broker.client() as client:
                await client.ask(metadata_request(), 12)
                forgotten = next(iter(connections._open))
            await broker.stop()
            connections._open[forgotten] = None
            watch.stopped()

    assert ["after the stop 1 connections are open"] == found


async def test_fetch_that_waits_for_ever_is_found() -> None:
    with findings.captured() as found:
        async with running() as broker:
            await produced(broker)
            fetches: Any = broker.fetches
            async with await broker.client() as client:
                request = fetch_request(fetch_topic("orders", {0: 1}), max_wait_ms=60_000)
                asked = asyncio.create_task(client.ask(request, 12))
                await until(lambda: len(fetches.waiting) == 1)
                (waits,) = fetches.waiting
                asked.cancel()
            await until(lambda: not fetches.waiting)
            fetches.waiting.add(waits)

    assert ["after the stop 1 fetches wait"] == found


def test_broker_in_a_process_of_its_own_is_watched(tmp_path: Path) -> None:
    before = findings.brokers()[1]

    with Barnabas(tmp_path) as broker:
        broker.stop()

    assert findings.brokers()[1] == before + 1


def test_finding_of_another_process_reaches_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(findings.VARIABLE, str(tmp_path))
    script = "from tests.support.checkers.findings import report; report('broken')"
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", script], cwd=root, check=True, env=os.environ.copy())

    assert ["broken"] == findings.collect()
    assert [] == findings.collect()


async def test_committed_offset_that_changes_by_itself_is_found() -> None:
    with findings.captured() as found:
        async with running(offsets_topic_num_partitions="1") as broker:
            await produced(broker)
            await broker.create("__consumer_offsets", 1, cleanup_policy="compact")
            await commit(broker, "office", "orders", 1)
            broker._watch_of_tests.look()  # type: ignore[attr-defined]  # the watch
            shard = broker.inside.coordinators.groups.shards.of("office")
            offsets = shard.state.offsets.committed
            known = offsets.get("office", "orders", 0)
            assert isinstance(known, CommittedOffset)
            offsets.put("office", "orders", 0, known._replace(offset=0))

    assert any("became 0 instead of 1" in text for text in found)
