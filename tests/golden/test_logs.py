from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

from barnabas.protocol.errors import OffsetOutOfRange
from barnabas.protocol.records.batch import RecordBatch, batches
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from tests.support.kafka_directory import (
    DumpedBatch,
    DumpedRecord,
    KafkaDirectory,
    dump_of,
    dumped_batches,
    dumped_records,
)
from tests.support.some import some

NOT_LEADER_OR_FOLLOWER = 6
"""The answer of a broker that has just started."""

STOPPED = [
    "codecs",
    "compaction",
    "groups",
    "groups-compacted",
    "metadata",
    "segments",
    "transactions-tv0",
    "transactions-tv1",
    "transactions-tv2",
]


def everything(log: Log) -> Iterator[RecordBatch]:
    """
    All batches of *log*, read as a consumer does, some hundred bytes at a time.
    """
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        records = log.read(offset, 500, FetchIsolation.LOG_END, True).records
        if records is None:
            return
        for batch in batches(records.read()):
            if batch.last_offset >= offset:
                yield batch
                offset = batch.next_offset


def as_dumped(batch: RecordBatch) -> DumpedBatch:
    return DumpedBatch._make(getattr(batch, name) for name in DumpedBatch._fields)


def size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


@pytest.mark.parametrize("name", [*STOPPED, "retention-killed"])
def test_batches_and_records_equal_kafkas_dump(golden: Path, tmp_path: Path, name: str) -> None:
    directory = KafkaDirectory(golden / name, "data", tmp_path)
    compared = 0

    for log_name in some(directory.logs()):
        log = directory.open(log_name)
        found = list(everything(log))
        assert all(batch.is_valid() for batch in found)
        dump = dump_of(golden / name, log_name)
        if dump.exists():
            start = log.log_start_offset
            expected = [batch for batch in dumped_batches(dump) if batch.last_offset >= start]
            assert expected == [as_dumped(batch) for batch in found], log_name
            records = dict(dumped(found))
            for record in dumped_records(dump):
                if record.offset >= start:
                    assert record == records[record.offset], log_name
                    compared += 1
        log.close()

    assert compared > 0


def dumped(found: list[RecordBatch]) -> Iterator[tuple[int, DumpedRecord]]:
    for batch in found:
        for offset, timestamp, key, value, headers in batch.records():
            names = ",".join(header.key for header in headers)
            yield offset, DumpedRecord(offset, timestamp, size(key), size(value), names)


def list_offset(log: Log, asked: str) -> dict[str, int]:
    """
    What ListOffsets answers to a consumer.
    """
    timestamp, _, isolation = asked.partition(" ")
    end = log.last_stable_offset if isolation == "read_committed" else log.high_watermark
    if timestamp == "-1":
        return answer(end, -1, log.leader_epochs.latest_epoch)
    found = log.fetch_offset_by_timestamp(int(timestamp))
    if found is None or (timestamp not in ("-2", "-4") and found.offset >= end):
        return answer(-1, -1, None)
    return answer(found.offset, found.timestamp, found.leader_epoch)


def answer(offset: int, timestamp: int, epoch: int | None) -> dict[str, int]:
    return {
        "offset": offset,
        "timestamp": timestamp,
        "leaderEpoch": -1 if epoch is None else epoch,
    }


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in STOPPED if not name.startswith(("groups", "metadata"))),
        "retention-killed",
    ],
)
def test_timestamp_lookups_return_the_offsets_that_kafka_returned(
    golden: Path, tmp_path: Path, name: str
) -> None:
    directory = KafkaDirectory(golden / name, "data", tmp_path)
    answers: dict[str, dict[str, Any]] = json.loads((golden / name / "offsets.json").read_text())
    assert answers

    for log_name, expected in some(answers.items()):
        if not (directory.path / log_name).exists():
            continue
        log = directory.open(log_name)
        assert expected == {asked: list_offset(log, asked) for asked in expected}, log_name
        log.close()


def fetch(log: Log, offset: int, max_bytes: int, isolation: int) -> list[Any]:
    """
    What a fetch of one partition answers.
    """
    try:
        info = log.read(
            offset,
            max_bytes,
            FetchIsolation.TXN_COMMITTED if isolation else FetchIsolation.HIGH_WATERMARK,
            True,
        )
    except OffsetOutOfRange as error:
        return [offset, max_bytes, isolation, error.code, -1, -1, None, 0, None, 0]
    data = b"" if info.records is None else bytes(info.records.read())
    aborted = info.aborted_transactions
    return [
        offset,
        max_bytes,
        isolation,
        0,
        log.high_watermark,
        log.last_stable_offset,
        None if aborted is None else [list(transaction) for transaction in aborted],
        len(data),
        int.from_bytes(data[:8]) if data else None,
        crc32c(data),
    ]


@pytest.mark.parametrize("name", ["segments", "compaction", "transactions-tv2"])
def test_fetched_bytes_equal_those_that_kafka_returned(
    golden: Path, tmp_path: Path, name: str
) -> None:
    directory = KafkaDirectory(golden / name, "data", tmp_path)
    answers: dict[str, Any] = json.loads((golden / name / "fetch.json").read_text())
    compared = 0

    for log_name, table in answers.items():
        log = directory.open(log_name)
        for row in some(table["rows"]):
            if row[3] != NOT_LEADER_OR_FOLLOWER:
                assert row == fetch(log, *row[:3]), log_name
                compared += 1
        log.close()

    assert compared > 100


@pytest.mark.parametrize("name", STOPPED)
def test_opening_and_closing_a_log_of_kafka_only_removes_leftovers(
    golden: Path, tmp_path: Path, name: str
) -> None:
    directory = KafkaDirectory(golden / name, "data", tmp_path)

    for log_name in some(directory.logs()):
        path = directory.path / log_name
        before = contents(path)
        directory.open(log_name).close()
        kept = {name: content for name, content in before.items() if not is_left(name, before)}
        assert kept == contents(path), log_name


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def is_left(name: str, names: Collection[str]) -> bool:
    """
    Whether a start removes the file: it is of unfinished work, or a snapshot that was written at a
    stop, and another stop has written one since.
    """
    if name.endswith((".deleted", ".cleaned")):
        return True
    if not name.endswith(".snapshot") or name.replace("snapshot", "log") in names:
        return False
    return name != max(other for other in names if other.endswith(".snapshot"))
