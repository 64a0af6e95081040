from __future__ import annotations

import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline.errors import InvalidOption
from barnabas.pipeline.jobs.archive.commits import Archive
from barnabas.pipeline.jobs.archive.opening import open_table
from barnabas.pipeline.jobs.archive.reading import read_archive
from barnabas.pipeline.jobs.archive.table import ArchiveError
from barnabas.pipeline.jobs.compact.job import compact
from barnabas.server.cli import main
from barnabas.storage.clock import SystemClock
from barnabas.storage.topic_partition import TopicPartition
from tests.pipeline.archive.archived import archived_rows, closed_rows, written_logs
from tests.pipeline.archive.engines import delta_rows, iceberg_rows, rows_of
from tests.pipeline.compact.compacted import compacted_rows, latest_of
from tests.pipeline.killed_at import catalog_properties
from tests.pipeline.topics import seen_in, seen_row
from tests.support.log_directory import WrittenDirectory, append, some_records
from tests.support.spark_cluster import conf

pytestmark = [pytest.mark.spark, pytest.mark.prove]


def command(*arguments: object) -> int:
    return main(["spark", "archive", *map(str, arguments)])


def test_dry_run_prints_what_would_be_archived_without_spark(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "archive"
    closed = [row for row in closed_rows(logs) if row[2] == "events"]
    end = max(row[4] for row in closed if row[3] == 0)

    assert 0 == command("events", "--data-dir", logs, "--to", to, "--dry-run")
    out, said = capsys.readouterr()
    assert "" == out
    assert f"of 2 partitions in {to}, on local[*]: writes 2 files at most." in said
    assert f"  events-0: offsets 0 to {end}, " in said
    assert f" as 1 file; {199 - end} offsets not closed or not committed yet\n" in said
    assert not to.exists()


def test_archive_command_writes_what_spark_reads(
    spark: SparkSession, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "archive"
    arguments = ("--data-dir", logs, "--to", to, "--file-bytes", "1b")

    assert 0 == command(*arguments)
    out, _ = capsys.readouterr()
    expected = closed_rows(logs)
    assert out.startswith(f"Archived {len(expected)} records: ")
    assert expected == archived_rows(to)

    left = Archive(to).data_directory(next(iter(Archive(to).commits))) / "left.parquet"
    left.write_bytes(b"of a run that was killed")
    rows = read_archive(spark, to)
    assert [("123", 0), ("events", 0), ("events", 1)] == [
        tuple(row)
        for row in rows.select("topic", "partition").distinct().sort("topic", "partition").collect()
    ]
    events = rows.where("topic = 'events'")
    assert [seen_row(row) for row in expected if row[2] == "events"] == seen_in(events)

    assert 0 == command(*arguments, "--dry-run")
    said = capsys.readouterr().err
    assert "  events-0: nothing; 0 to " in said
    assert f"{left} was left by a run that was killed" in said
    assert 0 == command(*arguments)
    assert "Archived 0 records: 0 bytes as 0 files" in capsys.readouterr().out
    assert not left.exists()


def test_archive_command_writes_open_tables(
    spark: SparkSession, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("deltalake", reason="deltalake is not installed")
    pytest.importorskip("pyiceberg", reason="pyiceberg is not installed")
    assert spark.range(1).count()
    expected = closed_rows(logs)
    properties = catalog_properties(f"file://{tmp_path}/warehouse", f"{tmp_path}/catalog.db")
    in_catalog = ["--to", "lake.records", "--format", "iceberg", "--catalog", "lake"]
    for name, value in properties.items():
        in_catalog += ["--catalog-property", f"{name}={value}"]
    for to in (["--to", str(tmp_path / "delta"), "--format", "delta"], in_catalog):
        arguments = (*to, "--data-dir", logs, "--file-bytes", "5000b")
        assert 0 == command(*arguments)
        out, said = capsys.readouterr()
        assert out.startswith(f"Archived {len(expected)} records: ")
        assert f"of 3 partitions in {to[1]}" in said
        assert 0 == command(*arguments, "--merge-below", "1m")
        out, _ = capsys.readouterr()
        assert re.search(r"^Merged \d+ files into 3 files\.$", out, re.MULTILINE)
        assert 0 == command(*arguments, "--dry-run")
        assert 3 == capsys.readouterr().err.count(": nothing; 0 to ")
    assert expected == delta_rows(tmp_path / "delta")
    assert expected == iceberg_rows("lake.records", properties)
    opened = open_table("lake.records", "iceberg", catalog="lake", catalog_properties=properties)
    for there in (str(tmp_path / "delta"), opened):
        assert expected == rows_of(read_archive(spark, there).toArrow())
        compact(None, there, tmp_path / "compacted", from_archive=True)
        assert latest_of(expected) == compacted_rows(tmp_path / "compacted")


def test_empty_archive_has_its_columns_and_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    directory = WrittenDirectory(tmp_path / "logs")
    append(directory.log(), some_records(5))
    directory.stop()
    assert 0 == command("--data-dir", directory.path, "--to", tmp_path / "archive")

    rows = read_archive(spark, tmp_path / "archive")

    assert (0, "key") == (rows.count(), rows.columns[0])
    commits = tmp_path / "torn" / "_commits" / "events-0"
    commits.mkdir(parents=True)
    (commits / "0-1.json").write_text("{}")
    with pytest.raises(ArchiveError, match=r"0-1\.json is no commit"):
        read_archive(spark, tmp_path / "torn")


def test_path_without_an_archive_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere", (tmp_path / "nowhere").as_uri()):
        with pytest.raises(ArchiveError, match=f"There is no archive in .*{tmp_path.name}"):
            read_archive(spark, path)
    with pytest.raises(InvalidOption, match="hdfs://host/archive cannot have an archive in Parq"):
        read_archive(spark, "hdfs://host/archive")


def test_spark_setting_requires_a_value(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--data-dir", logs, "--to", tmp_path / "archive")

    assert 2 == command(*arguments, "--conf", "spark.executor.memory")

    said = capsys.readouterr().err
    assert "barnabas: --conf spark.executor.memory: it must look like NAME=VALUE\n" == said


def test_spark_settings_are_passed_to_the_session(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []

    def session(*asked: object) -> AbstractContextManager[None]:
        seen.extend(asked)
        return nullcontext()

    monkeypatch.setattr("barnabas.pipeline.spark.session.spark_session", session)
    arguments = ("--data-dir", logs, "--to", tmp_path / "archive", "--master", "spark://one:7077")
    settings = {"spark.executor.memory": "2g", "spark.executor.extraJavaOptions": "-Da=b"}

    assert 0 == command(*arguments, *conf(settings))

    assert ["spark://one:7077", "1g", settings] == seen


def test_archive_every_interval_includes_new_topics_and_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = WrittenDirectory(tmp_path / "logs")
    names = iter([("events", 1), ("users", 0)])

    def write(topic: str, partition: int) -> None:
        log = directory.log(topic, partition)
        append(log, some_records(5))
        log.roll()
        append(log, some_records(5))
        directory.checkpoint()

    class Clock(SystemClock):
        def wait(self, event: threading.Event, seconds: float) -> bool:
            assert 60 == seconds
            for name in names:
                write(*name)
                return False
            return True

    write("events", 0)
    monkeypatch.setattr("barnabas.storage.clock.SystemClock", Clock)
    monkeypatch.setattr(
        "barnabas.pipeline.spark.session.spark_session", lambda *_: nullcontext(None)
    )
    arguments = ("--data-dir", directory.path, "--every", 60)

    assert 0 == command(*arguments, "--to", tmp_path / "archive")
    assert 3 == capsys.readouterr().out.count("Archived 5 records")
    expected = {
        TopicPartition("events", 0),
        TopicPartition("events", 1),
        TopicPartition("users", 0),
    }
    assert expected == set(Archive(tmp_path / "archive").commits)


def test_deleted_topic_does_not_stop_archiving_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = WrittenDirectory(tmp_path / "logs")

    def write(topic: str) -> None:
        log = directory.logs.get(TopicPartition(topic, 0)) or directory.log(topic)
        append(log, some_records(5))
        log.roll()
        append(log, some_records(5))
        directory.checkpoint()

    def delete(*topics: str) -> None:
        for topic in topics:
            shutil.rmtree(directory.path / f"{topic}-0")

    steps: Iterator[Callable[[], None]] = iter(
        [lambda: delete("events"), lambda: write("users"), lambda: delete("users")]
    )

    class Clock(SystemClock):
        def wait(self, event: threading.Event, seconds: float) -> bool:
            for step in steps:
                step()
                return False
            return True

    monkeypatch.setattr("barnabas.storage.clock.SystemClock", Clock)
    monkeypatch.setattr(
        "barnabas.pipeline.spark.session.spark_session", lambda *_: nullcontext(None)
    )
    write("events")
    write("users")

    arguments = ("--data-dir", directory.path, "--to", tmp_path / "archive", "--every", 1)
    assert 0 == command("events", "users", *arguments)

    out, said = capsys.readouterr()
    counts = [line.split()[1] for line in out.splitlines()]
    assert ["10", "0", "10"] == counts
    assert "; the next run looks again" in said
    assert {("events", 5), ("users", 15)} == {
        (partition.topic, sum(commit.records for commit in commits))
        for partition, commits in Archive(tmp_path / "archive").commits.items()
    }


def test_object_store_without_atomic_commits_is_refused(
    logs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    for more in ([], ["--dry-run"]):
        assert 2 == command("--data-dir", logs, "--to", "hdfs://host/archive", *more)
        said = capsys.readouterr().err
        assert said.startswith("barnabas: hdfs://host/archive cannot have an archive in Parquet: ")
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("argument", "status", "sentence"),
    [
        ("event", 1, "did you mean events?"),
        ("--option=mode=DROPMALFORMED", 2, "and not mode"),
        ("--option=mode", 2, "it must look like NAME=VALUE"),
        ("--file-bytes=64 miles", 2, "--file-bytes is a size of at least 1, as in 64m"),
        ("--file-bytes=0", 2, "not '0'"),
        ("--merge-below=1m", 2, "--merge-below is for --format delta and iceberg"),
        ("--format=iceberg", 2, "name it with --catalog"),
        ("--catalog=lake", 2, "Only Iceberg tables are in a catalog"),
        ("--storage-option=region=eu", 2, "There is no storage option region; there are aws_"),
        ("--storage-option=region", 2, "--storage-option region: it must look like NAME=VALUE"),
    ],
)
def test_invalid_archive_arguments_are_refused_in_one_line(
    logs: Path, capsys: pytest.CaptureFixture[str], argument: str, status: int, sentence: str
) -> None:
    arguments = ("--data-dir", logs, "--to", logs / "archive", "--dry-run")

    assert status == command(argument, *arguments)
    said = capsys.readouterr().err
    assert sentence in said
    assert 1 == said.count("\n")


def test_corrupt_batch_fails_the_command_without_a_traceback(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = written_logs(tmp_path / "logs").path
    file = sorted((logs / "events-0").glob("*.log"))[1]
    data = bytearray(file.read_bytes())
    data[70] ^= 1
    file.write_bytes(data)
    to = tmp_path / "archive"

    assert 1 == command("--data-dir", logs, "--to", to, "--file-bytes", 1, "--allow-gaps")
    said = capsys.readouterr().err.splitlines()
    assert f"barnabas: {file}: at byte 0 (offset {int(file.stem)}): " in said[-1]
    assert 1 == spark.range(1).count()


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("deltalake", "delta", ["--to", "archive", "--format", "delta"]),
        (
            "pyiceberg",
            "iceberg",
            ["--to", "lake.records", "--format", "iceberg", "--catalog", "lake"],
        ),
        ("obstore", "objects", ["--to", "s3://lake/archive"]),
    ],
)
def test_format_whose_package_is_missing_is_reported_with_the_install_command(
    logs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    package: str,
    extra: str,
    arguments: list[str],
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    for name in ("iceberg", "iceberg_files", "delta"):
        monkeypatch.delitem(sys.modules, f"barnabas.pipeline.jobs.archive.{name}", raising=False)

    assert 1 == command(*arguments, "--data-dir", logs, "--dry-run")
    advice = f"barnabas: there is no {package} here: pip install 'barnabas[{extra}]'\n"
    assert advice == capsys.readouterr().err
