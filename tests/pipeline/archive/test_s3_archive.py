"""
Archives on S3.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline.jobs.archive.commits import Archive
from barnabas.pipeline.jobs.archive.job import archive
from barnabas.pipeline.jobs.archive.opening import open_table, storage_options
from barnabas.pipeline.jobs.archive.reading import read_archive
from barnabas.pipeline.jobs.archive.store import DataStore
from barnabas.pipeline.jobs.archive.table import ArchiveTable
from barnabas.pipeline.jobs.output import InUse
from barnabas.pipeline.jobs.parquet_files import COLUMNS, SCHEMA, Checksum, checksum
from barnabas.storage.state_files.file_names import TopicPartition
from tests.pipeline.archive.archived import archived_rows, closed_rows, written_logs
from tests.pipeline.archive.engines import delta_rows, iceberg_rows, rows_of
from tests.pipeline.killed_at import TABLE, catalog_properties
from tests.support.s3_server import S3Server, s3_server

pytestmark = pytest.mark.spark

pytest.importorskip("deltalake", reason="deltalake is not installed")
pytest.importorskip("pyiceberg", reason="pyiceberg is not installed")
pytest.importorskip("obstore", reason="obstore is not installed")
pytest.importorskip("moto", reason="moto is not installed")

EVENTS = TopicPartition("events", 0)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


def some_batches(batches: int) -> Iterator[pa.RecordBatch]:
    for number in range(batches):
        yield pa.RecordBatch.from_pylist(
            [{"offset": number, "timestamp": number, "value": bytes(1 << 20)}], SCHEMA
        )


def test_a_file_is_there_when_it_is_whole(s3: S3Server, tmp_path: Path) -> None:
    """
    A reader that fails half way leaves nothing; the checksum is that of the file.
    """

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
    """
    With options that only the driver was given. Two runs at once: one of them is refused.
    """
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

    other = opened()
    other.prepare([])
    other.refresh()
    done = archive(spark, s3.url(f"{format}-logs", "s3a"), opened(), bytes_per_file=5_000)

    with pytest.raises(InUse, match=f"Another run has added to {done.commits[0].topic_partition}"):
        other.add(done.commits[0])
    if format == "parquet":
        found = archived_rows(Archive(url, storage=storage))
    elif format == "delta":
        found = delta_rows(url, {**s3.storage, "AWS_ALLOW_HTTP": "true"})
    else:
        found = iceberg_rows(TABLE, properties, storage.for_iceberg())
    assert closed_rows(logs) == found
    assert closed_rows(logs) == rows_of(read_archive(spark, opened()).toArrow())
    assert [] == archive(None, s3.url(f"{format}-logs"), opened()).commits
