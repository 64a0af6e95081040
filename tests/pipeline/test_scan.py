from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.pipeline.errors import DataLoss, InvalidOption, UnknownTopic
from barnabas.pipeline.rows import parse_options, plan, scan
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.record import Header, SimpleRecord
from tests.support.log_directory import (
    HIGH_WATERMARKS,
    START_OFFSETS,
    WrittenDirectory,
    append,
    some_records,
    stored_rows,
)
from tests.support.logs import end_transaction
from tests.support.scanned import plain_rows, scanned_offsets, scanned_rows
from tests.support.segments import FIRST_TIMESTAMP

YEAR_10000_MS = 253_402_300_800_000


@pytest.fixture
def written(tmp_path: Path) -> WrittenDirectory:
    directory = WrittenDirectory(tmp_path)
    log = directory.log(segment_bytes=1000, index_interval_bytes=200)
    for start in range(0, 100, 5):
        append(log, some_records(5, start=start))
    directory.checkpoint()
    assert len(log.segments.values()) > 4
    return directory


def test_every_record_is_a_row(tmp_path: Path) -> None:
    directory = WrittenDirectory(tmp_path)
    headers = (Header("a", b"1"), Header("a", None), Header("é", b""))
    for partition, codec in enumerate(CompressionType):
        log = directory.log("orders", partition, segment_bytes=2000)
        for start in range(0, 60, 10):
            append(log, some_records(10, start=start), compression=codec)
            odd = [SimpleRecord(start, None, b""), SimpleRecord(5, b"", None, headers)]
            append(log, odd, compression=codec)
    append(directory.log("users"), some_records(3), log_append_time=FIRST_TIMESTAMP)
    append(directory.log("__internal"), some_records(3))
    directory.stop()

    rows = scanned_rows(tmp_path)

    assert 5 * 72 + 3 == len(rows)
    assert [row for row in stored_rows(tmp_path) if row[2] != "__internal"] == rows
    assert list(stored_rows(tmp_path, "__internal")) == scanned_rows(
        tmp_path, subscribe="__internal"
    )


def test_rows_stay_valid_while_others_are_read(tmp_path: Path) -> None:
    directory = WrittenDirectory(tmp_path)
    log = directory.log()
    for start in range(0, 2000, 20):
        append(log, some_records(20, start=start, size=10_000))
    directory.stop()
    path, options = str(tmp_path), {"chunkBytes": "4096"}

    at_once = [batch.to_pylist() for batch in scan(path, options)]
    kept = list(scan(path, options))

    assert len(kept) > 4
    assert at_once == [batch.to_pylist() for batch in kept]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"subscribe": "b, a"}, ["a-0", "a-1", "b-0"]),
        ({"subscribePattern": "a.*"}, ["a-0", "a-1", "ab-0"]),
        ({"assign": '{"a": [1], "b": [0]}'}, ["a-1", "b-0"]),
        ({}, ["a-0", "a-1", "ab-0", "b-0"]),
    ],
)
def test_partitions_are_selected_as_in_the_connector(
    tmp_path: Path, options: dict[str, str], expected: list[str]
) -> None:
    directory = WrittenDirectory(tmp_path)
    for topic, partition in (("a", 0), ("a", 1), ("ab", 0), ("b", 0), ("__c", 0)):
        append(directory.log(topic, partition), some_records(1))
    directory.stop()
    (tmp_path / "a-2.0123456789abcdef0123456789abcdef-delete").mkdir()
    (tmp_path / "lost+found").mkdir()

    rows = scanned_rows(tmp_path, **options)

    assert expected == [f"{row[2]}-{row[3]}" for row in rows]


@pytest.mark.parametrize("bytes_per_task", [100, 700, 1 << 20])
@pytest.mark.parametrize(
    ("start", "end"), [(0, 100), (3, 97), (5, 10), (42, 43), (50, 50), (-2, -1)]
)
def test_scan_returns_exactly_the_requested_offsets(
    written: WrittenDirectory, start: int, end: int, bytes_per_task: int
) -> None:
    found = scanned_offsets(
        written.path,
        startingOffsets=json.dumps({"events": {"0": start}}),
        endingOffsets=json.dumps({"events": {"0": end}}),
        maxPartitionBytes=str(bytes_per_task),
        openCostInBytes="0",
    )

    assert list(range(max(start, 0), 100 if end < 0 else end)) == found


