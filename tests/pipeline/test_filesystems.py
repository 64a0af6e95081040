"""
Log directories in other file systems than the local one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.pipeline.logs.filesystems import locate
from barnabas.pipeline.reading.plan import plan
from barnabas.pipeline.rows import parse_options, read, schema
from tests.support.log_directory import WrittenDirectory, append, some_records
from tests.support.logs import end_transaction
from tests.support.scanned import plain_rows, scanned_rows

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")


@pytest.fixture
def written(tmp_path: Path) -> WrittenDirectory:
    """
    A directory with transactions, several segments and a checkpoint.
    """
    directory = WrittenDirectory(tmp_path)
    log = directory.log(segment_bytes=1000, index_interval_bytes=100)
    for start in range(0, 60, 5):
        append(log, some_records(5, start=start))
    batch = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    append(log, some_records(5), **batch)
    end_transaction(log, 1, commit=False)
    directory.stop()
    return directory


@pytest.fixture
def bucket(written: WrittenDirectory) -> Any:
    """
    The URL of a copy in fsspec's memory, and its file system.
    """
    memory = fsspec.filesystem("memory")
    memory.put(str(written.path), "/bucket", recursive=True)
    yield memory
    memory.rm("/bucket", recursive=True)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"isolationLevel": "read_committed"},
        {"level": "batches"},
        {"startingOffsets": '{"events": {"0": 33}}', "bytesPerTask": "200"},
        {"startingTimestamp": "1"},
    ],
)
def test_any_file_system_of_fsspec_can_be_read(
    written: WrittenDirectory, bucket: Any, options: dict[str, str]
) -> None:
    """
    The rows are those of the local directory.
    """
    local = scanned_rows(written.path, **options)

    assert local
    assert local == scanned_rows("memory://bucket", **options)
    assert local == scanned_rows("memory://bucket/events-0", **options)


def test_a_file_url_is_a_path(written: WrittenDirectory) -> None:
    """
    As Spark users write them.
    """
    assert scanned_rows(written.path) == scanned_rows(f"file://{written.path}")


def test_what_is_not_there_is_named(bucket: Any) -> None:
    """
    Directories, and segments that are deleted meanwhile.
    """
    with pytest.raises(FileNotFoundError, match="There is no directory memory://nowhere"):
        scanned_rows("memory://nowhere")
    options = parse_options({"path": "memory://bucket", "failOnDataLoss": "false"})
    works = plan(options)
    for name in bucket.glob("/bucket/events-0/00000000000000000000.*"):
        bucket.rm(name)
    rows = [row for work in works for row in plain_rows(read(work, schema(options).names, options))]
    assert list(range(20, 65)) == [row[4] for row in rows]


def test_nothing_is_ever_written(bucket: Any) -> None:
    """
    Whatever would change a file is refused.
    """
    files, path = locate("memory://bucket")

    with pytest.raises(OSError, match="is only read"):
        files.open(path / "new")
    with pytest.raises(OSError, match="is only read"):
        files.remove(path / "meta.properties")
