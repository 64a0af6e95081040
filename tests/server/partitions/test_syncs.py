"""
The event loop waits for no fsync: not for that of one request, and so not for the disk of others.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from barnabas.protocol.messages import REQUESTS
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.absurd_requests import absurd_request
from tests.support.server import START_MS, TestBroker, batch, produce_request, running
from tests.support.wire_client import WireClient

TOPICS: dict[str, dict[str, str]] = {
    "kept": {},
    "compacted": {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01"},
    "flushed": {"flush_messages": "1"},
    "rolled": {"segment_ms": "1000", "retention_ms": "5000"},
}


class WatchedFiles(MemoryFiles):
    """
    Files that know which of their syncs the thread of the tests has waited for, the event loop's.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_watching = False
        self.on_the_loop: list[str] = []
        self.elsewhere = 0

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        if not self.is_watching or action not in {"sync", "sync directory"}:
            return
        if threading.current_thread() is threading.main_thread():
            self.on_the_loop.append(f"{action} {path.name}")
        else:
            self.elsewhere += 1


async def ask(client: WireClient, api_key: int, version: int | None = None, **given: Any) -> Any:
    cls = REQUESTS[api_key]
    version = cls.api.versions[-1] if version is None else version
    return await client.ask(absurd_request(cls, version, (), 1, **given), version)


async def produce_to_all(client: WireClient, after_ms: int) -> None:
    for topic in TOPICS:
        records = bytes(build_batch([SimpleRecord(START_MS + after_ms, b"k", b"x" * 100)]))
        answer = await client.ask(produce_request(topic, records), 9)
        assert 0 == answer.responses[0].partition_responses[0].error_code


async def coordinate(client: WireClient, kind: int) -> None:
    while (await ask(client, 10, 3, key="g", key_type=kind)).error_code:
        pass


async def live(broker: TestBroker, clock: ManualClock, client: WireClient) -> None:
    """
    Records, rolls, retention, compaction, groups, transactions, and changes of topics.
    """
    for topic, configs in TOPICS.items():
        await broker.create(topic, partitions=3, **configs)
    for kind in (0, 1):
        await coordinate(client, kind)
    await clock.pass_time(1)
    for after_ms in (0, 3000, 6000):
        await produce_to_all(client, after_ms)
        await clock.pass_time(3)
    await clock.pass_time(400)
    own: dict[str, Any] = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": ""}
    await ask(client, 8, 8, name="kept", partition_index=0, group_instance_id=None, **own)
    told = await ask(client, 22, 4, transactional_id="x", transaction_timeout_ms=60_000)
    producer: dict[str, Any] = {
        "producer_id": told.producer_id,
        "producer_epoch": told.producer_epoch,
    }
    first: dict[str, Any] = {f"v3_and_below_{name}": value for name, value in producer.items()}
    await ask(client, 24, 3, v3_and_below_transactional_id="x", **first)
    await ask(client, 26, 3, transactional_id="x", committed=True, **producer)
    option: dict[str, Any] = {"name": "retention.ms", "value": "100000", "config_operation": 0}
    await ask(client, 44, resource_type=2, resource_name="kept", validate_only=False, **option)
    await ask(client, 21, name="kept", partition_index=0, offset=1, timeout_ms=1000)
    await ask(client, 43, topic="kept", election_type=0, timeout_ms=1000)
    await ask(client, 47, name="kept", group_id="g", partition_index=0)
    await broker.delete("rolled")
    await clock.pass_time(100)


async def test_event_loop_never_waits_for_a_sync() -> None:
    files, clock = WatchedFiles(), ManualClock(START_MS)
    counts = {"transaction_state_log_num_partitions": "1", "offsets_topic_num_partitions": "1"}
    async with running(files, clock, **counts) as broker, await broker.client() as client:
        files.is_watching = True

        await live(broker, clock, client)

        files.is_watching = False
    assert [] == files.on_the_loop
    assert files.elsewhere > 20


async def test_first_append_to_a_new_log_waits_for_no_sync() -> None:
    files = WatchedFiles()
    async with running(files, ManualClock(START_MS)) as broker, await broker.client() as client:
        await broker.create("new")
        files.is_watching = True

        await client.ask(produce_request("new", batch(b"x")), 9)

        files.is_watching = False
    assert [] == files.on_the_loop
