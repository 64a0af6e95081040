from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from traceback import format_exception
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.jobs.archive.commit import range_name
from barnabas.pipeline.jobs.archive.commit_store import StoreError
from barnabas.pipeline.jobs.archive.commits import Archive
from barnabas.pipeline.jobs.archive.job import archive
from barnabas.pipeline.jobs.archive.opening import open_table, storage_options
from barnabas.pipeline.jobs.archive.reading import read_archive
from barnabas.pipeline.jobs.archive.store import DataStore
from barnabas.pipeline.jobs.archive.table import ArchiveError, ArchiveTable
from barnabas.pipeline.jobs.compact.job import compact
from barnabas.pipeline.jobs.compact.reading import read_compacted
from barnabas.pipeline.jobs.output import InUse
from barnabas.pipeline.jobs.parquet_files import COLUMNS, SCHEMA, Checksum, checksum
from tests.pipeline.archive.archived import (
    EVENTS,
    SEGMENT_BYTES,
    archive_in_two_runs,
    archived_rows,
    closed_rows,
    fill,
    written_logs,
)
from tests.pipeline.archive.engines import delta_rows, iceberg_rows, rows_of
from tests.pipeline.killed_at import TABLE, catalog_properties
from tests.support.log_directory import WrittenDirectory
from tests.support.s3_server import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.prove]

pytest.importorskip("deltalake", reason="deltalake is not installed")
pytest.importorskip("pyiceberg", reason="pyiceberg is not installed")
obstore = pytest.importorskip("obstore", reason="obstore is not installed")
pytest.importorskip("moto", reason="moto is not installed")

AlreadyExistsError = obstore.exceptions.AlreadyExistsError


def some_batches(batches: int) -> Iterator[pa.RecordBatch]:
    for number in range(batches):
        yield pa.RecordBatch.from_pylist(
            [{"offset": number, "timestamp": number, "value": bytes(1 << 20)}], SCHEMA
        )


def test_s3_file_appears_only_when_complete(s3: S3Server, tmp_path: Path) -> None:
    def torn() -> Iterator[pa.RecordBatch]:
        yield from some_batches(40)
        raise OSError("the log is gone")

    store = DataStore(s3.url("files"), "data", COLUMNS, storage_options(s3.storage))
    with pytest.raises(OSError, match="the log is gone"):
        store.write(EVENTS, "torn.parquet", torn())
    # pyarrow keeps the directory of a file that it removes.
    assert ["files/data/topic=events/partition=0/"] == s3.keys("files/")

    assert store.write(EVENTS, "none.parquet", some_batches(0)) is None
    written = store.write(EVENTS, "whole.parquet", some_batches(40))

    assert "files/data/topic=events/partition=0/whole.parquet" == s3.keys("files/")[-1]
    assert written is not None
    body = s3.client.get_object(Bucket="lake", Key=s3.keys("files/")[-1])["Body"].read()
    (tmp_path / "copy").write_bytes(body)
    assert written.checksum == checksum(tmp_path / "copy") != Checksum(0, 0)
    with store.open(written.path) as file:
        assert 40 == file.metadata.num_rows


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg"])
def test_workers_archive_from_s3_to_s3(
    spark: SparkSession,
    s3: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    format: str,
) -> None:
    for name in s3.storage:
        monkeypatch.delenv(name, raising=False)
    logs = written_logs(tmp_path / "logs").path
    s3.put_directory(logs, f"{format}-logs")
    storage = storage_options(s3.storage)
    url = s3.url(f"{format}-table", "s3" if format == "iceberg" else "s3a")
    properties = catalog_properties(url, str(tmp_path / "catalog.db"))

    def opened() -> ArchiveTable:
        if format != "iceberg":
            return open_table(url, format, storage=storage)
        return open_table(
            TABLE, format, catalog="lake", catalog_properties=properties, storage=storage
        )

    archive_in_two_runs(spark, s3.url(f"{format}-logs", "s3a"), opened)

    if format == "parquet":
        found = archived_rows(Archive(url, storage=storage))
    elif format == "delta":
        found = delta_rows(url, {**s3.storage, "AWS_ALLOW_HTTP": "true"})
    else:
        found = iceberg_rows(TABLE, properties, storage.for_iceberg())
    assert closed_rows(logs) == found
    assert closed_rows(logs) == rows_of(read_archive(spark, opened()).toArrow())
    assert [] == archive(None, s3.url(f"{format}-logs"), opened()).commits


def parquet(s3: S3Server, path: str) -> Archive:
    return Archive(s3.url(path), storage=storage_options(s3.storage))


def test_lost_response_to_a_commit_is_tolerated(s3: S3Server, tmp_path: Path) -> None:
    """
    The client repeats a request whose response was lost, and the store reports that the object
    exists.
    """
    logs = written_logs(tmp_path / "logs").path
    done = archive(None, str(logs), parquet(s3, "late"), bytes_per_file=5_000)

    parquet(s3, "late").add(done.commits[0])

    assert closed_rows(logs) == archived_rows(parquet(s3, "late"))


