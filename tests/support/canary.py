"""
The canary: a topic that gets a record every five seconds, so that somebody sees whether the broker
lives. Its segments are small, and their numbers are those of ``docs/storage.md``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.testing.manual_clock import ManualClock
from tests.support.commits import commit_batch
from tests.support.server import START_MS, TestBroker, batch, produce_request, running

FIRST_MS: Final = START_MS
EVERY_MS: Final = 5_000
RECORDS: Final = 201
"""The last one is of 1000 seconds after the first."""
WATCHER: Final = "watcher"
"""A group that reads a record in twelve seconds, and commits once a minute."""

TOPICS: Final[dict[str, dict[str, Any]]] = {
    "canary": {"internal_segment_bytes": "16384", "retention_ms": "600000"},
    "canary-index300": {
        "internal_segment_bytes": "16384",
        "retention_ms": "600000",
        "segment_index_bytes": "300",
        "index_interval_bytes": "150",
    },
}


async def write_canary(data: Path, records: int = RECORDS) -> None:
    """
    Let a broker write both topics into the log directory *data*, and stop it.

    Its clock stands still: nothing is so old that it goes.
    """
    options = {"log_dirs": str(data), "offsets_topic_num_partitions": "1"}
    async with running(DiskFiles(), ManualClock(FIRST_MS), **options) as broker:
        for topic, configs in TOPICS.items():
            await broker.create(topic, **configs)
        async with await broker.client() as client:
            for number in range(records):
                value = batch(b"x" * 80, timestamp=FIRST_MS + number * EVERY_MS)
                for topic in TOPICS:
                    await client.ask(produce_request(topic, value), 9)
        await commit_as_watcher(broker)


async def commit_as_watcher(broker: TestBroker) -> None:
    """
    Write the commits of a group as its coordinator does, each of its time.
    """
    await broker.create("__consumer_offsets", cleanup_policy="compact")
    partition = broker.partitions.get("__consumer_offsets", 0)
    assert partition is not None
    log = partition.log
    for seconds in range(40, 1001, 60):
        commit = commit_batch(WATCHER, "canary", seconds // 12, FIRST_MS + seconds * 1000)
        log.append_as_leader(memoryview(commit), 0, origin=AppendOrigin.COORDINATOR)
        log.update_high_watermark(log.log_end_offset)
