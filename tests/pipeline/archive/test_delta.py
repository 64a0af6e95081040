"""
Archives as Delta tables.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.pipeline.decoding.decode import Offsets
from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.jobs.archive.job import Archived, archive
from barnabas.pipeline.jobs.archive.opening import open_table
from barnabas.pipeline.jobs.archive.table import ArchiveError, ArchiveTable
from barnabas.pipeline.jobs.output import InUse
from barnabas.pipeline.options import IsolationLevel
from barnabas.storage.state_files.file_names import TopicPartition
from tests.pipeline.archive.archived import SEGMENT_BYTES, closed_rows, fill, written_logs
from tests.pipeline.archive.engines import delta_rows
from tests.support.log_directory import WrittenDirectory, append, some_records
from tests.support.logs import end_transaction

deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")

EVENTS = TopicPartition("events", 0)


def run(logs: Path, to: Path | ArchiveTable, **more: Any) -> Archived:
    more.setdefault("bytes_per_file", 5_000)
    table = to if isinstance(to, ArchiveTable) else open_table(to, "delta")
    return archive(None, str(logs), table, **more)


@pytest.fixture
def to(tmp_path: Path) -> Path:
    """
    Where the archive will be.
    """
    return tmp_path / "archive"


def log_of(to: Path) -> list[dict[str, Any]]:
    """
    All actions of a table's log.
    """
    return [
        json.loads(line)
        for path in sorted((to / "_delta_log").glob("*.json"))
        for line in path.read_text().splitlines()
    ]


def test_delta_table_has_the_rows_of_closed_segments(tmp_path: Path, to: Path) -> None:
    """
    One version of the table for each range; a second run has nothing to do.
    """
    logs = written_logs(tmp_path / "logs").path

    done = run(logs, to)

    assert closed_rows(logs) == delta_rows(to)
    assert len(done.commits) == deltalake.DeltaTable(str(to)).version()
    again = run(logs, to)
    assert [] == again.commits
    assert [plan.offsets.end for plan in done.plans] == [
        plan.archived.end for plan in again.plans if plan.archived is not None
    ]
    assert [Offsets(0, plan.offsets.end) for plan in done.plans] == [
        plan.archived for plan in again.plans
    ]


def test_delta_run_continues_at_the_transaction_identifier(
    directory: WrittenDirectory, to: Path
) -> None:
    first = run(directory.path, to)
    fill(directory.events, 200)
    directory.stop()

    second = run(directory.path, to)

    assert first.commits[-1].end_offset == second.commits[0].start_offset
    assert closed_rows(directory.path) == delta_rows(to)
    identifiers = [action["txn"] for action in log_of(to) if "txn" in action]
    ends = [commit.end_offset for commit in (*first.commits, *second.commits)]
    assert [("barnabas/events-0/read_committed", end) for end in ends] == [
        (each["appId"], each["version"]) for each in identifiers
    ]


def test_second_run_adding_the_same_range_is_refused(directory: WrittenDirectory, to: Path) -> None:
    """
    Whether it had planned before the first one added it, or between two of its commits.
    """
    directory.stop()
    commits = run(directory.path, to / "first").commits
    run(directory.path, to, options={"assign": '{"events": []}'})
    one, other, third = (open_table(to, "delta") for _ in range(3))
    for table in (one, other, third):
        table.archived(EVENTS)

    one.add(commits[0])

    with pytest.raises(InUse, match=r"Another run has added to events-0 in .* at offset 0\."):
        other.add(commits[0])
    one.add(commits[1])
    with pytest.raises(InUse, match="Another run has added to events-0"):
        third.add(commits[0])
    with pytest.raises(InUse, match="Another run has added to events-0"):
        one.add(commits[1])


def test_runs_on_other_partitions_do_not_conflict(tmp_path: Path, to: Path) -> None:
    """
    Two runs that take turns, as they do on an object store, which has no lock.
    """
    commits = run(written_logs(tmp_path / "logs").path, to / "first").commits
    open_table(to, "delta").prepare([])
    one, other = open_table(to, "delta"), open_table(to, "delta")

    for commit in commits:
        (one if commit.topic_partition == EVENTS else other).add(commit)

    table = open_table(to, "delta")
    for commit in commits:
        archived = table.archived(commit.topic_partition)
        assert archived is not None
        assert archived.offsets.end >= commit.end_offset


def test_run_sees_commits_made_since_it_opened_the_table(tmp_path: Path, to: Path) -> None:
    """
    So it neither removes files of another run nor adds what is there.
    """
    logs = written_logs(tmp_path / "logs").path
    table = open_table(to, "delta")
    run(logs, to, options={"assign": '{"events": [0]}'})

    run(logs, table)

    assert closed_rows(logs) == delta_rows(to)


def test_readers_skip_files_by_partition_offset_and_timestamp(tmp_path: Path, to: Path) -> None:
    """
    Topic and partition are partition columns; offset and timestamp have bounds that are exact.
    """
    run(written_logs(tmp_path / "logs").path, to)

    table = deltalake.DeltaTable(str(to))
    assert ["topic", "partition"] == table.metadata().partition_columns
    rows = delta_rows(to)
    for action in log_of(to):
        if "add" not in action:
            continue
        values = action["add"]["partitionValues"]
        stats = json.loads(action["add"]["stats"])
        low, high = stats["minValues"], stats["maxValues"]
        inside = [
            row
            for row in rows
            if (row[2], str(row[3])) == (values["topic"], values["partition"])
            and low["offset"] <= row[4] <= high["offset"]
        ]
        assert stats["numRecords"] == len(inside)
        assert (inside[0][4], inside[-1][4]) == (low["offset"], high["offset"])
    only = table.to_pyarrow_table(filters=[("topic", "=", "events"), ("partition", "=", 1)])
    assert len(only) == len([row for row in rows if row[2:4] == ("events", 1)])


def test_delta_compaction_between_two_runs_changes_no_row(
    directory: WrittenDirectory, to: Path
) -> None:
    """
    And is no reason to refuse the next run, which checks the last record where it is now.
    """
    first = run(directory.path, to)
    assert 3 < len(first.commits)
    merged = open_table(to, "delta").merge_small_files(1 << 20)
    assert (len(first.commits), 1) == merged
    assert 1 == len(deltalake.DeltaTable(str(to)).file_uris())
    fill(directory.events, 200)
    directory.stop()

    run(directory.path, to)

    assert closed_rows(directory.path) == delta_rows(to)
    earlier = deltalake.DeltaTable(str(to), version=len(first.commits))
    assert first.records == len(earlier.to_pyarrow_table())


def test_parquet_archive_files_are_not_merged(to: Path) -> None:
    with pytest.raises(InvalidOption, match="only those of Delta and Iceberg tables"):
        open_table(to).merge_small_files(1)


def test_range_without_records_advances_the_transaction_identifier(
    tmp_path: Path, to: Path
) -> None:
    directory = WrittenDirectory(tmp_path / "logs")
    log = directory.log()
    transaction = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    append(log, some_records(5), is_transactional=True, **transaction)
    end_transaction(log, 7, commit=False)
    log.roll()
    fill(log, 10)
    directory.stop()

    run(directory.path, to)

    archived = open_table(to, "delta").archived(EVENTS)
    assert archived is not None
    assert (6, IsolationLevel.READ_COMMITTED.value) == (
        archived.offsets.end,
        archived.isolation_level,
    )
    assert [] == delta_rows(to)
    assert [] == run(directory.path, to).commits


def test_leftover_files_of_killed_runs_are_removed_and_earlier_versions_kept(
    directory: WrittenDirectory, to: Path
) -> None:
    done = run(directory.path, to)
    deltalake.DeltaTable(str(to)).optimize.compact()
    files = sorted((to / "topic=events" / "partition=0").iterdir())
    end = done.commits[-1].end_offset
    left = files[0].with_name(f"{end:020d}-{end + 5:020d}-{'0' * 32}.parquet")
    left.write_bytes(b"of a run that was killed")

    assert 1 == run(directory.path, to).removed
    assert files == sorted((to / "topic=events" / "partition=0").iterdir())


def test_log_other_than_the_archived_one_is_refused(
    tmp_path: Path, directory: WrittenDirectory, to: Path
) -> None:
    """
    As in Parquet: shorter, with other records, read at another level.
    """
    run(directory.path, to)
    shorter, other = WrittenDirectory(tmp_path / "short"), WrittenDirectory(tmp_path / "other")
    fill(shorter.log(segment_bytes=SEGMENT_BYTES), 20)
    for start in range(0, 300, 10):
        log = other.log(segment_bytes=SEGMENT_BYTES) if start == 0 else other.events
        append(log, some_records(10, start=start, size=21))
    shorter.stop()
    other.stop()

    with pytest.raises(ArchiveError, match=r"ends at offset 20, and version \d+ of .*archive says"):
        run(shorter.path, to)
    with pytest.raises(ArchiveError, match=r"other/events-0 have different records at offset"):
        run(other.path, to)
    with pytest.raises(ArchiveError, match="was archived with isolationLevel=read_committed"):
        run(directory.path, to, options={"isolationLevel": "read_uncommitted"})


def test_other_delta_table_is_not_an_archive(directory: WrittenDirectory, to: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415

    deltalake.DeltaTable.create(str(to), pa.schema([("a", pa.int32())]))

    with pytest.raises(ArchiveError, match="is a Delta table, and no archive of records"):
        run(directory.path, to)


def test_delta_table_with_a_damaged_log_is_refused(directory: WrittenDirectory, to: Path) -> None:
    run(directory.path, to)
    (to / "_delta_log" / f"{0:020d}.json").write_text("{")

    with pytest.raises(ArchiveError, match=f"{to} cannot be read: "):
        run(directory.path, to)


def test_table_with_deletion_vectors_is_not_read_file_by_file(
    directory: WrittenDirectory, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Others may mark rows of a file as deleted.
    """
    run(directory.path, to)
    protocol = SimpleNamespace(reader_features=["deletionVectors", "timestampNtz"])
    monkeypatch.setattr(deltalake.DeltaTable, "protocol", lambda _: protocol)

    with pytest.raises(ArchiveError, match=f"{to} has deletionVectors: its files alone do not"):
        open_table(to, "delta").files_of(EVENTS)


@pytest.mark.parametrize(
    ("to", "format", "sentence"),
    [
        ("hdfs://host/archive", "delta", "cannot have a Delta table: URLs begin with s3, s3a"),
        ("nosuch://host/archive", "delta", "cannot have a Delta table"),
        ("archive", "orc", "There is no format orc; there are parquet, delta, iceberg"),
        ("archive", "iceberg", "name it with --catalog"),
        ("hdfs://host/archive", "parquet", "cannot have an archive in Parquet: each commit is"),
    ],
)
def test_unsupported_format_options_are_refused(to: str, format: str, sentence: str) -> None:
    with pytest.raises(InvalidOption, match=sentence):
        open_table(to, format)