def test_plan_excludes_segments_and_batches_outside_the_range(written: WrittenDirectory) -> None:
    options = {"path": str(written.path), "maxPartitionBytes": "300", "openCostInBytes": "0"}
    bounds = {
        "startingOffsets": '{"events": {"0": 52}}',
        "endingOffsets": '{"events": {"0": 54}}',
    }

    everything = plan(parse_options(options))
    little = plan(parse_options({**options, **bounds}))

    stored = sum(segment.size for segment in written.events.segments.values())
    assert stored == sum(piece.size for work in everything for piece in work.ranges)
    assert len(everything) > 8
    assert 1 == len(little)
    assert sum(piece.size for piece in little[0].ranges) < 1000


def test_range_is_split_into_the_requested_number_of_tasks(written: WrittenDirectory) -> None:
    options = {
        "path": str(written.path),
        "startingOffsets": '{"events": {"0": 80}}',
        "minPartitions": "2",
    }

    assert len(plan(parse_options(options))) >= 2


def test_small_segments_are_packed_into_pickleable_tasks(written: WrittenDirectory) -> None:
    few = plan(parse_options({"path": str(written.path)}))
    many = plan(parse_options({"path": str(written.path), "minPartitions": "3"}))

    assert 1 == len(few)
    assert len(many) >= 3
    assert many == pickle.loads(pickle.dumps(many))


@pytest.mark.parametrize(
    ("options", "value_bytes", "expected"),
    [
        ({"level": "records"}, 64_000, range(8, 10)),
        ({"level": "batches"}, 64_000, range(1, 2)),
        ({"level": "batches"}, 2_000, range(8, 10)),
        ({"level": "batches", "minPartitions": "8"}, 64_000, range(8, 10)),
    ],
)
def test_task_size_counts_the_bytes_read(
    tmp_path: Path, options: dict[str, str], value_bytes: int, expected: range
) -> None:
    directory = WrittenDirectory(tmp_path)
    log = directory.log()
    while log.log_end_offset * value_bytes < 2_048_000:
        append(log, [SimpleRecord(FIRST_TIMESTAMP, None, bytes(value_bytes))])
    directory.stop()

    options = {"maxPartitionBytes": "256000", "openCostInBytes": "0", **options}
    tasks = plan(parse_options({"path": str(tmp_path), **options}))
    rows = pa.Table.from_batches(scan(str(tmp_path), options))

    assert len(tasks) in expected
    assert log.log_end_offset == rows.num_rows


def test_segment_without_an_index_is_one_task(tmp_path: Path) -> None:
    """
    Its batches are of unknown size: it is not split, and shares its task with no other segment.
    """
    directory = WrittenDirectory(tmp_path)
    for partition in range(2):
        log = directory.log(partition=partition)
        for _ in range(20):
            append(log, [SimpleRecord(FIRST_TIMESTAMP, None, bytes(64_000))])
    directory.stop()
    for index in tmp_path.glob("*/*.index"):
        index.unlink()

    options = {"path": str(tmp_path), "level": "batches", "maxPartitionBytes": "1000000"}

    assert 2 == len(plan(parse_options(options)))


def test_only_requested_columns_are_built(written: WrittenDirectory) -> None:
    rows = pa.Table.from_batches(scan(str(written.path), columns=["partition", "offset"]))

    assert ["partition", "offset"] == rows.schema.names
    assert list(range(100)) == rows.column("offset").to_pylist()


# What may be read.


def test_scan_ends_at_the_high_watermark(written: WrittenDirectory) -> None:
    """
    The high watermark is the noted one; a partition without a note is too new to read. A directory
    without notes, or an option, reads to the end.
    """
    written.checkpoint(events=42)
    noted = scanned_offsets(written.path)
    to_the_end = scanned_offsets(written.path, readUpTo="logEnd")
    written.checkpoint(other=1)
    not_noted = scanned_offsets(written.path)
    (written.path / HIGH_WATERMARKS).unlink()
    no_file = scanned_offsets(written.path)

    assert list(range(42)) == noted
    assert list(range(100)) == to_the_end == no_file
    assert [] == not_noted


def test_scan_begins_at_the_log_start_offset(written: WrittenDirectory) -> None:
    written.checkpoint(START_OFFSETS, events=13)

    assert list(range(13, 100)) == scanned_offsets(written.path)


def test_directory_of_one_partition_can_be_scanned(written: WrittenDirectory) -> None:
    append(written.log("events", 1), some_records(3))
    written.checkpoint(events=42)

    assert list(range(42)) == scanned_offsets(written.path / "events-0")


