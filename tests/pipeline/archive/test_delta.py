from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.jobs.archive.job import Archived, archive
from barnabas.pipeline.jobs.archive.opening import open_table
from barnabas.pipeline.jobs.archive.table import ArchiveError, ArchiveTable
from barnabas.pipeline.jobs.output import InUse
from tests.pipeline.archive.archived import EVENTS, closed_rows, fill, written_logs
from tests.pipeline.archive.engines import delta_rows
from tests.support.log_directory import WrittenDirectory

deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")


def run(logs: Path, to: Path | ArchiveTable, **more: Any) -> Archived:
    more.setdefault("bytes_per_file", 5_000)
    table = to if isinstance(to, ArchiveTable) else open_table(to, "delta")
    return archive(None, str(logs), table, **more)


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def log_of(to: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted((to / "_delta_log").glob("*.json"))
        for line in path.read_text().splitlines()
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
    commits = [*first.commits, *second.commits]
    for name, numbers in (
        ("barnabas/events-0/read_committed", [each.end_offset for each in commits]),
        (
            "barnabas/events-0/read_committed/records",
            [1 + (each.last_offset or 0) for each in commits],
        ),
    ):
        assert numbers == [each["version"] for each in identifiers if each["appId"] == name]


def test_second_run_adding_the_same_range_is_refused(directory: WrittenDirectory, to: Path) -> None:
    """
    The other run planned before the first one committed, or between two of its commits.
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
    Two runs take turns, as on an object store, which has no lock.
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
    The next run checks the last record in the file that has it now.
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
    Other writers may mark rows of a file as deleted.
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
