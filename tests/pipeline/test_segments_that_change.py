from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.pipeline.errors import (
    CorruptBatch,
    DataLoss,
    MissingDirectory,
    OldFormat,
    TooManyBytes,
)
from barnabas.pipeline.logs.indexes import batch_at
from barnabas.pipeline.rows import parse_options, plan, read, scan, schema
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import build_batch_with_offsets, seal_batch
from barnabas.protocol.records.record import Record, encode_records
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.readonly.segment import ReadOnlySegment
from tests.support.bombs import bomb, memory_below
from tests.support.legacy_messages import legacy_message
from tests.support.limits import stated
from tests.support.log_directory import HIGH_WATERMARKS, WrittenDirectory, append, some_records
from tests.support.logs import append_with_offsets
from tests.support.scanned import plain_rows, scanned_offsets, scanned_rows

ACTIVE = "00000000000000000080"


@pytest.fixture
def written(tmp_path: Path) -> WrittenDirectory:
    directory = WrittenDirectory(tmp_path / "logs")
    log = directory.log(segment_bytes=1000, index_interval_bytes=100)
    for start in range(0, 100, 5):
        append(log, some_records(5, start=start))
    directory.checkpoint()
    assert (0, 20, 40, 60, 80) == log.segments.base_offsets
    return directory


def segment(directory: WrittenDirectory, base: int, suffix: str = ".log") -> Path:
    return directory.path / "events-0" / f"{base:020d}{suffix}"


def offsets_after(
    directory: WrittenDirectory, change: Callable[[], Any], **options: str
) -> list[int]:
    parsed = parse_options({"path": str(directory.path), **options})
    works = plan(parsed)
    change()
    names = schema(parsed).names
    return [row[4] for work in works for row in plain_rows(read(work, names, parsed))]


# Segments that go.


def test_segment_being_deleted_is_read(written: WrittenDirectory) -> None:
    def delete() -> None:
        for base in (0, 20):
            segment(written, base).rename(segment(written, base, ".log.deleted"))

    assert list(range(100)) == offsets_after(written, delete)


def test_deleted_segment_is_a_data_loss(written: WrittenDirectory) -> None:
    deleted = re.escape(str(segment(written, 0)))

    def delete() -> None:
        for file in (written.path / "events-0").glob("00000000000000000000.*"):
            file.unlink(missing_ok=True)

    with pytest.raises(DataLoss, match=f"{deleted} is gone, and with it offsets 0 to 19"):
        offsets_after(written, delete)
    segment(written, 0).write_bytes(b"")
    assert list(range(20, 100)) == offsets_after(written, delete, failOnDataLoss="false")


def test_segment_deleted_during_planning_has_no_batch(written: WrittenDirectory) -> None:
    files = DiskFiles()
    deleted = ReadOnlySegment(files, segment(written, 20))
    segment(written, 20).unlink()

    assert batch_at(files, deleted, 0) is None


def test_deleted_partition_is_a_data_loss(written: WrittenDirectory) -> None:
    def delete() -> None:
        directory = written.path / "events-0"
        directory.rename(written.path / f"events-0.{'0' * 32}-delete")

    with pytest.raises(DataLoss, match="offsets 0 to 19 of events-0"):
        offsets_after(written, delete)


@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
@pytest.mark.parametrize("level", ["records", "batches", "segments"])
@pytest.mark.parametrize("named", ["", "/events-0"])
@pytest.mark.parametrize("left", ["nothing", "an empty directory"])
def test_directory_that_a_worker_does_not_have_is_no_data_loss(
    written: WrittenDirectory, left: str, named: str, level: str, fail_on_data_loss: str
) -> None:
    """
    A mount may be missing on one machine, or be the empty directory that it is mounted on.
    """
    root = written.path / named.strip("/")

    def unmount() -> None:
        root.rename(root.with_name("elsewhere"))
        if left == "an empty directory":
            root.mkdir()

    options = {"path": str(root), "level": level, "failOnDataLoss": fail_on_data_loss}
    with pytest.raises(MissingDirectory, match=f"{root} on .* every worker of Spark needs"):
        offsets_after(written, unmount, **options)