def test_several_directories_are_scanned_as_one(tmp_path: Path) -> None:
    for number in range(2):
        directory = WrittenDirectory(tmp_path / str(number))
        append(directory.log("events", number), some_records(3))
        directory.stop()

    rows = scanned_rows(f"{tmp_path / '0'},{tmp_path / '1'}")

    assert [0, 0, 0, 1, 1, 1] == [row[3] for row in rows]


@pytest.mark.parametrize("with_snapshot", [True, False])
def test_committed_scan_excludes_open_and_aborted_transactions(
    tmp_path: Path, with_snapshot: bool
) -> None:
    """
    The scan ends at the first transaction that is open at the high watermark.
    """
    directory = WrittenDirectory(tmp_path)
    log = directory.log(segment_bytes=300)
    sequences = {1: 0, 2: 0, 3: 0}

    def send(producer_id: int, value: int) -> None:
        batch = {"producer_id": producer_id, "producer_epoch": 0, "is_transactional": True}
        record = [SimpleRecord(FIRST_TIMESTAMP, None, b"%d" % value)]
        append(log, record, base_sequence=sequences[producer_id], **batch)
        sequences[producer_id] += 1

    for value in range(12):
        send(1, value)
        send(2, value)
        append(log, [SimpleRecord(FIRST_TIMESTAMP, None, b"plain")])
        end_transaction(log, 1, commit=value % 3 != 0)
        end_transaction(log, 2, commit=value % 2 == 0)
    send(3, 100)
    first_open = log.log_end_offset - 1
    append(log, [SimpleRecord(FIRST_TIMESTAMP, None, b"behind")])
    directory.stop()
    if not with_snapshot:
        for snapshot in (tmp_path / "events-0").glob("*.snapshot"):
            snapshot.unlink()

    committed = scanned_rows(tmp_path, isolationLevel="read_committed")
    all_of_them = scanned_rows(tmp_path, **{"kafka.isolation.level": "read_uncommitted"})

    expected_values = []
    for value in range(12):
        expected_values += [b"%d" % value] if value % 3 else []
        expected_values += [] if value % 2 else [b"%d" % value]
        expected_values += [b"plain"]
    assert expected_values == [row[1] for row in committed]
    assert max(row[4] for row in committed) < first_open
    assert 12 * 3 + 2 == len(all_of_them)


