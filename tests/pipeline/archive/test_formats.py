"""
Rules that hold for an archive of any format.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import pytest

from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.jobs.archive.commit import ArchiveCommit
from barnabas.pipeline.jobs.archive.table import ArchiveError
from barnabas.pipeline.options import IsolationLevel
from tests.pipeline.archive.archived import (
    EVENTS,
    SEGMENT_BYTES,
    closed_rows,
    fill,
    transaction,
    written_logs,
)
from tests.pipeline.archive.kinds import Kind
from tests.support.log_directory import WrittenDirectory, append, some_records

PACKAGES: Final = {"parquet": "pyarrow", "delta": "deltalake", "iceberg": "pyiceberg"}
NEWEST: Final = {
    "parquet": r".*\.json says",
    "delta": r"and version \d+ of .*archive says",
    "iceberg": r"and snapshot \d+ of lake\.records",
}
"""
How an error names the last commit.
"""


@pytest.fixture(params=PACKAGES)
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    pytest.importorskip(PACKAGES[request.param])
    return Kind(request.param, tmp_path / "archive")


def test_archive_has_the_records_of_closed_segments(kind: Kind, tmp_path: Path) -> None:
    logs = written_logs(tmp_path / "logs").path
    told: list[ArchiveCommit] = []

    done = kind.run(logs, committed=told.append)

    assert closed_rows(logs) == kind.rows()
    assert len(kind.rows()) == done.records > 400
    assert done.commits == told
    assert 3 * 2 <= len(told)
    if kind.format == "delta":
        assert len(told) == kind.delta().version()
    if kind.format == "iceberg":
        assert len(told) == len(kind.loaded().snapshots())
    again = kind.run(logs)
    assert [] == again.commits
    assert [OffsetRange(0, plan.offsets.end) for plan in done.plans] == [
        plan.archived for plan in again.plans
    ]


def test_range_without_records_is_archived_as_empty(kind: Kind, tmp_path: Path) -> None:
    directory = WrittenDirectory(tmp_path / "logs")
    log = directory.log()
    transaction(log, 0, commit=False)
    log.roll()
    fill(log, 10)
    directory.stop()

    (commit,) = kind.run(directory.path).commits

    assert (0, 6, 0) == (commit.start_offset, commit.end_offset, commit.records)
    assert commit.file is None
    archived = kind.open().archived(EVENTS)
    assert archived is not None
    assert (6, IsolationLevel.READ_COMMITTED.value) == (
        archived.offsets.end,
        archived.isolation_level,
    )
    assert [] == kind.rows()
    assert [] == kind.run(directory.path).commits


def test_log_other_than_the_archived_one_is_refused(
    kind: Kind, tmp_path: Path, directory: WrittenDirectory
) -> None:
    """
    A topic that was created again has other records, even if its log is longer.
    """
    kind.run(directory.path)
    shorter, other = WrittenDirectory(tmp_path / "short"), WrittenDirectory(tmp_path / "other")
    fill(shorter.log(segment_bytes=SEGMENT_BYTES), 20)
    log = other.log(segment_bytes=SEGMENT_BYTES)
    for start in range(0, 300, 10):
        append(log, some_records(10, start=start, size=21))
    shorter.stop()
    other.stop()
    files = kind.files()

    sentence = f"short/events-0 ends at offset 20, {NEWEST[kind.format]}"
    with pytest.raises(ArchiveError, match=sentence):
        kind.run(shorter.path)
    with pytest.raises(ArchiveError, match=r"other/events-0 have different records at offset"):
        kind.run(other.path)
    with pytest.raises(ArchiveError, match="was archived with isolationLevel=read_committed"):
        kind.run(directory.path, options={"isolationLevel": "read_uncommitted"})
    assert files == kind.files()


def test_leftover_files_of_killed_runs_are_removed_and_earlier_versions_kept(
    kind: Kind, directory: WrittenDirectory
) -> None:
    end = kind.run(directory.path).commits[-1].end_offset
    if kind.format == "delta":
        kind.delta().optimize.compact()
    files = kind.files()
    left = files[0].with_name(f"{end:020d}-{end + 5:020d}-{'0' * 32}.parquet")
    left.write_bytes(b"of a run that was killed")

    assert 1 == kind.run(directory.path).removed
    assert files == kind.files()


@pytest.fixture(params=["delta", "iceberg"])
def versioned(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    pytest.importorskip(PACKAGES[request.param])
    return Kind(request.param, tmp_path / "archive")


@pytest.mark.parametrize("seed", range(2))
def test_run_after_a_restore_archives_what_the_restored_version_lacks(
    versioned: Kind, directory: WrittenDirectory, seed: int
) -> None:
    """
    Some ranges have no records; versions are restored backwards and forwards, or lose their tail.
    """
    chance = random.Random(seed)
    log = directory.events
    for step in range(4):
        transaction(log, 5 * step, commit=chance.random() < 0.5)
        log.roll()
        fill(log, chance.choice((10, 30)))
        directory.checkpoint()
        versioned.run(directory.path)
        assert closed_rows(directory.path) == versioned.rows()
        for version in chance.sample(versioned.versions(), 2):
            versioned.restore(version)
        if chance.random() < 0.3:
            versioned.delete(f"offset >= {chance.randrange(log.log_end_offset)}")
    directory.stop()

    versioned.run(directory.path)

    assert closed_rows(directory.path) == versioned.rows()
    again = versioned.run(directory.path)
    assert ([], 0) == (again.commits, again.removed)


def test_run_continues_a_table_without_notes_behind_its_last_record(
    versioned: Kind, directory: WrittenDirectory
) -> None:
    versioned.run(directory.path)
    versioned.forget()
    fill(directory.events, 50)
    directory.stop()

    versioned.run(directory.path)

    assert closed_rows(directory.path) == versioned.rows()


def test_run_into_a_table_whose_files_have_no_statistics_is_refused(
    versioned: Kind, directory: WrittenDirectory
) -> None:
    """
    Another engine writes files without statistics, so their offsets are unknown.
    """
    versioned.run(directory.path)
    rows = versioned.drop_statistics()

    with pytest.raises(ArchiveError, match=r"no (statistics|bounds) of its offsets"):
        versioned.run(directory.path)
    assert rows == len(versioned.rows())


def test_deleted_table_is_archived_from_the_start_of_the_log(
    versioned: Kind, directory: WrittenDirectory
) -> None:
    first = versioned.run(directory.path)
    versioned.drop()

    assert first.records == versioned.run(directory.path).records
    versioned.delete("offset >= 0")
    assert first.records == versioned.run(directory.path).records
    assert first.records == len(versioned.rows())