@pytest.mark.parametrize("bytes_per_task", ["200", "100000"])
def test_compaction_between_plan_and_read_loses_nothing(
    written: WrittenDirectory, bytes_per_task: str
) -> None:
    """
    The compaction merges segments and drops records; each remaining record is returned once.
    """

    def compact() -> None:
        kept = bytearray()
        for base in range(0, 60, 5):
            offsets = [offset for offset in range(base, base + 5) if offset % 3 == 0]
            records = [Record(offset, 0, b"key", b"value") for offset in offsets]
            kept += build_batch_with_offsets(records, base_offset=base, last_offset=base + 4)
        for base in (20, 40):
            for file in (written.path / "events-0").glob(f"{base:020d}.*"):
                file.unlink()
        segment(written, 0, ".index").unlink()
        segment(written, 0).write_bytes(kept)

    expected = [offset for offset in range(100) if offset % 3 == 0 or offset >= 60]
    found = offsets_after(written, compact, maxPartitionBytes=bytes_per_task, openCostInBytes="0")
    assert expected == found


def test_records_appended_after_the_plan_are_not_read(written: WrittenDirectory) -> None:
    def grow() -> None:
        for start in range(100, 150, 5):
            append(written.events, some_records(5, start=start))
        written.checkpoint()

    assert list(range(100)) == offsets_after(written, grow)


# The end of the active segment.


@pytest.mark.parametrize("cut", [1, 20, 61, 150])
def test_incomplete_batch_is_not_read(written: WrittenDirectory, cut: int) -> None:
    path = segment(written, 80)
    path.write_bytes(path.read_bytes()[:-cut])

    assert list(range(95)) == scanned_offsets(written.path)
    (written.path / HIGH_WATERMARKS).unlink()
    assert list(range(95)) == scanned_offsets(written.path)


@pytest.mark.parametrize("zeros", [1, 30, 61, 5000])
def test_zeros_behind_the_last_batch_are_not_read(written: WrittenDirectory, zeros: int) -> None:
    """
    A segment or an index may be preallocated.
    """
    for suffix in (".log", ".index", ".timeindex"):
        path = segment(written, 80, suffix)
        path.write_bytes(path.read_bytes() + bytes(zeros))
    (written.path / HIGH_WATERMARKS).unlink()

    assert list(range(100)) == scanned_offsets(written.path)
    assert [100] == [
        row[3] for row in plain_rows(scan(str(written.path), {"level": "segments"})) if row[8]
    ]


def test_torn_last_batch_is_not_read(written: WrittenDirectory) -> None:
    """
    A crash left the file size without the last bytes; below the high watermark this is an error.
    """
    path = segment(written, 80)
    path.write_bytes(path.read_bytes()[:-10] + bytes(10))

    assert list(range(95)) == scanned_offsets(written.path)
    assert list(range(95)) == scanned_offsets(written.path, readUpTo="logEnd")


# Bytes that are no batch.


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


def batch_positions(directory: WrittenDirectory, base: int) -> list[int]:
    batches = plain_rows(scan(str(directory.path), {"level": "batches"}))
    return [row[3] for row in batches if row[2] == base]


def test_wrong_checksum_fails_the_scan(written: WrittenDirectory) -> None:
    path, position = segment(written, 20), batch_positions(written, 20)[2]
    flip(path, position + 80)

    with pytest.raises(CorruptBatch, match="CRC") as caught:
        scanned_rows(written.path)

    error = caught.value
    assert (str(path), position, 30) == (error.path, error.position, error.offset)
    assert f"{path}: at byte {position} (offset 30): " in str(error)


def test_batch_with_a_wrong_checksum_may_be_skipped(written: WrittenDirectory) -> None:
    flip(segment(written, 20), batch_positions(written, 20)[2] + 80)

    found = scanned_offsets(written.path, mode="DROPMALFORMED")

    assert [offset for offset in range(100) if not 30 <= offset < 35] == found


def test_batch_with_a_wrong_checksum_may_be_returned_as_a_row(written: WrittenDirectory) -> None:
    path, position = segment(written, 20), batch_positions(written, 20)[2]
    flip(path, position + 80)

    rows = scanned_rows(written.path, mode="PERMISSIVE")

    (bad,) = [row for row in rows if row[8] is not None]
    assert (None, None, "events", 0, 30, None, None, None) == bad[:8]
    assert bad[8].startswith(f"{path}: at byte {position} (offset 30): ")
    assert [*range(31), *range(35, 100)] == [row[4] for row in rows]