def test_commit_in_progress_by_another_run_is_refused(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    S3 answers 409 although there is no object yet.
    """
    logs = written_logs(tmp_path / "logs").path
    done = archive(None, str(logs), parquet(s3, "making"), bytes_per_file=5_000)

    def put(*_: Any, **__: Any) -> Any:
        raise AlreadyExistsError("409 Conflict")

    monkeypatch.setattr(obstore, "put", put)
    with pytest.raises(InUse, match="Another run has added to "):
        parquet(s3, "made").add(done.commits[0])


def test_one_of_two_simultaneous_runs_is_refused(s3: S3Server, tmp_path: Path) -> None:
    """
    The ranges of the two runs end at different offsets, and the other run is complete.
    """
    logs = written_logs(tmp_path / "logs").path
    both_have_planned = threading.Barrier(2, timeout=60)

    def wait(_: object) -> None:
        both_have_planned.wait()

    def run(bytes_per_file: int) -> str:
        try:
            archive(
                None,
                str(logs),
                parquet(s3, "both"),
                bytes_per_file=bytes_per_file,
                started=wait,
            )
        except InUse:
            return "refused"
        return "done"

    with ThreadPoolExecutor(2) as pool:
        assert ["done", "refused"] == sorted(pool.map(run, (1_000, 5_000)))
    assert closed_rows(logs) == archived_rows(parquet(s3, "both"))


def test_leftover_files_are_removed_once_no_run_can_need_them(s3: S3Server, tmp_path: Path) -> None:
    """
    Files with archived offsets are removed. Files behind the end may belong to another run.
    """
    logs = written_logs(tmp_path / "logs").path
    there = parquet(s3, "left")
    done = archive(None, str(logs), there, bytes_per_file=5_000)
    last = next(each for each in reversed(done.commits) if each.topic_partition == EVENTS)
    directory = "left/data/topic=events/partition=0"
    behind, before = (
        f"{range_name(OffsetRange(start, start + 5))}-{'0' * 32}.parquet"
        for start in (last.end_offset, last.end_offset - 1)
    )
    for name in (behind, before):
        s3.client.put_object(Bucket="lake", Key=f"{directory}/{name}", Body=b"of a killed run")

    there.refresh()
    assert [s3.url(f"{directory}/{before}")] == there.leftovers()
    assert 1 == archive(None, str(logs), there).removed

    assert f"{directory}/{behind}" in s3.keys("left/data")
    assert f"{directory}/{before}" not in s3.keys("left/data")
    assert closed_rows(logs) == archived_rows(parquet(s3, "left"))


def test_archive_copied_between_disk_and_object_store_can_be_continued(
    s3: S3Server, tmp_path: Path
) -> None:
    directory = WrittenDirectory(tmp_path / "logs")
    log = directory.log(segment_bytes=SEGMENT_BYTES)

    def grown() -> str:
        fill(log, 100)
        directory.checkpoint()
        return str(directory.path)

    archive(None, grown(), tmp_path / "archive", bytes_per_file=2_000)
    s3.put_directory(tmp_path / "archive", "copied")
    assert archive(None, grown(), parquet(s3, "copied")).commits
    assert closed_rows(directory.path) == archived_rows(parquet(s3, "copied"))

    for key in s3.keys("copied/"):
        file = tmp_path / "back" / key
        file.parent.mkdir(parents=True, exist_ok=True)
        s3.client.download_file("lake", key, str(file))
    assert archive(None, grown(), tmp_path / "back" / "copied").commits
    assert closed_rows(directory.path) == archived_rows(tmp_path / "back" / "copied")
    directory.stop()


def test_store_that_overwrites_objects_is_refused(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Without conditional writes, two runs could add a range twice.
    """
    logs = written_logs(tmp_path / "logs").path
    real = obstore.put

    def put(store: Any, path: str, data: bytes, **more: Any) -> Any:
        return real(store, path, data, **{**more, "mode": "overwrite"})

    monkeypatch.setattr(obstore, "put", put)

    with pytest.raises(InvalidOption, match=r"its store makes an object .* although there is one"):
        archive(None, str(logs), parquet(s3, "replaced"))
    assert ["replaced/_commits/archive.json"] == s3.keys("replaced")


def test_object_store_error_is_one_line_without_secrets(s3: S3Server, tmp_path: Path) -> None:
    logs = written_logs(tmp_path / "logs").path
    there = Archive("s3://nowhere/archive", storage=storage_options(s3.storage))

    with pytest.raises(StoreError, match=r"^s3://nowhere/archive cannot be written: ") as raised:
        archive(None, str(logs), there)
    assert "\n" not in str(raised.value)
    assert s3.storage["AWS_SECRET_ACCESS_KEY"] not in "".join(format_exception(raised.value))


def test_archive_on_s3_is_compacted_and_read_by_its_url(
    spark: SparkSession, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.storage.items():
        monkeypatch.setenv(name, value)
    logs = written_logs(tmp_path / "logs").path
    url = s3.url("read")
    archive(None, str(logs), url, bytes_per_file=5_000)
    archive(None, str(logs), tmp_path / "archive", bytes_per_file=5_000)

    s3.count()
    rows = read_archive(spark, url, {"assign": '{"events": [1]}'})
    expected = [row for row in closed_rows(logs) if row[2:4] == ("events", 1)]
    assert expected == rows_of(rows.toArrow())
    assert not [each for each in s3.requests if "partition=0/" in each.path]
    compact(None, url, tmp_path / "of-url", from_archive=True)
    compact(None, str(tmp_path / "archive"), tmp_path / "of-path", from_archive=True)
    found = [
        rows_of(read_compacted(spark, tmp_path / name).toArrow()) for name in ("of-url", "of-path")
    ]
    assert found[0] == found[1] != []
    with pytest.raises(ArchiveError, match="There is no archive in s3://lake/nothing"):
        read_archive(spark, s3.url("nothing"))
    with pytest.raises(InvalidOption, match=r"Reading an archive takes subscribe, .* not mode"):
        read_archive(spark, url, {"mode": "FAILFAST"})
