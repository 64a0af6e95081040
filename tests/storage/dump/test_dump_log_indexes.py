from __future__ import annotations

import struct
from pathlib import Path

import pytest

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from tests.support.dumping import KAFKAS, dump

CORRUPT = f"{KAFKAS}org.apache.kafka.common.errors.CorruptRecordException: "
CORRUPT_INDEX = f"{KAFKAS}org.apache.kafka.storage.internals.log.CorruptIndexException: "
ILLEGAL = f"{KAFKAS}java.lang.IllegalArgumentException: "


def segment(directory: Path) -> Path:
    """
    The log and the indexes of two batches; the path without a suffix.
    """
    path = directory / "00000000000000000000"
    path.with_suffix(".log").write_bytes(
        build_batch([SimpleRecord(1, None, b"x")])
        + build_batch([SimpleRecord(1, None, b"y")], base_offset=1)
    )
    path.with_suffix(".index").write_bytes(struct.pack(">ii", 1, 69))
    path.with_suffix(".timeindex").write_bytes(struct.pack(">qi", 1, 1))
    return path


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_index_that_matches_its_log_has_no_findings(suffix: str, tmp_path: Path) -> None:
    path = segment(tmp_path).with_suffix(suffix)

    shown = dump("--files", path)
    verified = dump("--verify-index-only", "--files", path)
    sane = dump("--index-sanity-check", "--files", path)

    entry = "offset: 1 position: 69" if suffix == ".index" else "timestamp: 1 offset: 1"
    assert (0, f"Dumping {path}\n{entry}\n", "") == shown
    assert (0, f"Dumping {path}\n", "") == verified
    assert (0, f"Dumping {path}\n{path} passed sanity check.\n", "") == sane


@pytest.mark.parametrize(
    ("suffix", "data", "err"),
    [
        (
            ".index",
            struct.pack(">iiii", 1, 0, 3, 69),
            "Mismatches in :{}\n"
            "  Index offset: 3, log offset: 1\n  Index offset: 1, log offset: 0\n",
        ),
        (
            ".timeindex",
            struct.pack(">qiqi", 5, 1, 4, 1),
            "Found timestamp mismatch in :{}\n  Index timestamp: 5, log timestamp: 1\n"
            "  Index timestamp: 4, log timestamp: 1\n"
            "Found out of order timestamp in :{}\n"
            "  Index timestamp: 4, Previously indexed timestamp: 5\n",
        ),
        (
            ".timeindex",
            struct.pack(">qi", 5, 9),
            "The following indexed offsets are not found in :{}\n"
            "Indexed offset: 9, found log offset: -1\n",
        ),
    ],
    ids=["offsets", "timestamps", "not found"],
)
def test_index_that_does_not_match_its_log_is_reported(
    suffix: str, data: bytes, err: str, tmp_path: Path
) -> None:
    path = segment(tmp_path).with_suffix(suffix)
    path.write_bytes(data)

    dumped = dump("--verify-index-only", "--files", path)

    assert (0, f"Dumping {path}\n", err.replace("{}", str(path))) == dumped


def test_a_time_entry_has_the_largest_timestamp_of_its_batch(tmp_path: Path) -> None:
    path = segment(tmp_path)
    records = [SimpleRecord(timestamp, None, b"x") for timestamp in (5, 9, 7)]
    path.with_suffix(".log").write_bytes(build_batch(records))
    path.with_suffix(".index").write_bytes(b"")
    path.with_suffix(".timeindex").write_bytes(struct.pack(">qi", 9, 2))

    assert "" == dump("--files", path.with_suffix(".timeindex")).err


@pytest.mark.parametrize(
    ("suffix", "line"),
    [(".index", "offset: 1 position: 69"), (".timeindex", "timestamp: 1 offset: 1")],
)
def test_zeros_behind_the_index_entries_are_ignored(suffix: str, line: str, tmp_path: Path) -> None:
    path = segment(tmp_path).with_suffix(suffix)
    with path.open("ab") as file:
        file.write(bytes(240))

    assert [f"Dumping {path}", line] == dump("--files", path).out.splitlines()