@pytest.mark.parametrize("at", [8, 16])
def test_scan_resumes_behind_damage_at_an_index_entry(written: WrittenDirectory, at: int) -> None:
    """
    A wrong length or magic byte hides the batches up to the next index entry.
    """
    positions = batch_positions(written, 20)
    flip(segment(written, 20), positions[1] + at)

    with pytest.raises(CorruptBatch, match=rf"at byte {positions[1]} \(offset 25\)"):
        scanned_rows(written.path)
    found = scanned_offsets(written.path, mode="DROPMALFORMED")
    assert [offset for offset in range(100) if not 25 <= offset < 30] == found
    segment(written, 20, ".index").unlink()
    found = scanned_offsets(written.path, mode="DROPMALFORMED")
    assert [offset for offset in range(100) if not 25 <= offset < 40] == found


def test_closed_segment_that_ends_early_fails(written: WrittenDirectory) -> None:
    path = segment(written, 20)
    path.write_bytes(path.read_bytes()[:-7])

    with pytest.raises(CorruptBatch, match=rf"{path}: .*\(offset 35\): .*ends behind the file"):
        scanned_rows(written.path)


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_formats_are_refused(tmp_path: Path, magic: int, size: int) -> None:
    """
    In every mode, because these records are valid and would otherwise be skipped.
    """
    directory = tmp_path / "events-0"
    directory.mkdir()
    path = directory / "00000000000000000000.log"
    path.write_bytes(legacy_message(magic, 0, b"key", bytes(size)) * 3)

    for mode in ("FAILFAST", "DROPMALFORMED", "PERMISSIVE"):
        with pytest.raises(OldFormat, match=rf"{path}: at byte 0 .*message format {magic}"):
            scanned_rows(tmp_path, mode=mode)


def test_malformed_records_with_a_right_checksum_are_detected(tmp_path: Path) -> None:
    """
    The batches around it are returned, also those of other partitions that are decoded with it.
    """
    for partition in range(3):
        directory = tmp_path / f"events-{partition}"
        directory.mkdir()
        for base in range(4):
            payload = encode_records([Record(base, 0, b"k", b"v")], base, 0)
            if (partition, base) == (1, 2):
                payload[3] ^= 0x40
                payload[4] = 0x7F
            (directory / f"{base:020d}.log").write_bytes(
                seal_batch(
                    payload,
                    1,
                    base_offset=base,
                    last_offset_delta=0,
                    base_timestamp=0,
                    max_timestamp=0,
                )
            )
    bad = tmp_path / "events-1" / f"{2:020d}.log"

    with pytest.raises(CorruptBatch, match=rf"{bad}: at byte 0 \(offset 2\)"):
        scanned_rows(tmp_path)
    rows = scanned_rows(tmp_path, mode="PERMISSIVE")
    assert [(partition, offset) for partition in range(3) for offset in range(4)] == [
        row[3:5] for row in rows
    ]
    assert [(1, 2)] == [row[3:5] for row in rows if row[8]]
    assert 11 == len(scanned_rows(tmp_path, mode="DROPMALFORMED"))


def test_decompression_bomb_is_refused(written: WrittenDirectory) -> None:
    append(written.events, some_records(10, size=10_000), compression=CompressionType.GZIP)
    written.checkpoint()

    with pytest.raises(TooManyBytes, match=r"offset 100.*gzip decompress to more than the 50000"):
        scanned_rows(written.path, maxBatchBytes="50000")
    assert list(range(110)) == scanned_offsets(written.path)


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec])
def test_decompression_bomb_counts_as_a_corrupt_batch(
    codec: CompressionType, written: WrittenDirectory
) -> None:
    log = written.events
    log.update_config(LogConfig())
    append_with_offsets(log, memoryview(bomb(codec, base_offset=100)))
    written.checkpoint()

    with memory_below(3 * int(stated("decompressed"))):
        with pytest.raises(CorruptBatch, match=rf"{ACTIVE}\.log: at byte \d+ \(offset 100\)"):
            scanned_rows(written.path)
        assert 100 == len(scanned_rows(written.path, mode="DROPMALFORMED"))


@pytest.mark.parametrize(
    "content", [b"", b"\x01", b"\xff" * 400, bytes(400), b"\0\0\0\1\0\0\0\x4d"]
)
def test_damaged_index_does_not_change_the_rows(written: WrittenDirectory, content: bytes) -> None:
    for base in (0, 20, 40, 60, 80):
        segment(written, base, ".index").write_bytes(content)

    found = scanned_offsets(
        written.path,
        startingOffsets='{"events": {"0": 33}}',
        maxPartitionBytes="200",
        openCostInBytes="0",
    )

    assert list(range(33, 100)) == found
