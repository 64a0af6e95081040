from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from barnabas.pipeline.errors import UnknownTopic
from barnabas.pipeline.jobs.archive.commits import Archive
from barnabas.pipeline.jobs.archive.job import archive
from barnabas.pipeline.jobs.archive.opening import open_table
from barnabas.pipeline.jobs.archive.table import ArchiveError, ArchiveTable
from barnabas.pipeline.jobs.replay import job, sending
from barnabas.pipeline.jobs.replay.job import replay
from barnabas.pipeline.jobs.replay.sending import ReplayError
from barnabas.pipeline.jobs.replay.watching import bytes_before
from barnabas.pipeline.rows import scan
from barnabas.pipeline.schemas import FAR_TIMESTAMP
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.cli import main
from barnabas.storage.topic_partition import TopicPartition
from tests.interop.clients.base import PATIENCE
from tests.interop.conftest import new_broker
from tests.pipeline.archive.archived import SEGMENT_BYTES, archived_rows, closed_rows, fill
from tests.pipeline.compact.compacted import compacted_rows, latest_of
from tests.pipeline.killed_at import TABLE, catalog_properties, run_module
from tests.support.broker_process import BrokerProcess
from tests.support.log_directory import WrittenDirectory, append
from tests.support.s3_server import SECRET, s3_server
from tests.support.scanned import plain_rows, scanned_rows
from tests.support.segments import FIRST_TIMESTAMP
from tests.support.some import some

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.prove]

KILLS = 10


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with new_broker(tmp_path_factory.mktemp("broker"), log__retention__ms="-1") as broker:
        yield broker


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archived")
    directory = WrittenDirectory(path / "logs")
    for number in range(2):
        fill(directory.log("events", number, segment_bytes=SEGMENT_BYTES), 150)
    directory.stop()
    archive(None, str(directory.path), path / "archive", bytes_per_file=1)
    return path / "archive"


def make(broker: BrokerProcess, name: str, partitions: int = 2, **config: str) -> None:
    options = {option.replace("_", "."): value for option, value in config.items()}
    new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=options)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.create_topics([new]).values():
        future.result(PATIENCE)


def send(archived: Path, broker: BrokerProcess, to: str, **more: Any) -> dict[TopicPartition, int]:
    return replay(
        None, archived, "events", broker.bootstrap, to=to, records_per_transaction=20, **more
    )


def content(rows: list[tuple[Any, ...]]) -> dict[int, list[tuple[Any, ...]]]:
    found: dict[int, list[tuple[Any, ...]]] = {}
    for key, value, _, partition, _, timestamp, kind, headers in rows:
        found.setdefault(partition, []).append((key, value, timestamp, kind, headers))
    return found


def replayed(broker: BrokerProcess, topic: str) -> dict[int, list[tuple[Any, ...]]]:
    rows = scanned_rows(
        broker.data, subscribe=topic, isolationLevel="read_committed", readUpTo="logEnd"
    )
    return content(rows)


def test_replay_progress_is_reported_in_bytes(archived: Path, broker: BrokerProcess) -> None:
    """
    All bytes of the log count in the end; bytes sent by an earlier run do not count again.
    """
    make(broker, "watched")
    told: list[int] = []

    send(archived, broker, "watched", advanced=told.append)
    commits = [each for every in Archive(archived).commits.values() for each in every]
    assert sum(commit.log_bytes for commit in commits) == sum(told)
    assert all(advance > 0 for advance in some(told))

    told.clear()
    send(archived, broker, "watched", advanced=told.append)
    assert [] == told


