from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.pipeline.jobs.compact.reading import read_compacted
from barnabas.pipeline.jobs.compact.snapshots import CompactError
from barnabas.server.cli import main
from tests.pipeline.compact.compacted import compacted_rows, latest_rows, random_logs
from tests.pipeline.topics import seen_in, seen_row

pytestmark = [pytest.mark.spark, pytest.mark.prove]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_logs(tmp_path_factory.mktemp("logs"))


def command(*arguments: object) -> int:
    return main(["spark", "compact", *map(str, arguments)])


def test_dry_run_prints_what_would_be_compacted_without_spark(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "to"

    assert 0 == command("events", "--data-dir", logs, "--to", to, "--dry-run")
    out, said = capsys.readouterr()
    assert "" == out
    assert f" of 2 partitions in {to}, on local[*]: reads them twice" in said
    assert "keys whose latest value is null do not stay" in said
    assert "  events-0: offsets 0 to " in said
    assert not to.exists()


def test_path_without_compacted_topics_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(CompactError, match=f"There are no compacted topics in {tmp_path}"):
        read_compacted(spark, tmp_path)


def test_url_is_not_accepted_as_a_directory(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert 2 == command("--data-dir", logs, "--to", "s3://bucket/to", "--dry-run")
    assert "barnabas: s3://bucket/to is a URL: name a local path" in capsys.readouterr().err
    assert 2 == command("--from", "hdfs://host/archive", "--to", "to", "--dry-run")
    assert "barnabas: hdfs://host/archive cannot have an archive in" in capsys.readouterr().err
    assert 1 == command("--from", tmp_path / "nowhere", "--to", "to", "--dry-run")
    assert f"There is no archive in {tmp_path}/nowhere" in capsys.readouterr().err
    assert [] == list(tmp_path.iterdir())


def test_compact_command_writes_what_spark_reads(
    spark: SparkSession, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "to"
    arguments = ("--data-dir", logs, "--to", to)

    assert 0 == command(*arguments)
    out, _ = capsys.readouterr()
    expected = latest_rows(logs)
    assert f" records to {len(expected)}, " in out
    assert " had no key and did not stay.\n" in out
    assert expected == compacted_rows(to)
    (to / "compacted" / "topic=events" / "partition=0" / "left.parquet").write_bytes(b"")
    rows = read_compacted(spark, to)
    assert {("123", 0), ("events", 0), ("events", 1)} == {
        tuple(row) for row in rows.select("topic", "partition").distinct().collect()
    }
    events = rows.where("topic = 'events'")
    assert [seen_row(row) for row in expected if row[2] == "events"] == seen_in(events)

    assert 0 == command(*arguments, "--dry-run")
    said = capsys.readouterr().err
    assert "  events-0: nothing; offsets 0 to " in said
    assert "left.parquet is of no use any more, and goes." in said
    assert 0 == command(*arguments)
    assert "Compacted 0 records to 0, 0 bytes, in " in capsys.readouterr().out


@pytest.mark.usefixtures("spark")
def test_archive_is_compacted_with_the_from_option(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive, to = tmp_path / "archive", tmp_path / "to"
    assert 0 == main(["spark", "archive", "--data-dir", str(logs), "--to", str(archive)])

    assert 0 == command("123", "events-1", "--from", archive, "--to", to, "--keep-tombstones")

    capsys.readouterr()
    assert {("123", 0), ("events", 1)} == {row[2:4] for row in compacted_rows(to)}
    assert any(row[1] is None for row in compacted_rows(to))
    assert 1 == command("orders", "--from", archive, "--to", to)
    assert f"barnabas: {archive} has no orders. There is 123, events." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argument", "status", "sentence"),
    [
        ("event", 1, "did you mean events?"),
        ("--option=mode=DROPMALFORMED", 2, "and not mode"),
        ("--option=mode", 2, "it must look like NAME=VALUE"),
        ("--data-dir=nowhere", 1, "nowhere"),
    ],
)
def test_invalid_compact_arguments_are_refused_in_one_line(
    logs: Path, capsys: pytest.CaptureFixture[str], argument: str, status: int, sentence: str
) -> None:
    where = () if argument.startswith("--data-dir") else ("--data-dir", logs)

    assert status == command(argument, *where, "--to", logs / "to", "--dry-run")
    said = capsys.readouterr().err
    assert sentence in said
    assert 1 == said.count("\n")


def test_corrupt_batch_fails_the_command_without_a_traceback(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = random_logs(tmp_path / "logs", appends=20)
    file = sorted((logs / "events-0").glob("*.log"))[0]
    data = bytearray(file.read_bytes())
    data[70] ^= 1
    file.write_bytes(data)
    to = tmp_path / "to"

    assert 1 == command("events", "--data-dir", logs, "--to", to)
    said = capsys.readouterr().err.splitlines()
    assert f"barnabas: {file}: at byte 0 (offset 0): " in said[-1]
    assert 0 == read_compacted(spark, to).count()
