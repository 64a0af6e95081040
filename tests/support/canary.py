"""
The canary: a topic that gets a record every five seconds, so that somebody sees whether the broker
lives. Its segments are small, and their numbers are those of ``docs/storage.md``.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.state_files.checkpoints import CLEAN_SHUTDOWN_FILE
from barnabas.testing.manual_clock import ManualClock
from tests.support.cleaning import clean, put
from tests.support.commits import commit_batch
from tests.support.logs import end_transaction
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

_UNVERIFIED: Final = {"transaction_partition_verification_enable": "false"}
"""Transactions are written to the log, without their coordinator."""


async def write_canary(data: Path, records: int = RECORDS) -> None:
    """
    Let a broker write both topics into the log directory *data*, and stop it.

    Its clock stands still: nothing is so old that it goes.
    """
    options = {"log_dirs": str(data), "offsets_topic_num_partitions": "1"} | _UNVERIFIED
    async with running(DiskFiles(), ManualClock(FIRST_MS), **options) as broker:
        for topic, configs in TOPICS.items():
            await broker.create(topic, **configs)
        async with await broker.client() as client:
            for number in range(records):
                value = batch(b"x" * 80, timestamp=FIRST_MS + number * EVERY_MS)
                for topic in TOPICS:
                    await client.ask(produce_request(topic, value), 9)
        await commit_as_watcher(broker)
        await pay_in_transactions(broker)
        await change_customers(broker)


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


async def pay_in_transactions(broker: TestBroker) -> None:
    """
    Write a transaction that is committed, one that is aborted, and one that stays open.
    """
    await broker.create("payments")
    partition = broker.partitions.get("payments", 0)
    assert partition is not None
    log = partition.log
    for number, is_committed in enumerate((True, False, None)):
        at = FIRST_MS + number * EVERY_MS
        put(
            log,
            *((b"order %d" % each, b"30 ducats") for each in range(2)),
            timestamp=at,
            producer_id=1000 + number,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
        if is_committed is not None:
            end_transaction(log, 1000 + number, commit=is_committed, timestamp=at)
            log.update_high_watermark(log.log_end_offset)


async def change_customers(broker: TestBroker) -> None:
    """
    Write a compacted topic, and clean it once.
    """
    await broker.create("customers", cleanup_policy="compact")
    partition = broker.partitions.get("customers", 0)
    assert partition is not None
    log = partition.log
    changes = [(b"ada", b"3"), (b"grace", b"1"), (b"ada", b"4"), (b"grace", None), (b"ada", b"5")]
    for number, change in enumerate(changes):
        put(log, change, timestamp=FIRST_MS + number * EVERY_MS)
        if number in (2, 3):
            log.roll()
    clean(log, broker.clock)


def kill(data: Path, killed: Path) -> None:
    """
    Make a copy of a directory as a broker leaves it that is killed in the middle of an append.
    """
    shutil.copytree(data, killed)
    (killed / CLEAN_SHUTDOWN_FILE).unlink()
    log = killed / "canary-0" / "00000000000000000109.log"
    with log.open("ab") as file:
        file.write(log.read_bytes()[:90])