def test_replay_progress_reuses_clients(
    archived: Path, broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Each partition has one consumer for its sender and one for progress.
    """
    make(broker, "watched-cheaply")
    made: list[str] = []
    real = vars(sending)["Consumer"]

    def counted(config: dict[str, str]) -> Any:
        made.append(config["group.id"])
        return real(config)

    monkeypatch.setattr(sending, "Consumer", counted)

    send(archived, broker, "watched-cheaply", advanced=lambda _: None)

    assert [2, 2] == [made.count(group) for group in set(made)]


def test_bytes_before_an_offset_are_estimated_by_the_share_of_each_file(archived: Path) -> None:
    first, second, *_ = files = Archive(archived).files_of(TopicPartition("events", 0))
    middle = (second.offsets.start + second.offsets.end) // 2
    share = (middle - second.offsets.start) / second.offsets.count

    assert 0 == bytes_before(files, first.offsets.start)
    assert first.log_bytes == bytes_before(files, first.offsets.end)
    expected = first.log_bytes + second.log_bytes * share
    assert abs(expected - bytes_before(files, middle)) <= 1
    whole = sum(file.log_bytes for file in files)
    assert whole == bytes_before(files, files[-1].offsets.end + 10)


def test_replayed_topic_has_the_archived_records(archived: Path, broker: BrokerProcess) -> None:
    make(broker, "again")
    expected = content(archived_rows(archived))

    sent = send(archived, broker, "again")

    assert expected == replayed(broker, "again")
    assert {number: len(rows) for number, rows in expected.items()} == {
        partition.partition: count for partition, count in sent.items()
    }
    assert {0} == set(send(archived, broker, "again").values())
    assert expected == replayed(broker, "again")


def test_killed_replay_neither_loses_nor_duplicates_records(
    archived: Path, broker: BrokerProcess
) -> None:
    """
    The replay dies at ten calls of the client, before or after the call.
    """
    make(broker, "whole")
    whole = run_module("replay.replayer", archived, "events", broker.bootstrap, "whole", 0)
    assert 0 == whole.returncode, whole.stderr
    calls = int(whole.stdout)
    expected = content(archived_rows(archived))

    chance = random.Random(44)
    for kill, call in enumerate(chance.sample(range(1, calls + 1), KILLS)):
        # Some go on where another was killed.
        name = f"killed-{kill // 2}"
        if kill % 2 == 0:
            make(broker, name)
        last = call * chance.choice((1, -1))
        killed = run_module("replay.replayer", archived, "events", broker.bootstrap, name, last)
        if killed.returncode != -signal.SIGKILL:
            assert (0, 1) == (killed.returncode, kill % 2), killed.stderr
    for pair in range(KILLS // 2):
        send(archived, broker, f"killed-{pair}")
        assert expected == replayed(broker, f"killed-{pair}")


def test_topic_with_other_records_is_left_alone(archived: Path, broker: BrokerProcess) -> None:
    make(broker, "full")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("full", b"mine", partition=1)
    producer.flush(PATIENCE)
    producer.close()

    with pytest.raises(ReplayError, match="full-1 has offsets 0 to 0 that are not of this archive"):
        send(archived, broker, "full")
    assert [b"mine"] == [row[1] for row in replayed(broker, "full")[1]]


def test_unsuitable_topics_are_refused_before_anything_is_sent(
    archived: Path, broker: BrokerProcess
) -> None:
    make(broker, "narrow", 1)
    make(broker, "late", message_timestamp_type="LogAppendTime")

    with pytest.raises(ReplayError, match="Make the topic narrow first, with 2 partitions"):
        send(archived, broker, "narrow")
    with pytest.raises(ReplayError, match=r"message\.timestamp\.type=LogAppendTime"):
        send(archived, broker, "late")
    with pytest.raises(UnknownTopic, match=r"has no nothing\. There is events\."):
        replay(None, archived, "nothing", broker.bootstrap)
    assert {} == replayed(broker, "narrow")


def test_large_compressed_and_far_records_are_replayed(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    """
    A topic with default settings takes these sizes. A batch of one record adds 61 bytes and a few
    for the record itself.
    """
    make(broker, "large", 1, message_timestamp_after_max_ms=str(2**63 - 1))
    directory = WrittenDirectory(tmp_path / "logs")
    log = directory.log(message_timestamp_after_max_ms=2**63 - 1)
    largest = 1_048_588 - 61 - 20
    for size in (999_900, 1_000_000, 1_000_001, largest):
        append(log, [SimpleRecord(FIRST_TIMESTAMP, b"key", random.Random(size).randbytes(size))])
    append(log, [SimpleRecord(5, b"k", bytes(5 << 20))], compression=CompressionType.GZIP)
    append(log, [SimpleRecord(ms, b"k", b"v") for ms in (1_700_000_000_000_000_000, 2**63 - 1)])
    log.roll()
    append(log, [SimpleRecord(5, b"a", b"b")])
    directory.stop()
    archive(None, str(directory.path), tmp_path / "archive")

    assert {TopicPartition("events", 0): 7} == send(tmp_path / "archive", broker, "large")
    columns = ["offset", "timestamp", FAR_TIMESTAMP, "key", "value"]
    options = {"isolationLevel": "read_committed", "readUpTo": "logEnd"}
    sent = plain_rows(scan(str(directory.path), options, columns=columns))[:7]
    options["subscribe"] = "large"
    found = plain_rows(scan(str(broker.data), options, columns=columns))
    assert [row[1:] for row in sent] == [row[1:] for row in found]


def test_records_are_replayed_to_a_topic_with_small_batches(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    make(broker, "small", 1, max_message_bytes="700")
    directory = WrittenDirectory(tmp_path / "logs")
    values = [random.Random(number).randbytes(400) for number in range(20)]
    append(directory.log(), [SimpleRecord(5, None, value) for value in values])
    directory.events.roll()
    append(directory.events, [SimpleRecord(5, b"a", b"b")])
    directory.stop()
    archive(None, str(directory.path), tmp_path / "archive")

    send(tmp_path / "archive", broker, "small")

    assert values == [row[1] for row in replayed(broker, "small")[0]]


def test_timestamp_that_the_client_would_change_is_refused(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    make(broker, "epoch", 1)
    directory = WrittenDirectory(tmp_path / "logs")
    append(directory.log(), [SimpleRecord(5, b"a", b"b"), SimpleRecord(0, b"c", b"d")])
    directory.events.roll()
    append(directory.events, [SimpleRecord(5, b"a", b"b")])
    directory.stop()
    archive(None, str(directory.path), tmp_path / "archive")

    with pytest.raises(ReplayError, match="Offset 1 of events-0 has the timestamp 0"):
        send(tmp_path / "archive", broker, "epoch")
    assert {} == replayed(broker, "epoch")


def test_changed_file_of_equal_size_is_not_sent(
    tmp_path: Path, archived: Path, broker: BrokerProcess
) -> None:
    make(broker, "changed")
    subprocess.run(["cp", "-r", archived, tmp_path / "archive"], check=True)
    commit = Archive(tmp_path / "archive").commits_of(TopicPartition("events", 0))[0]
    assert commit.file is not None
    file = tmp_path / "archive" / commit.file
    data = bytearray(file.read_bytes())
    data[10] ^= 1
    file.write_bytes(data)

    with pytest.raises(ArchiveError, match=rf"{file}, the file of offsets 0 to \d+ of events-0"):
        send(tmp_path / "archive", broker, "changed")


def test_replay_command_prints_and_sends_what_is_left(
    spark: SparkSession, archived: Path, broker: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    make(broker, "by-command")
    expected = content(archived_rows(archived))
    arguments = ["events", "--from", str(archived), "-b", broker.bootstrap, "--to", "by-command"]
    ends = [Archive(archived).commits_of(TopicPartition("events", n))[-1] for n in range(2)]

    def command(*more: str) -> int:
        return main(["spark", "replay", *arguments, *more])

    assert 0 == command("--dry-run")
    said = capsys.readouterr().err
    assert f"  by-command-1: offsets 0 to {ends[1].end_offset - 1} of the archive\n" in said
    assert {} == replayed(broker, "by-command")
    assert 0 == command()
    count = sum(map(len, expected.values()))
    assert f"Sent {count} records to by-command.\n" == capsys.readouterr().out
    assert expected == replayed(broker, "by-command")
    assert 0 == command("--dry-run")
    said = capsys.readouterr().err
    assert f"  by-command-0: nothing; 0 to {ends[0].end_offset - 1} were sent before\n" in said
    assert 2 == command("--option", "acks")
    assert 2 == command("--from", "hdfs://host/archive")
    assert 1 == command("--from", str(archived / "nowhere"), "--dry-run")
    assert "There is no archive in " in capsys.readouterr().err


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_table_is_replayed_after_its_files_were_merged(
    spark: SparkSession,
    tmp_path: Path,
    broker: BrokerProcess,
    capsys: pytest.CaptureFixture[str],
    format: str,
) -> None:
    package = "deltalake" if format == "delta" else "pyiceberg"
    pytest.importorskip(package, reason=f"{package} is not installed")
    topic = f"from-{format}"
    make(broker, topic)
    properties = catalog_properties(f"file://{tmp_path}/warehouse", f"{tmp_path}/catalog.db")
    directory = WrittenDirectory(tmp_path / "logs")
    logs = [directory.log("events", number, segment_bytes=SEGMENT_BYTES) for number in range(2)]

    def opened() -> ArchiveTable:
        if format == "delta":
            return open_table(tmp_path / "table", format)
        return open_table(TABLE, format, catalog="lake", catalog_properties=properties)

    def grown() -> None:
        for log in logs:
            fill(log, 100)
        directory.checkpoint()
        archive(None, str(directory.path), opened(), bytes_per_file=1)

    grown()
    sent = replay(None, opened(), "events", broker.bootstrap, to=topic, records_per_transaction=20)
    assert content(closed_rows(directory.path)) == replayed(broker, topic)
    grown()
    assert opened().merge_small_files(20_000).files
    where = [str(tmp_path / "table")]
    if format == "iceberg":
        where = [TABLE, "--catalog", "lake"]
        for name, value in properties.items():
            where += ["--catalog-property", f"{name}={value}"]
    arguments = ["events", "--from", *where, "-b", broker.bootstrap, "--to", topic]
    assert 0 == main(["spark", "replay", *arguments, "--records-per-transaction", "20"])

    expected = content(closed_rows(directory.path))
    more = sum(map(len, expected.values())) - sum(sent.values())
    assert f"Sent {more} records to {topic}.\n" == capsys.readouterr().out
    assert expected == replayed(broker, topic)
    directory.stop()


def test_archive_on_s3_is_compacted_and_replayed_by_commands(
    spark: SparkSession,
    archived: Path,
    tmp_path: Path,
    broker: BrokerProcess,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    pytest.importorskip("moto", reason="moto is not installed")
    assert spark.range(1).count()
    make(broker, "from-s3")
    with s3_server() as s3:
        s3.put_directory(archived, "archive")
        storage = [f"--storage-option={name}={value}" for name, value in s3.storage.items()]
        where = ["--from", s3.url("archive", "s3a"), *storage]

        target = ["-b", broker.bootstrap, "--to", "from-s3"]
        assert 0 == main(["spark", "replay", "events", *where, *target])
        assert 0 == main(["spark", "compact", "events-1", *where, "--to", str(tmp_path / "latest")])

    expected = archived_rows(archived)
    assert content(expected) == replayed(broker, "from-s3")
    of_one = [row for row in expected if row[3] == 1]
    assert latest_of(of_one) == compacted_rows(tmp_path / "latest")
    assert SECRET not in "".join(capsys.readouterr())


def test_missing_topic_is_not_created(
    archived: Path, broker: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["events", "--from", str(archived), "-b", broker.bootstrap, "--to", "not-there"]

    for more in (["--dry-run"], []):
        assert 1 == main(["spark", "replay", *arguments, *more])
        said = capsys.readouterr().err
        assert "barnabas: Make the topic not-there first, with 2 partitions.\n" == said
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    assert "not-there" not in admin.list_topics(timeout=PATIENCE).topics


def test_killed_replay_workers_are_retried_by_spark(
    spark: SparkSession, tmp_path: Path, broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The task of each of ten partitions dies at another call of its client.
    """
    directory = WrittenDirectory(tmp_path / "logs")
    for number in range(KILLS):
        log = directory.log("events", number)
        fill(log, 60)
        log.roll()
        fill(log, 10)
    directory.stop()
    archive(None, str(directory.path), tmp_path / "archive")
    make(broker, "by-workers", KILLS)
    fuses = tmp_path / "fuses"
    fuses.mkdir()
    chance = random.Random(45)
    for number in range(KILLS):
        (fuses / str(number)).write_text(str(chance.randint(1, 60 + 3 * 4)))

    with monkeypatch.context() as patched:
        patched.setattr(job, "_replay_in_worker", dying_task(fuses))
        sent = replay(
            spark,
            tmp_path / "archive",
            "events",
            broker.bootstrap,
            to="by-workers",
            records_per_transaction=20,
        )

    assert [] == list(fuses.iterdir())
    assert set(range(KILLS)) == {partition.partition for partition in sent}
    assert content(archived_rows(tmp_path / "archive")) == replayed(broker, "by-workers")


def dying_task(fuses: Path) -> Any:
    """
    Run a task whose worker dies at the call that the fuse of its partition names.

    The function is pickled by value, since workers do not have the tests.
    """

    def task(
        partitions: Any, target: Any, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        calls = 0
        real = vars(sending)["Producer"]

        class MortalProducer:
            def __init__(self, config: dict[str, Any]) -> None:
                self._real = real(config)

            def __getattr__(self, name: str) -> Any:
                nonlocal calls
                calls += 1
                if fuse.exists() and calls == int(fuse.read_text()):
                    fuse.unlink()
                    os.kill(os.getpid(), signal.SIGKILL)
                return getattr(self._real, name)

        for batch in batches:
            fuse = fuses / str(partitions[batch.column(0)[0].as_py()].topic_partition.partition)
            with mock.patch.object(sending, "Producer", MortalProducer):
                yield from job._replay_in_worker(partitions, target, [batch])

    return task
