"""
Directories that Apache Kafka has written, shown by a read-only broker: it serves what they have,
and does not change a byte.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.storage.fs.disk import DiskFiles
from barnabas.testing.manual_clock import ManualClock
from tests.golden.test_logs import STOPPED, as_dumped, everything
from tests.support.fingerprint import fingerprint
from tests.support.kafka_directory import (
    AFTERWARDS_MS,
    KafkaDirectory,
    dump_of,
    dumped_batches,
)
from tests.support.server import running

UNTIDY = [
    ("recovery-killed", "before"),
    ("recovery-clean", "before"),
    ("retention-killed", "data"),
]
"""Directories with damaged logs, and with segments that retention would delete at once."""


@pytest.mark.parametrize(
    ("name", "part"), [*((name, "data") for name in STOPPED), *UNTIDY], ids=lambda each: each
)
async def test_readonly_view_of_kafkas_directory_changes_no_byte(
    golden: Path, tmp_path: Path, name: str, part: str
) -> None:
    directory = KafkaDirectory(golden / name, part, tmp_path)
    before = fingerprint(directory.path)
    compared = 0

    clock = ManualClock(AFTERWARDS_MS)
    shown = {"log_dirs": str(directory.path), "barnabas_read_only": "true"}
    async with running(DiskFiles(), clock, **shown) as broker:
        await clock.pass_time(86_400)
        async with await broker.client() as client:
            answer = await client.ask(MetadataRequest(topics=None), 9)
        for partition in broker.partitions:
            found = [as_dumped(batch) for batch in everything(partition.log)]
            dump = dump_of(golden / name, str(partition.log.topic_partition))
            if part == "data" and dump.exists():
                start = partition.log.log_start_offset
                expected = [each for each in dumped_batches(dump) if each.last_offset >= start]
                # Members that nobody hears of leave their groups, in memory.
                left = found[len(expected) :] if partition.topic == "__consumer_offsets" else []
                assert [*expected, *left] == found
                compared += len(expected)

    assert {each.name for each in answer.topics} >= set(broker.partitions.topics)
    assert compared > 0 or part != "data"
    assert before == fingerprint(directory.path)