def test_transaction_whose_marker_is_above_the_high_watermark_is_open(tmp_path: Path) -> None:
    directory = WrittenDirectory(tmp_path)
    log = directory.log()
    append(log, some_records(2))
    append(
        log,
        some_records(2),
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    directory.checkpoint(events=4)
    end_transaction(log, 1)

    assert [0, 1] == scanned_offsets(tmp_path, isolationLevel="read_committed")
    directory.checkpoint(events=5)
    assert [0, 1, 2, 3] == scanned_offsets(tmp_path, isolationLevel="read_committed")


# Times.


@pytest.mark.parametrize("index", ["with its index", "without its index"])
def test_times_are_converted_to_offsets(written: WrittenDirectory, index: str) -> None:
    """
    The offset is that of the first record that is not older; the end is excluded. Times apply to
    all partitions or to each one, as in the connector.
    """
    if index == "without its index":
        for pattern in ("*.timeindex", "*.index"):
            for file in (written.path / "events-0").glob(pattern):
                file.unlink()

    def between(start: int, end: int) -> dict[str, str]:
        return {
            "startingTimestamp": str(FIRST_TIMESTAMP + start),
            "endingTimestamp": str(FIRST_TIMESTAMP + end),
        }

    for start, end in ((0, 1), (13, 77), (50, 51), (99, 100), (98, 1000)):
        assert list(range(start, min(end, 100))) == scanned_offsets(
            written.path, **between(start, end)
        )
    by_partition = scanned_offsets(
        written.path,
        startingOffsetsByTimestamp=json.dumps({"events": {"0": FIRST_TIMESTAMP + 95}}),
        endingOffsetsByTimestamp=json.dumps({"events": {"0": FIRST_TIMESTAMP + 97}}),
    )
    assert [95, 96] == by_partition


@pytest.mark.parametrize("kept_bytes", [0, 12, 18, 24])
def test_torn_time_index_hides_no_record(written: WrittenDirectory, kept_bytes: int) -> None:
    """
    Also for a segment that is not the last, whose index should be complete.
    """
    for file in (written.path / "events-0").glob("*.timeindex"):
        file.write_bytes(file.read_bytes()[:kept_bytes])

    for start in (0, 13, 19, 20, 99):
        found = scanned_offsets(written.path, startingTimestamp=str(FIRST_TIMESTAMP + start))
        assert list(range(start, 100)) == found
    newest = [row[6] for row in scanned_rows(written.path, level="segments")]
    bases = [segment.base_offset for segment in written.events.segments.values()]
    assert [FIRST_TIMESTAMP + after - 1 for after in [*bases[1:], 100]] == newest


def test_first_record_in_the_log_counts_for_decreasing_timestamps(tmp_path: Path) -> None:
    directory = WrittenDirectory(tmp_path)
    log = directory.log(segment_bytes=200, index_interval_bytes=1)
    for ms in (10, 50, 20, 60, 30, 70, 5):
        append(log, [SimpleRecord(FIRST_TIMESTAMP + ms, b"k", bytes(40))])
    directory.stop()

    def first(ms: int) -> int:
        return scanned_offsets(tmp_path, startingTimestamp=str(FIRST_TIMESTAMP + ms))[0]

    assert [0, 1, 1, 3, 5] == [first(ms) for ms in (0, 20, 50, 51, 61)]


def test_start_after_all_records_is_an_error_unless_the_end_is_allowed(
    written: WrittenDirectory,
) -> None:
    late = {"startingTimestamp": str(FIRST_TIMESTAMP + 100)}

    with pytest.raises(InvalidOption, match="events-0 has no record from the starting timestamp"):
        scanned_offsets(written.path, **late)
    late["startingOffsetsByTimestampStrategy"] = "latest"
    assert [] == scanned_offsets(written.path, **late)


# The other levels.


def test_batches_are_described_from_their_headers(tmp_path: Path) -> None:
    directory = WrittenDirectory(tmp_path)
    log = directory.log()
    append(log, some_records(5), compression=CompressionType.ZSTD)
    append(
        log,
        some_records(1),
        producer_id=7,
        producer_epoch=3,
        base_sequence=9,
        is_transactional=True,
    )
    end_transaction(log, 7, 3)
    directory.stop()

    batches = scan(str(tmp_path), {"level": "batches"})
    rows = [row for batch in batches for row in batch.to_pylist()]

    assert [0, rows[0]["size"], rows[0]["size"] + rows[1]["size"]] == [
        row["position"] for row in rows
    ]
    names = ("baseOffset", "nextOffset", "records", "codec", "producerId", "producerEpoch")
    flags = ("baseSequence", "transactional", "control", "deleteHorizon")
    assert [
        (0, 5, 5, "zstd", -1, -1, -1, False, False, None),
        (5, 6, 1, "none", 7, 3, 9, True, False, None),
        (6, 7, 1, "none", 7, 3, -1, True, True, None),
    ] == [tuple(row[name] for name in names + flags) for row in rows]


def test_segments_are_described_from_names_and_indexes(written: WrittenDirectory) -> None:
    """
    The active segment is described by its headers as well, since its indexes lag behind.
    """
    segments = written.events.segments.values()

    rows = plain_rows(scan(str(written.path), {"level": "segments"}))

    bases = [segment.base_offset for segment in segments]
    assert [
        (
            "events",
            0,
            base,
            after,
            segment.size,
            FIRST_TIMESTAMP + base,
            FIRST_TIMESTAMP + after - 1,
            after == 100,
            str(segment.log.path),
        )
        for base, after, segment in zip(bases, [*bases[1:], 100], segments, strict=True)
    ] == [row[:7] + row[8:] for row in rows]


def test_segment_times_may_be_outside_the_datetime_range(tmp_path: Path) -> None:
    directory = WrittenDirectory(tmp_path)
    log = directory.log(message_timestamp_after_max_ms=2**63 - 1)
    append(log, [SimpleRecord(FIRST_TIMESTAMP, b"k", b"v")])
    for times in ((YEAR_10000_MS, 2**62), (-1, -1)):
        log.roll()
        append(log, [SimpleRecord(ms, b"k", b"v") for ms in times])
    directory.stop()

    rows = scanned_rows(tmp_path, level="segments")

    latest = (2**63 - 1) // 1000
    assert [(FIRST_TIMESTAMP, FIRST_TIMESTAMP), (YEAR_10000_MS, latest)] == [
        row[5:7] for row in rows[:2]
    ]
    assert -1 == rows[2][5]


# What is not there.


def test_partition_in_two_directories_is_refused(tmp_path: Path) -> None:
    """
    Either could be the current one. The same directory may be named twice.
    """
    for number in range(2):
        directory = WrittenDirectory(tmp_path / str(number))
        append(directory.log(), some_records(3 + number))
        append(directory.log("users", number), some_records(1))
        directory.stop()
    both = f"{tmp_path / '0'},{tmp_path / '1'}"

    places = rf"events-0 twice, in {tmp_path}/0/events-0 and in {tmp_path}/1/events-0"
    with pytest.raises(InvalidOption, match=places):
        scanned_rows(both)
    assert 2 == len(scanned_rows(both, subscribe="users"))
    assert 4 == len(scanned_rows(f"{tmp_path / '0'},{tmp_path / '0'}"))


def test_missing_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no directory .*/nowhere"):
        scanned_rows(tmp_path / "nowhere")


def test_missing_topic_or_partition_is_named(written: WrittenDirectory) -> None:
    with pytest.raises(UnknownTopic, match=r"has no nothing\. There is events\."):
        scanned_rows(written.path, subscribe="events,nothing")
    with pytest.raises(UnknownTopic, match="has no events-1"):
        scanned_rows(written.path, assign='{"events": [0, 1]}')
    with pytest.raises(UnknownTopic, match="Offsets are given for events-3"):
        scanned_rows(written.path, startingOffsets='{"events": {"3": 0}}')


def test_directory_without_broker_data_is_refused(tmp_path: Path) -> None:
    """
    An empty directory is a mistake; that of a new broker is accepted.
    """
    with pytest.raises(UnknownTopic, match="has no logs of topics"):
        scanned_rows(tmp_path)
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert [] == scanned_rows(tmp_path)


@pytest.mark.parametrize(
    "bounds",
    [
        {"startingOffsets": '{"events": {"0": 5}}'},
        {"endingOffsets": '{"events": {"0": 101}}'},
        {"startingOffsets": '{"events": {"0": 101}}'},
    ],
)
def test_missing_offsets_are_reported(written: WrittenDirectory, bounds: dict[str, str]) -> None:
    written.checkpoint(START_OFFSETS, events=10)

    with pytest.raises(DataLoss, match="events-0 has offsets 10 to 100"):
        scanned_rows(written.path, **bounds)
    there = set(scanned_offsets(written.path, failOnDataLoss="false", **bounds))
    assert there <= set(range(10, 100))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topic": "events"}, "no option topic"),
        ({"startingOffset": "5"}, "Did you mean startingOffsets"),
        ({"subscribe": "a", "assign": "{}"}, "Only one of subscribe, assign"),
        ({"assign": "[1]"}, "assign should be JSON like"),
        ({"assign": '{"a": 1}'}, "assign should be JSON like"),
        ({"startingOffsets": '{"a": 3}'}, "startingOffsets should be JSON like"),
        ({"startingOffsets": '{"a": {"0": -3}}'}, "startingOffsets has the offset -3"),
        ({"startingOffsets": "latest"}, "cannot be latest in a batch query"),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be earliest"),
        ({"endingOffsets": "tomorrow"}, "endingOffsets should be JSON like"),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp takes times as in 2026-"),
        ({"subscribePattern": "("}, "subscribePattern is no pattern"),
        ({"level": "bytes"}, "level is one of records, batches, segments, not 'bytes'"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss is true or false"),
        ({"maxPartitionBytes": "0"}, "maxPartitionBytes is a size of at least 1"),
        ({"maxBatchBytes": "2147483648"}, "maxBatchBytes is .* at most 1g, .* not '2147483648'"),
        ({"chunkBytes": "2147483648"}, "chunkBytes is .* at most 1g"),
    ],
)
def test_invalid_options_are_refused(
    written: WrittenDirectory, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidOption, match=message):
        scanned_rows(written.path, **options)


def test_unknown_column_is_refused_with_the_existing_ones(written: WrittenDirectory) -> None:
    with pytest.raises(InvalidOption, match="no column keys; there are key, value,"):
        list(scan(str(written.path), columns=["keys"]))


def test_kafka_client_options_are_ignored(written: WrittenDirectory) -> None:
    """
    A query written for the connector works unchanged.
    """
    options = {"kafka.bootstrap.servers": "localhost:9092", "includeHeaders": "false"}

    rows = pa.Table.from_batches(scan(str(written.path), options))

    assert "headers" not in rows.schema.names
