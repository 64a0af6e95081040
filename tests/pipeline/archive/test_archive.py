"""
Archiving closed segments in this process; test_command.py and test_killed.py do it with Spark.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet as pq

from barnabas.pipeline.errors import CorruptBatch, InvalidOption, OldFormat, UnknownTopic
from barnabas.pipeline.jobs.archive.commit import ArchiveCommit
from barnabas.pipeline.jobs.archive.commits import Archive
from barnabas.pipeline.jobs.archive.job import Archived, archive
from barnabas.pipeline.jobs.archive.table import ArchiveError
from barnabas.pipeline.jobs.output import InUse
from barnabas.storage.topic_partition import TopicPartition
from tests.pipeline.archive.archived import (
    EVENTS,
    archived_rows,
    closed_rows,
    fill,
    transaction,
    written_logs,
)
from tests.support.log_directory import WrittenDirectory
from tests.support.some import some


def run(logs: Path, to: Path, **more: Any) -> Archived:
    more.setdefault("bytes_per_file", 5_000)
    return archive(None, str(logs), to, more.pop("options", None), **more)


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def test_second_run_archives_only_what_was_closed_meanwhile(
    directory: WrittenDirectory, to: Path
) -> None:
    first = run(directory.path, to)
    fill(directory.events, 200)
    directory.stop()

    second = run(directory.path, to)

    assert second.commits[0].start_offset == first.commits[-1].end_offset
    assert closed_rows(directory.path) == archived_rows(to)
    assert [*first.commits, *second.commits] == Archive(to).commits_of(EVENTS)


def test_commit_describes_its_file_correctly(directory: WrittenDirectory, to: Path) -> None:
    directory.stop()

    run(directory.path, to)

    for commit in some(Archive(to).commits_of(EVENTS)):
        assert commit.file is not None
        with pq.ParquetFile(to / commit.file) as file:
            rows = file.read().to_pydict()
        offsets = rows["offset"]
        assert commit.records == len(offsets)
        assert commit.start_offset <= offsets[0] < offsets[-1] < commit.end_offset
        times = [int(time.timestamp() * 1000) for time in rows["timestamp"]]
        assert [commit.min_timestamp_ms, commit.max_timestamp_ms] == [min(times), max(times)]


def test_small_segments_share_a_file_and_a_large_one_is_split(
    directory: WrittenDirectory, to: Path
) -> None:
    """
    The split is at a batch that the index knows.
    """
    directory.stop()
    segments = len(list((directory.path / "events-0").glob("*.log")))

    done = run(directory.path, to, bytes_per_file=100 << 20)

    assert 1 == len(done.commits)
    assert 4 < segments == done.plans[0].segments + 1
    assert closed_rows(directory.path) == archived_rows(to)

    large = WrittenDirectory(to / "large")
    log = large.log(index_interval_bytes=100)
    fill(log, 500)
    log.roll()
    fill(log, 10)
    large.stop()
    done = run(large.path, to / "cut")
    assert 3 == len(done.commits)
    assert closed_rows(large.path) == archived_rows(to / "cut")


def test_segment_is_archived_once_the_high_watermark_has_passed_its_end(
    directory: WrittenDirectory, to: Path
) -> None:
    ends = sorted(int(file.stem) for file in (directory.path / "events-0").glob("*.log"))
    directory.checkpoint(events=ends[2] + 1)

    run(directory.path, to)

    assert ends[2] == Archive(to).commits_of(EVENTS)[-1].end_offset


def test_aborted_records_are_not_archived_unless_requested(
    directory: WrittenDirectory, to: Path
) -> None:
    """
    An archive keeps the isolation level of its first run.
    """
    log = directory.events
    transaction(log, 0, commit=False)
    transaction(log, 5, commit=True)
    fill(log, 100)
    directory.stop()

    run(directory.path, to)
    run(directory.path, to / "all", options={"isolationLevel": "read_uncommitted"})

    assert closed_rows(directory.path) == archived_rows(to)
    uncommitted = closed_rows(directory.path, isolationLevel="read_uncommitted")
    assert uncommitted == archived_rows(to / "all")
    assert 5 == len(uncommitted) - len(archived_rows(to))
    with pytest.raises(ArchiveError, match=r"\.json: .*was archived with isolationLevel=read_unc"):
        run(directory.path, to / "all")


# What is refused.


def test_offsets_deleted_before_they_were_archived_are_an_error(
    directory: WrittenDirectory, to: Path
) -> None:
    """
    The archive would have a gap.
    """
    run(directory.path, to)
    fill(directory.events, 200)
    directory.stop()
    end = Archive(to).commits_of(EVENTS)[-1].end_offset
    start = end + 15
    directory.checkpoint("log-start-offset-checkpoint", events=start)

    with pytest.raises(ArchiveError) as caught:
        run(directory.path, to)
    assert f"Offsets {end} to {start - 1} of events-0 were deleted" in str(caught.value)
    assert str(directory.path / "events-0") in str(caught.value)


def test_missing_segment_is_an_error_unless_compacted_or_allowed(
    directory: WrittenDirectory, to: Path
) -> None:
    directory.stop()
    log = directory.path / "events-0"
    first, second, third = sorted(log.glob("*.log"))[:3]
    second.unlink()

    with pytest.raises(ArchiveError) as caught:
        run(directory.path, to)
    last = int(third.stem) - 1
    assert f"Offsets {int(second.stem)} to {last} of events-0 are missing before {third}" in str(
        caught.value
    )
    assert {} == Archive(to).commits
    assert first.exists()

    directory.checkpoint("cleaner-offset-checkpoint", events=last + 1)
    run(directory.path, to / "compacted")
    (directory.path / "cleaner-offset-checkpoint").unlink()
    run(directory.path, to / "allowed", allow_gaps=True)
    expected = closed_rows(directory.path)
    assert expected == archived_rows(to / "compacted") == archived_rows(to / "allowed")


@pytest.mark.parametrize(("byte", "kind"), [(70, CorruptBatch), (16, OldFormat)])
def test_corrupt_batch_is_refused_with_its_position(
    directory: WrittenDirectory, to: Path, byte: int, kind: type[CorruptBatch]
) -> None:
    directory.stop()
    file = sorted((directory.path / "events-0").glob("*.log"))[4]
    data = bytearray(file.read_bytes())
    data[byte] = 1 if byte == 16 else data[byte] ^ 1
    file.write_bytes(data)

    with pytest.raises(kind, match=rf"{file}: at byte 0 \(offset {int(file.stem)}\)"):
        run(directory.path, to, bytes_per_file=1, allow_gaps=True)
    ends = [commit.end_offset for commit in Archive(to).commits_of(EVENTS)]
    assert int(file.stem) == max(ends, default=0) or not ends
    assert [] == Archive(to).leftovers()


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ("gap", "the archive has a gap there"),
        ("overlap", "the archive has an overlap there"),
        ("name", "which is not what it is called after"),
        ("torn", "is no commit"),
        ("file", "is gone, the file of offsets"),
        ("short", "bytes and was written with"),
    ],
)
def test_incomplete_archive_is_neither_read_nor_written(
    directory: WrittenDirectory, to: Path, damage: str, sentence: str
) -> None:
    run(directory.path, to)
    there = Archive(to)
    _, second, third = there.commits_of(EVENTS)[:3]
    path = there.commit_path(second)
    named = path
    assert second.file is not None
    if damage == "gap":
        path.unlink()
        named = there.commit_path(third)
    elif damage == "overlap":
        values = json.loads(path.read_text())
        values["start_offset"] -= 1
        path.unlink()
        named = there.commit_path(ArchiveCommit(**values))
        named.write_text(json.dumps(values))
    elif damage == "name":
        path.rename(path.with_name("0-5.json"))
        named = path.with_name("0-5.json")
    elif damage == "torn":
        path.write_bytes(path.read_bytes()[:20])
    else:
        named = to / second.file
        named.write_bytes(named.read_bytes()[:-1]) if damage == "short" else named.unlink()

    for attempt in (lambda: run(directory.path, to), lambda: archived_rows(to)):
        with pytest.raises(ArchiveError) as caught:
            attempt()
        assert sentence in str(caught.value)
        assert str(named) in str(caught.value)


def test_only_one_run_writes_at_a_time(directory: WrittenDirectory, to: Path) -> None:
    with Archive(to).locked(), pytest.raises(InUse, match="Another run is writing to"):
        run(directory.path, to)
    run(directory.path, to)


def test_commits_of_a_partition_are_read_without_those_of_others(tmp_path: Path, to: Path) -> None:
    """
    A worker with one of a thousand partitions reads the commits of that partition only.
    """
    run(written_logs(tmp_path / "logs").path, to)
    (to / "_commits" / "123-0" / "0-1.json").write_text("{}")

    assert Archive(to).commits_of(EVENTS)
    assert TopicPartition("123", 0) in Archive(to).partitions
    with pytest.raises(ArchiveError, match=r"0-1\.json is no commit"):
        _ = Archive(to).commits


@pytest.mark.parametrize(
    ("to", "sentence"),
    [
        ("hdfs://host/archive", "hdfs://host/archive cannot have an archive in Parquet: each"),
        ("memory://archive", "memory://archive cannot have an archive in Parquet: each commit is"),
        ("s3://bucket/a?region=b", r"s3://bucket/a\?region=b cannot have an archive in Parquet"),
        (Path("gs://bucket/archive"), "gs:/bucket/archive cannot be read: URLs begin like gs://"),
    ],
)
def test_file_system_without_atomic_commits_is_refused(
    directory: WrittenDirectory,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    to: str | Path,
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    there = sorted(tmp_path.iterdir())

    with pytest.raises(InvalidOption, match=sentence):
        archive(None, str(directory.path), to)
    assert there == sorted(tmp_path.iterdir())


def test_archive_may_be_given_as_a_file_url(directory: WrittenDirectory, to: Path) -> None:
    archive(None, directory.path.as_uri(), to.as_uri())

    assert closed_rows(directory.path) == archived_rows(to)


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"startingOffsets": "latest"}, InvalidOption, "and not startingOffsets"),
        ({"mode": "DROPMALFORMED"}, InvalidOption, "and not mode"),
        ({"subscribe": "nothing"}, UnknownTopic, "There is events."),
    ],
)
def test_invalid_arguments_are_refused(
    directory: WrittenDirectory,
    to: Path,
    options: dict[str, str],
    kind: type[Exception],
    sentence: str,
) -> None:
    with pytest.raises(kind, match=sentence):
        run(directory.path, to, options=options)


def test_directory_without_logs_is_named(tmp_path: Path, to: Path) -> None:
    with pytest.raises(FileNotFoundError, match=str(tmp_path / "nowhere")):
        run(tmp_path / "nowhere", to)
