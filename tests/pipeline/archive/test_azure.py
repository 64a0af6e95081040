from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.jobs.archive.commit import range_name
from barnabas.pipeline.jobs.archive.commits import Archive
from barnabas.pipeline.jobs.archive.job import archive
from barnabas.pipeline.jobs.archive.opening import open_table, storage_options
from barnabas.pipeline.jobs.archive.reading import read_archive
from barnabas.pipeline.jobs.archive.store import DataStore
from barnabas.pipeline.jobs.archive.table import ArchiveTable
from barnabas.pipeline.jobs.parquet_files import COLUMNS, SCHEMA, checksum
from barnabas.pipeline.logs.filesystems import locate
from barnabas.pipeline.reading.plan import plan
from barnabas.pipeline.reading.reader import read
from barnabas.pipeline.rows import parse_options
from barnabas.pipeline.schemas import RECORDS
from barnabas.pipeline.spark.source import NAME, register
from barnabas.pipeline.storage import StorageOptions
from tests.pipeline.archive.archived import (
    EVENTS,
    archive_in_two_runs,
    archived_rows,
    closed_rows,
    written_logs,
)
from tests.pipeline.archive.engines import delta_rows, rows_of
from tests.support.azure_server import KEY, AzureServer, azure_server
from tests.support.scanned import plain_rows, scanned_rows

pytestmark = [pytest.mark.spark, pytest.mark.prove]

pytest.importorskip("deltalake", reason="deltalake is not installed")
obstore = pytest.importorskip("obstore", reason="obstore is not installed")


@pytest.fixture(scope="module")
def azure() -> Iterator[AzureServer]:
    with azure_server() as server:
        yield server


@pytest.fixture(autouse=True)
def _environment_says_nothing(azure: AzureServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in azure.storage:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("scheme", ["abfss", "abfs"])
@pytest.mark.parametrize("source", ["environment", "spark", "given"])
def test_logs_are_read_from_azure(
    azure: AzureServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, source: str
) -> None:
    logs = written_logs(tmp_path).path
    azure.put_directory(logs, "read")
    url = azure.url("read", scheme)
    if source == "environment":
        for name, value in azure.storage.items():
            monkeypatch.setenv(name, value)
        found = scanned_rows(url)
    else:
        hadoop = {f"spark.hadoop.{name}": value for name, value in azure.hadoop.items()}
        given = azure.hadoop if source == "given" else {}
        options = parse_options(
            {"path": url, "includeHeaders": "true", **given}, {} if given else hadoop
        )
        found = plain_rows(
            batch for work in plan(options) for batch in read(work, RECORDS.names, options)
        )

    assert found
    assert scanned_rows(logs) == found


def test_spark_reads_logs_on_azure(
    spark: SparkSession, azure: AzureServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    logs = written_logs(tmp_path).path
    azure.put_directory(logs, "of-spark")
    url = azure.url("of-spark")
    expected = sorted(scanned_rows(logs), key=lambda row: row[2:5])
    register(spark)

    frame = spark.read.format(NAME).options(includeHeaders="true", **azure.hadoop).load(url)
    assert expected == rows_of(frame.toArrow())
    frame.explain(extended=True)
    plan_of_spark = "".join(capfd.readouterr())
    assert "BatchScan barnabas" in plan_of_spark
    assert KEY not in plan_of_spark
    settings = {f"spark.hadoop.{name}": value for name, value in azure.hadoop.items()}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        register(spark)
        assert len(expected) == spark.read.format(NAME).load(url).count()
    finally:
        for name in settings:
            spark.conf.unset(name)
        register(spark)


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_workers_archive_from_azure_to_azure(
    spark: SparkSession, azure: AzureServer, tmp_path: Path, format: str
) -> None:
    logs = written_logs(tmp_path / "logs").path
    azure.put_directory(logs, f"{format}-logs")
    storage = storage_options(azure.storage)
    url = azure.url(f"{format}-table")

    def opened() -> ArchiveTable:
        return open_table(url, format, storage=storage)

    archive_in_two_runs(spark, azure.url(f"{format}-logs"), opened)

    if format == "parquet":
        found = archived_rows(Archive(url, storage=storage))
    else:
        found = delta_rows(url, {**azure.storage, "AZURE_ALLOW_HTTP": "true"})
    assert closed_rows(logs) == found
    assert closed_rows(logs) == rows_of(read_archive(spark, opened()).toArrow())
    assert [] == archive(None, azure.url(f"{format}-logs"), opened()).commits


def test_file_on_azure_is_never_half_written(azure: AzureServer, tmp_path: Path) -> None:
    def batches(count: int) -> Iterator[pa.RecordBatch]:
        for number in range(count):
            row = {"offset": number, "timestamp": number, "value": bytes(1 << 20)}
            yield pa.RecordBatch.from_pylist([row], SCHEMA)

    def torn() -> Iterator[pa.RecordBatch]:
        yield from batches(20)
        raise OSError("the log is gone")

    store = DataStore(azure.url("files"), "data", COLUMNS, storage_options(azure.storage))
    with pytest.raises(OSError, match="the log is gone"):
        store.write(EVENTS, "torn.parquet", torn())
    assert store.write(EVENTS, "none.parquet", batches(0)) is None
    assert [] == azure.files("files")

    written = store.write(EVENTS, "whole.parquet", batches(20))

    assert ["files/data/topic=events/partition=0/whole.parquet"] == azure.files("files")
    assert written is not None
    (tmp_path / "copy").write_bytes(azure.read(azure.files("files")[0]))
    assert written.checksum == checksum(tmp_path / "copy")
    with store.open(written.path) as file:
        assert 20 == file.metadata.num_rows


def test_leftover_files_of_killed_runs_are_removed_from_azure(
    azure: AzureServer, tmp_path: Path
) -> None:
    logs = written_logs(tmp_path / "logs").path
    there = Archive(azure.url("left"), storage=storage_options(azure.storage))
    done = archive(None, str(logs), there, bytes_per_file=5_000)
    last = next(each for each in reversed(done.commits) if each.topic_partition == EVENTS)
    name = f"{range_name(OffsetRange(last.end_offset - 1, last.end_offset))}-{'0' * 32}.parquet"
    killed = tmp_path / "killed" / "topic=events" / "partition=0" / name
    killed.parent.mkdir(parents=True)
    killed.write_bytes(b"")
    azure.put_directory(tmp_path / "killed", "left/data")
    assert name in "".join(azure.files("left/data"))

    assert 1 == archive(None, str(logs), there).removed
    assert name not in "".join(azure.files("left/data"))
    assert closed_rows(logs) == archived_rows(there)


def test_missing_container_is_named(azure: AzureServer) -> None:
    url = azure.url("logs").replace("lake@", "nowhere@")

    with pytest.raises(FileNotFoundError, match=f"There is no directory {url}"):
        scanned_rows(url, **azure.hadoop)


@pytest.mark.parametrize(
    "endpoint", ["https://barnabas.blob.core.windows.net", "http://127.0.0.1:1/other"]
)
def test_endpoint_of_another_account_is_refused_before_the_key_is_sent(
    azure: AzureServer, endpoint: str
) -> None:
    storage = StorageOptions.of({**azure.storage, "AZURE_STORAGE_ENDPOINT": endpoint})

    with pytest.raises(InvalidOption, match=f"{endpoint} is no endpoint for the account barnabas"):
        locate(azure.url("logs"), storage)
    with pytest.raises(InvalidOption, match=f"{endpoint} is no endpoint for the account barnabas"):
        Archive(azure.url("archive"), storage=storage)