@pytest.mark.parametrize(
    ("suffix", "data", "options", "reason"),
    [
        (".index", struct.pack(">ii", 1, 4000), (), f"{ILLEGAL}Slice from position 4000 exceeds "
         "end position of FileRecords(size=138, file={}.log, start=0, end=2147483647)"),
        (".index", struct.pack(">ii", 1, -4), (), f"{ILLEGAL}Invalid position: -4 in read from "
         "FileRecords(size=138, file={}.log, start=0, end=2147483647)"),
        (".index", struct.pack(">ii", 1, 138), (), f"{KAFKAS}java.util.NoSuchElementException"),
        (".index", struct.pack(">ii", 1, 69), ("--max-message-size", "68"),
         f"{KAFKAS}java.util.NoSuchElementException"),
        (".index", bytes(19), ("--index-sanity-check",), f"{CORRUPT_INDEX}Index file {{}}.index "
         "is corrupt, found 19 bytes which is neither positive nor a multiple of 8"),
        (".index", struct.pack(">ii", -5, 0), ("--index-sanity-check",),
         f"{CORRUPT_INDEX}Corrupt index "
         "found, index file {}.index has non-zero size but the last offset is -5 which is less "
         "than the base offset 0"),
        (".timeindex", struct.pack(">qiqi", 5, 1, 4, 1), ("--index-sanity-check",),
         f"{CORRUPT_INDEX}Corrupt time "
         "index found, time index file ({}.timeindex) has non-zero size but the last timestamp is "
         "4 which is less than the first timestamp 5"),
    ],
)  # fmt: skip
def test_index_that_cannot_be_dumped_is_reported(
    suffix: str, data: bytes, options: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    path = segment(tmp_path)
    path.with_suffix(suffix).write_bytes(data)

    dumped = dump(*options, "--files", path.with_suffix(suffix))

    assert 1 == dumped.status
    assert f"{reason.replace('{}', str(path))}\n" == dumped.err
    assert data == path.with_suffix(suffix).read_bytes()


@pytest.mark.parametrize(
    ("missing", "dumped", "reason"),
    [
        (".log", ".log", f"{KAFKAS}java.nio.file.NoSuchFileException: {{}}.log"),
        (".log", ".index", f"{KAFKAS}java.nio.file.NoSuchFileException: {{}}.log"),
        (".index", ".index", f"{ILLEGAL}Invalid max index size: -1"),
        (".index", ".timeindex", f"{ILLEGAL}Invalid max index size: -1"),
        (".timeindex", ".timeindex", f"{ILLEGAL}Invalid max index size: -1"),
        (".snapshot", ".snapshot", f"{KAFKAS}java.nio.file.NoSuchFileException: {{}}.snapshot"),
    ],
)
def test_missing_file_is_reported_and_not_created(
    missing: str, dumped: str, reason: str, tmp_path: Path
) -> None:
    """
    Kafka's tool creates a missing index.
    """
    path = segment(tmp_path)
    path.with_suffix(missing).unlink(missing_ok=True)
    before = sorted(tmp_path.iterdir())

    status, _, err = dump("--files", path.with_suffix(dumped))

    assert (1, f"{reason.replace('{}', str(path))}\n") == (status, err)
    assert before == sorted(tmp_path.iterdir())


def test_missing_transaction_index_is_printed_as_empty(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.txnindex"

    assert (0, f"Dumping {path}\n", "") == dump("--files", path)


def test_index_of_a_log_that_cannot_be_read_on_is_reported(tmp_path: Path) -> None:
    """
    Kafka's tool reads all headers up to the end of the log for each entry of a time index.
    """
    path = segment(tmp_path)
    with path.with_suffix(".log").open("ab") as log:
        log.write(bytes(40))

    dumped = dump("--files", path.with_suffix(".timeindex"))

    assert dumped.err.startswith(f"{CORRUPT}Found record size 0 smaller than minimum record")
