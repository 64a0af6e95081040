"""
Compacting in this process; test_command.py does it with Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from barnabas.pipeline.errors import CorruptBatch, InvalidOption, OldFormat, UnknownTopic
from barnabas.pipeline.jobs.archive.job import archive
from barnabas.pipeline.jobs.archive.table import ArchiveError
from barnabas.pipeline.jobs.compact import latest
from barnabas.pipeline.jobs.compact.job import Compacted, compact
from barnabas.pipeline.jobs.compact.latest import LatestOffsets, only
from barnabas.pipeline.jobs.compact.planning import CompactionPlan
from barnabas.pipeline.jobs.compact.snapshots import CompactedPartition, CompactError, Snapshots
from barnabas.pipeline.jobs.compact.sources import LogSource
from barnabas.pipeline.jobs.output import InUse
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.fs.disk import DiskFiles
from tests.pipeline.archive.archived import fill
from tests.pipeline.compact.compacted import PARTITIONS, compacted_rows, latest_rows, random_logs
from tests.support.cleaning import clean
from tests.support.clock import StillClock
from tests.support.log_directory import WrittenDirectory, append, some_records
from tests.support.logs import end_transaction
from tests.support.random_logs import RandomLog
from tests.support.scanned import scanned_rows
from tests.support.segments import FIRST_TIMESTAMP

BIG_INDEX = {"segment.index.bytes": "10000"}
"""One that a segment of any size in these tests has room in."""


def run(logs: Path, to: Path, **more: Any) -> Compacted:
    return compact(None, str(logs), to, more.pop("options", None), **more)


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "compacted"


@pytest.fixture
def directory(tmp_path: Path) -> WrittenDirectory:
    directory = WrittenDirectory(tmp_path / "logs")
    log = directory.log(segment_bytes=800)
    for start in range(0, 100, 10):
        append(log, keyed(range(start, start + 10)))
    directory.checkpoint()
    return directory


def keyed(numbers: range) -> list[SimpleRecord]:
    return [
        SimpleRecord(FIRST_TIMESTAMP + at, b"%d" % (at % 4), b"%d" % at if at % 4 else None)
        for at in numbers
    ]


@pytest.mark.parametrize("keep_tombstones", [False, True])
def test_latest_record_of_each_key_is_retained(
    tmp_path: Path, to: Path, monkeypatch: pytest.MonkeyPatch, keep_tombstones: bool
) -> None:
    monkeypatch.setattr(latest, "_MERGE_ROWS", 7)
    logs = random_logs(tmp_path / "logs")

    done = run(logs, to, keep_tombstones=keep_tombstones)

    expected = latest_rows(logs, keep_tombstones=keep_tombstones)
    assert expected == compacted_rows(to)
    rows = scanned_rows(logs, isolationLevel="read_committed")
    assert len(rows) == sum(each.records_read for each in done.partitions)
    no_key = sum(row[0] is None for row in rows)
    assert no_key == sum(each.without_key for each in done.partitions) > 0
    nulls = sum(row[1] is None for row in latest_rows(logs, keep_tombstones=True))
    assert nulls == sum(each.tombstones for each in done.partitions) > 0
    assert len(expected) == sum(each.records for each in done.partitions)


@pytest.mark.parametrize("seed", range(6))
def test_compaction_retains_the_same_records_as_the_cleaner(
    tmp_path: Path, to: Path, seed: int
) -> None:
    clock = StillClock(FIRST_TIMESTAMP + 1_000_000)
    path = tmp_path / "logs" / "events-0"
    random_log = RandomLog(seed, path, DiskFiles(), clock)
    random_log.configs |= BIG_INDEX
    random_log.write(60)

    run(path.parent, to)

    log = random_log.open("compact")
    log.roll()
    clean(log, clock)
    log.flush(force_flush_active_segment=True)
    log.close()
    rows = scanned_rows(path.parent, isolationLevel="read_committed")
    assert len({row[0] for row in rows}) == len(rows)
    assert [row for row in rows if row[1] is not None] == compacted_rows(to)


def test_merging_runs_of_keys_keeps_the_last_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latest, "_MERGE_ROWS", 10)
    chance = np.random.default_rng(1)
    numbers = chance.integers(0, 40, 1000)
    offsets = LatestOffsets()
    for start in range(0, 1000, 7):
        some = numbers[start : start + 7]
        keys = [None if number == 39 else b"%d" % number for number in some]
        places = np.arange(start, start + len(some))
        offsets.note(pa.record_batch({"key": pa.array(keys, pa.binary()), "offset": places}))

    expected = {int(number): at for at, number in enumerate(numbers) if number != 39}
    assert sorted(expected.values()) == offsets.sorted().tolist()
    assert (1000, int((numbers == 39).sum())) == (offsets.records, offsets.without_key)
    rows = pa.record_batch({"offset": np.arange(1000)})
    assert 0 == only(rows, np.empty(0, np.int64)).num_rows


def test_uncommitted_records_are_not_compacted(directory: WrittenDirectory, to: Path) -> None:
    log = directory.events
    transactional: dict[str, Any] = {"producer_epoch": 0, "is_transactional": True}
    append(log, keyed(range(100, 110)), producer_id=7, base_sequence=0, **transactional)
    end_transaction(log, 7, commit=False)
    append(log, keyed(range(200, 204)))
    append(log, keyed(range(300, 302)), producer_id=8, base_sequence=0, **transactional)
    append(log, keyed(range(400, 410)))
    directory.stop()

    run(directory.path, to)
    assert [b"201", b"202", b"203"] == [row[1] for row in compacted_rows(to)]

    directory.checkpoint(events=90)
    run(directory.path, to)
    assert [b"86", b"87", b"89"] == [row[1] for row in compacted_rows(to)]


def test_snapshot_is_replaced_only_if_the_log_has_grown(
    directory: WrittenDirectory, to: Path
) -> None:
    told: list[CompactedPartition] = []
    first = run(directory.path, to, done=told.append)
    assert first.partitions == told

    again = run(directory.path, to)
    assert ([], 0) == (again.partitions, again.removed)
    assert again.plans[0].done == told[0]

    append(directory.events, some_records(5))
    directory.stop()
    second = run(directory.path, to)

    assert (1, 1) == (len(second.partitions), second.removed)
    assert latest_rows(directory.path) == compacted_rows(to)
    assert 1 == len(list(to.rglob("*.parquet")))
    kept = run(directory.path, to, keep_tombstones=True)
    assert 1 == kept.partitions[0].tombstones
    assert latest_rows(directory.path, keep_tombstones=True) == compacted_rows(to)


def test_other_partitions_are_left_alone(tmp_path: Path, to: Path) -> None:
    logs = random_logs(tmp_path / "logs")
    run(logs, to)

    done = run(logs, to, options={"assign": '{"events": [1]}'}, keep_tombstones=True)

    assert ["events-1"] == [str(each.topic_partition) for each in done.partitions]
    kept = {
        each.topic_partition: each.keeps_tombstones
        for topic in Snapshots(to).topics.values()
        for each in topic
    }
    assert {place: place == ("events", 1) for place in PARTITIONS} == kept


def test_empty_topic_has_a_snapshot_without_rows(tmp_path: Path, to: Path) -> None:
    directory = WrittenDirectory(tmp_path / "logs")
    directory.log("empty")
    append(directory.log("gone"), [SimpleRecord(FIRST_TIMESTAMP, b"k", None)])
    directory.stop()

    run(directory.path, to)

    topics = Snapshots(to).topics
    assert {"empty", "gone"} == set(topics)
    assert [None, None] == [each.file for topic in topics.values() for each in topic]
    assert [] == run(directory.path, to).partitions


# Of an archive.


def test_compacted_archive_equals_the_compacted_log(
    directory: WrittenDirectory, tmp_path: Path, to: Path
) -> None:
    fill(directory.log("other", segment_bytes=800), 200)
    for log in directory.logs.values():
        log.roll()
    directory.stop()
    archived = tmp_path / "archive"
    archive(None, str(directory.path), archived, bytes_per_file=2000)

    done = run(archived, to, from_archive=True)
    run(archived, to / "events", from_archive=True, options={"subscribe": "events"})

    rows = latest_rows(directory.path)
    assert rows == compacted_rows(to)
    assert [row for row in rows if row[2] == "events"] == compacted_rows(to / "events")
    assert {str(archived)} == {each.source for each in done.partitions}
    assert [] == run(archived, to, from_archive=True).partitions


def test_unsuitable_archive_is_refused(
    directory: WrittenDirectory, tmp_path: Path, to: Path
) -> None:
    directory.stop()
    options = {"isolationLevel": "read_uncommitted"}
    archive(None, str(directory.path), tmp_path / "all", options)
    with pytest.raises(CompactError, match=r"json: events-0 was archived with .*read_uncommitted"):
        run(tmp_path / "all", to, from_archive=True)

    archived = tmp_path / "archive"
    archive(None, str(directory.path), archived)
    for option, sentence in (("subscribe", "no other"), ("subscribePattern", "no such topic")):
        with pytest.raises(UnknownTopic, match=f"{sentence}. There is events."):
            run(archived, to, from_archive=True, options={option: "other"})
    (file,) = archived.rglob("*.parquet")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(ArchiveError, match=f"{file}, the file of offsets 0 to .* not as it was"):
        run(archived, to, from_archive=True)
    assert {} == Snapshots(to).topics


# What is refused.


@pytest.mark.parametrize(("byte", "kind"), [(70, CorruptBatch), (16, OldFormat)])
def test_corrupt_batch_ends_the_run_and_keeps_the_snapshot(
    directory: WrittenDirectory, to: Path, byte: int, kind: type[CorruptBatch]
) -> None:
    directory.stop()
    run(directory.path, to)
    before = compacted_rows(to)
    file = sorted((directory.path / "events-0").glob("*.log"))[1]
    data = bytearray(file.read_bytes())
    data[byte] ^= 3
    file.write_bytes(data)

    with pytest.raises(kind) as caught:
        run(directory.path, to, keep_tombstones=True)

    assert (str(file), 0, int(file.stem)) == caught.value.args[:3]
    assert before == compacted_rows(to)
    assert [] == Snapshots(to).leftovers()


def test_records_deleted_during_a_run_are_an_error(
    directory: WrittenDirectory, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Records are deleted between the read of the keys and the read of the records.
    """
    directory.stop()
    read = LogSource.batches

    def lossy(self: LogSource, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        for batch in read(self, columns):
            yield batch if "value" not in columns else batch.slice(0, batch.num_rows - 1)

    monkeypatch.setattr(LogSource, "batches", lossy)

    with pytest.raises(CompactError, match="events-0: a broker took away 1 records while"):
        run(directory.path, to)
    assert {} == Snapshots(to).topics
    assert [] == list(to.rglob("*.parquet*"))


def test_damaged_snapshot_is_reported(directory: WrittenDirectory, to: Path) -> None:
    directory.stop()
    run(directory.path, to)
    (file,) = to.rglob("*.parquet")
    snapshot = to / "_snapshots" / "events.json"

    file.write_bytes(b"x")
    with pytest.raises(CompactError, match=f"{file} has 1 bytes, and {snapshot} says"):
        run(directory.path, to)
    file.unlink()
    with pytest.raises(CompactError, match=f"{file} is gone, which {snapshot} names"):
        run(directory.path, to)
    for text in ("{", "[{}]", "1"):
        snapshot.write_text(text)
        with pytest.raises(CompactError, match=f"{snapshot} does not say what was compacted"):
            run(directory.path, to)


def test_invalid_arguments_are_refused(directory: WrittenDirectory, to: Path) -> None:
    directory.stop()

    with pytest.raises(InvalidOption, match="and not isolationLevel"):
        run(directory.path, to, options={"isolationLevel": "read_uncommitted"})
    with pytest.raises(InvalidOption, match="and not readUpTo"):
        run(directory.path, to, options={"readUpTo": "logEnd"}, from_archive=True)
    with pytest.raises(UnknownTopic, match="has no other"):
        run(directory.path, to, options={"subscribe": "other"})
    with pytest.raises(FileNotFoundError, match="There is no directory"):
        run(directory.path / "elsewhere", to)
    assert [] == list(to.rglob("*.parquet"))


def test_second_simultaneous_run_is_refused(directory: WrittenDirectory, to: Path) -> None:
    directory.stop()
    with Snapshots(to).locked(), pytest.raises(InUse, match="Another run is writing to"):
        run(directory.path, to)


def test_plan_is_reported_before_anything_is_written(directory: WrittenDirectory, to: Path) -> None:
    directory.stop()
    told: list[CompactionPlan] = []

    def started(plans: list[CompactionPlan]) -> None:
        told.extend(plans)
        assert [] == list(to.rglob("*.parquet*"))

    run(directory.path, to, started=started)

    assert [(0, 100)] == [(plan.offsets.start, plan.offsets.end) for plan in told]
