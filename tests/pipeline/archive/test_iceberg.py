from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.jobs.archive.job import Archived, archive
from barnabas.pipeline.jobs.archive.opening import open_table
from barnabas.pipeline.jobs.archive.table import ArchiveError, ArchiveTable
from barnabas.pipeline.jobs.output import InUse
from tests.pipeline.archive.archived import EVENTS, SEGMENT_BYTES, closed_rows, fill, written_logs
from tests.pipeline.archive.engines import iceberg_rows
from tests.pipeline.archive.kinds import TABLE
from tests.support.log_directory import WrittenDirectory

pyiceberg = pytest.importorskip("pyiceberg", reason="pyiceberg is not installed")


@pytest.fixture
def properties(tmp_path: Path) -> dict[str, str]:
    return {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}/warehouse",
    }


def opened(properties: dict[str, str], name: str = TABLE) -> ArchiveTable:
    return open_table(name, "iceberg", catalog="lake", catalog_properties=properties)


def loaded(properties: dict[str, str]) -> Any:
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415  # not all have it

    return load_catalog("lake", **properties).load_table(TABLE)


def run(logs: Path, properties: dict[str, str], **more: Any) -> Archived:
    more.setdefault("bytes_per_file", 5_000)
    return archive(None, str(logs), opened(properties), **more)


def test_iceberg_run_continues_at_the_offset_in_the_properties(
    directory: WrittenDirectory, properties: dict[str, str]
) -> None:
    first = run(directory.path, properties)
    fill(directory.events, 200)
    directory.stop()

    second = run(directory.path, properties)

    assert first.commits[-1].end_offset == second.commits[0].start_offset
    assert closed_rows(directory.path) == iceberg_rows(TABLE, properties)
    state = json.loads(loaded(properties).properties["barnabas.archived.events-0"])
    assert (0, second.commits[-1].end_offset) == (state["start_offset"], state["end_offset"])
    snapshots = loaded(properties).snapshots()
    assert [commit.name for commit in (*first.commits, *second.commits)] == [
        snapshot.summary["barnabas.events-0"] for snapshot in snapshots
    ]


def test_second_run_adding_the_same_range_is_refused(
    directory: WrittenDirectory, properties: dict[str, str]
) -> None:
    """
    The other run planned before the first one committed, or between two of its commits.
    """
    done = run(directory.path, properties)
    fill(directory.events, 200)
    directory.stop()
    one, other, third = (opened(properties) for _ in range(3))
    commits = run(directory.path, {**properties}).commits
    assert commits[0].start_offset == done.commits[-1].end_offset

    for table in (one, other, third):
        with pytest.raises(InUse, match=r"Another run has added to events-0 in lake\.records"):
            table.add(commits[0])
    assert closed_rows(directory.path) == iceberg_rows(TABLE, properties)


def test_one_of_two_simultaneous_first_runs_is_refused(
    tmp_path: Path, directory: WrittenDirectory, properties: dict[str, str]
) -> None:
    opened(properties).prepare([])
    one, other = opened(properties), opened(properties)
    commits = run(directory.path, properties).commits

    for table in (one, other):
        with pytest.raises(InUse, match="Another run has added to events-0"):
            table.add(commits[0])
    assert closed_rows(directory.path) == iceberg_rows(TABLE, properties)


def test_commit_of_another_writer_does_not_conflict(
    directory: WrittenDirectory, properties: dict[str, str]
) -> None:
    """
    The commit is based on the snapshot of the other writer.
    """
    first = run(directory.path, properties)
    fill(directory.events, 200)
    directory.stop()
    there = opened(properties)

    def started(_: object) -> None:
        loaded(properties).delete("offset = 0")

    archive(None, str(directory.path), there, bytes_per_file=5_000, started=started)

    expected = [row for row in closed_rows(directory.path) if row[4] != 0]
    assert first.records < len(expected)
    assert expected == iceberg_rows(TABLE, properties)


def test_readers_skip_files_by_partition_offset_and_timestamp(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    run(written_logs(tmp_path / "logs").path, properties)

    table = loaded(properties)
    all_files = list(table.scan().plan_files())
    for expression in ("topic = 'events' and partition = 1", "offset < 20", "offset > 150"):
        some_files = list(table.scan(row_filter=expression).plan_files())
        assert 0 < len(some_files) < len(all_files)
    bounds = {5, 6} | {3, 4}
    assert all(set(task.file.lower_bounds) == bounds for task in all_files)


def test_small_files_are_merged_and_earlier_snapshots_kept(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    directory = WrittenDirectory(tmp_path / "logs")
    fill(directory.log(segment_bytes=SEGMENT_BYTES), 200)
    fill(directory.log("users", segment_bytes=SEGMENT_BYTES), 100)
    directory.checkpoint()
    first = run(directory.path, properties)

    merged = opened(properties).merge_small_files(1 << 20)

    assert (len(first.commits), 2) == merged
    table = loaded(properties)
    assert 2 == len(list(table.scan().plan_files()))
    earlier = table.scan(snapshot_id=table.snapshots()[-2].snapshot_id)
    assert len(first.commits) == len(list(earlier.plan_files()))
    assert first.records == len(earlier.to_arrow())
    assert closed_rows(directory.path) == iceberg_rows(TABLE, properties)
    archived = opened(properties).archived(EVENTS)
    assert archived is not None
    (last,) = table.scan(row_filter="topic = 'events'").plan_files()
    assert last.file.file_path == archived.last_file
    fill(directory.events, 200)
    directory.stop()
    run(directory.path, properties)
    assert closed_rows(directory.path) == iceberg_rows(TABLE, properties)
    assert (0, 0) == opened(properties).merge_small_files(1)


def test_other_iceberg_table_is_not_an_archive(
    directory: WrittenDirectory, properties: dict[str, str]
) -> None:
    run(directory.path, properties)
    with loaded(properties).transaction() as transaction:
        transaction.set_properties({"commit.retry.num-retries": "4"})
    with pytest.raises(ArchiveError, match="two runs at once could add a range twice"):
        opened(properties)
    with loaded(properties).update_spec() as update:
        update.remove_field("partition")
    with pytest.raises(ArchiveError, match=r"lake\.records in catalog lake is no archive"):
        opened(properties)


def test_table_with_delete_files_is_not_read_file_by_file(
    directory: WrittenDirectory, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Other writers may add files that delete rows.
    """
    from pyiceberg.table import DataScan  # noqa: PLC0415  # not all have it

    run(directory.path, properties)
    assert opened(properties).files_of(EVENTS)
    real = DataScan.plan_files

    def plan_files(scan: Any) -> list[Any]:
        tasks = list(real(scan))
        tasks[0].delete_files.add(tasks[0].file)
        return tasks

    monkeypatch.setattr(DataScan, "plan_files", plan_files)

    with pytest.raises(ArchiveError, match=r"\.parquet has deleted rows, or no bounds of its"):
        opened(properties).files_of(EVENTS)


@pytest.mark.parametrize("name", ["records", "/tmp/archive", "s3://bucket/archive", "lake."])
def test_invalid_table_name_is_refused(name: str, properties: dict[str, str]) -> None:
    with pytest.raises(InvalidOption, match="has a name like"):
        opened(properties, name)


def test_unconfigured_catalog_is_refused() -> None:
    with pytest.raises(InvalidOption, match="The catalog lake cannot be opened: URI missing"):
        open_table(TABLE, "iceberg", catalog="lake")
