"""
Real consumers in fetch sessions: the broker runs in this process, where it can be watched.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.storage.fs.disk import DiskFiles
from tests.interop.clients.base import Client
from tests.support.server import batch, running, until

PARTITIONS = 50
RECORDS = 500
WITH_SESSIONS = {"Java", "kafka-python"}
"""
The other libraries ask for no sessions: their fetches name all their partitions.
"""


@pytest.mark.parametrize("slots", [1000, 0])
async def test_consumer_of_many_partitions_reads_everything_once(
    client: Client, tmp_path: Path, topic: str, slots: int
) -> None:
    """
    With a session where the library knows them, and without one where there is no place.
    """
    values = [b"%d" % number for number in range(RECORDS)]
    async with running(
        DiskFiles(),
        log_dirs=str(tmp_path / "data"),
        max_incremental_fetch_session_cache_slots=str(slots),
    ) as broker:
        bootstrap = f"127.0.0.1:{broker.port}"
        await asyncio.to_thread(client.create_topic, bootstrap, topic, PARTITIONS, {})
        reading = asyncio.create_task(
            asyncio.to_thread(client.read, bootstrap, topic, PARTITIONS, RECORDS)
        )
        uses = 0
        for number, value in enumerate(values):
            # The epoch of a session is one more than its incremental fetches.
            uses = max([uses, *(session.epoch - 1 for session in broker.fetch_sessions)])
            if number % PARTITIONS == 0:
                await until(lambda: broker.fetches.waiting or reading.done())
            now_ms = broker.clock.now_ms()
            records = memoryview(bytearray(batch(value, timestamp=now_ms)))
            broker.partitions.expect(topic, number % PARTITIONS).append(records)
        seen = await reading

        errors = broker.metrics.value("errors", api="Fetch")
        left = broker.metrics.value("fetch_sessions")

    assert sorted(values) == sorted(each.value or b"" for each in seen)
    assert bool(uses) == (bool(slots) and client.name in WITH_SESSIONS)
    assert 0 == errors
    assert left <= 1
