from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.compression import CompressionType
from barnabas.storage.errors import CorruptRecord, KafkaError, KafkaStorageError
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.fs.interface import WouldBlock
from barnabas.storage.segment.records import (
    BatchHeader,
    FileRecords,
    LogOffsetPosition,
    TimestampAndOffset,
)
from barnabas.testing.disks.memory import MemoryFile, MemoryFiles
from tests.support.disk import RecordingFiles
from tests.support.legacy_messages import Legacy, legacy_message, legacy_wrapper
from tests.support.segments import batch_of, padded_batch
from tests.support.some import some

D = Path("/data")
PATH = D / "00000000000000000000.log"


def records_of(*batches: Buffer, files: MemoryFiles | None = None) -> FileRecords:
    files = files or MemoryFiles()
    files.make_directory(D)
    records = FileRecords.open(files, PATH)
    for batch in batches:
        records.append(batch)
    return records


def damaged(*, length: int | None = None, magic: int | None = None) -> bytearray:
    """
    A batch with another length or magic byte in its header.
    """
    batch = bytearray(padded_batch(1))
    if length is not None:
        batch[8:12] = length.to_bytes(4, signed=True)
    if magic is not None:
        batch[16:17] = magic.to_bytes(1, signed=True)
    return batch


def walks(records: FileRecords) -> list[Callable[[], list[int]]]:
    """
    The ways to walk all batches; each returns their base offsets.
    """
    return [
        lambda: [batch.base_offset for batch in records.batches()],
        lambda: [header.base_offset for header in records.headers()],
        lambda: searched(records),
    ]


def searched(records: FileRecords) -> list[int]:
    found = [records.search_for_offset_from_position(offset, 0) for offset in (0, 9)]
    return [at.offset for at in found if at is not None]


# Opening and appending.


def test_file_positions_must_fit_an_int32(monkeypatch: pytest.MonkeyPatch) -> None:
    records = records_of(padded_batch(0))
    monkeypatch.setattr(records, "size", 2**31 - 100)
    with pytest.raises(ValueError, match="too large for segment"):
        records.append(padded_batch(1))

    files = MemoryFiles()
    files.make_directory(D)
    monkeypatch.setattr("barnabas.testing.disks.memory.MemoryFile.size", lambda self: 2**31)
    with pytest.raises(KafkaError, match="is larger than the maximum allowed segment size"):
        FileRecords.open(files, PATH)
    monkeypatch.setattr("barnabas.testing.disks.memory.MemoryFile.size", lambda self: 2**31 - 1)
    assert 2**31 - 1 == FileRecords.open(files, PATH).size


def test_read_only_file_is_neither_created_nor_written() -> None:
    files = MemoryFiles()
    files.make_directory(D)
    with pytest.raises(FileNotFoundError):
        FileRecords.open(files, PATH, mutable=False)
    records_of(padded_batch(0), files=files)

    records = FileRecords.open(files, PATH, mutable=False)

    assert 150 == records.size
    with pytest.raises(KafkaStorageError):
        records.append(padded_batch(1))


# Walking.


def test_iteration_returns_every_batch_from_any_position() -> None:
    records = records_of(
        batch_of(100, [5, 9, 7], leader_epoch=3), padded_batch(103, timestamp=8), padded_batch(110)
    )
    size = records.size - 300

    headers = list(records.headers())

    assert [
        BatchHeader(100, 102, 3, 9, 0, size),
        BatchHeader(103, 103, 0, 8, size, 150),
        BatchHeader(110, 110, 0, 1_700_000_000_110, size + 150, 150),
    ] == headers
    assert headers[1:] == list(records.headers(size))
    batches = list(records.batches(size))
    assert [103, 110] == [batch.base_offset for batch in batches]
    assert all(batch.is_valid() for batch in some(batches))
    assert bytes(records.batch_at(headers[1]).data) == bytes(batches[0].data)


# Where the length of the record needs one more byte, no batch of one record has that size.
SIZES = st.integers(80, 40_000).filter(lambda size: size not in (126, 8255))


@given(st.lists(SIZES, min_size=1, max_size=12))
def test_batches_of_any_size_are_found(sizes: list[int]) -> None:
    data = [padded_batch(at, size=size) for at, size in enumerate(sizes)]
    records = records_of(*data)

    assert [bytes(batch) for batch in data] == [bytes(batch.data) for batch in records.batches()]
    assert sizes == [header.size for header in records.headers()]
    position = 0
    for offset, size in enumerate(sizes):
        assert (offset, position, size) == records.search_for_offset_from_position(offset, 0)
        position += size


def test_small_batches_are_read_together() -> None:
    reads: list[int] = []

    class CountingFiles(MemoryFiles):
        def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
            if action == "read":
                reads.append(1)

    records = records_of(*(padded_batch(at) for at in range(50)), files=CountingFiles())

    for position in (0, 150):
        reads.clear()
        assert records.search_for_offset_from_position(49, position) is not None
        assert 1 == len(reads)
        reads.clear()
        assert 50 - position // 150 == len(list(records.headers(position)))
        assert 1 == len(reads)


def test_only_headers_are_read_among_large_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    records = records_of(*(padded_batch(at, size=20_000) for at in range(9)), padded_batch(9))
    sizes: list[int] = []
    read = MemoryFile.read

    def counting(self: MemoryFile, position: int, size: int, **options: Any) -> bytes | bytearray:
        sizes.append(size)
        return read(self, position, size, **options)

    monkeypatch.setattr(MemoryFile, "read", counting)

    found = records.search_for_offset_from_position(8, 0)

    assert found is not None
    assert (8, 8 * 20_000, 20_000) == found
    assert 9 == len(sizes)
    assert sum(sizes[1:]) < 1000
    sizes.clear()
    assert 10 == len(list(records.headers()))
    assert 10 == len(sizes)
    assert sum(sizes[1:]) < 1000


@pytest.mark.parametrize(
    "rest",
    [*(bytes(padded_batch(1))[:size] for size in range(0, 150, 7)), damaged(length=139, magic=0)],
)
def test_iteration_ends_before_an_incomplete_batch(rest: bytes | bytearray) -> None:
    records = records_of(padded_batch(0), rest)

    assert [[0]] * 3 == [walk() for walk in walks(records)]


@pytest.mark.parametrize("rest", range(18))
def test_trailing_17_bytes_are_not_a_batch(rest: int) -> None:
    records = records_of(padded_batch(0), bytes(rest))

    assert [[0]] * 3 == [walk() for walk in walks(records)]
    records.append(bytes(18 - rest))
    for walk in walks(records):
        with pytest.raises(CorruptRecord):
            walk()


@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        (bytes(100), "Found record size 0 smaller than minimum"),
        (damaged(length=-1), "record size -1 smaller"),
        (damaged(length=13), "record size 13 smaller"),
        (damaged(length=-(2**31)), "smaller"),
        (damaged(magic=-1), "format version -1"),
    ],
)
def test_impossible_batch_header_is_corrupt(batch: bytes | bytearray, sentence: str) -> None:
    for walk in walks(records_of(padded_batch(0), batch)):
        with pytest.raises(CorruptRecord, match=sentence) as found:
            walk()
        assert (PATH, 150) == (found.value.path, found.value.position)


def test_batch_with_less_than_a_header_of_its_version_is_corrupt() -> None:
    with pytest.raises(CorruptRecord, match="the size 60 is smaller than the minimum"):
        list(records_of(damaged(length=48)).batches())


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_iterated_like_batches(magic: int) -> None:
    inner = [Legacy(at + 1 - magic, None, b"x", 10 + at) for at in range(3)]
    old = [
        legacy_message(magic, 0, b"k", b"v", timestamp=9),
        legacy_wrapper(magic, CompressionType.GZIP, inner, offset=3, timestamp=12),
        legacy_message(magic, 9, None, None, timestamp=11),
    ]
    at = [0, len(old[0]), len(old[0]) + len(old[1])]
    records = records_of(*old)
    newest = 12 if magic else -1

    assert [(0, 0), (1, 3), (9, 9)] == [
        (header.base_offset, header.last_offset) for header in records.headers()
    ]
    assert [0, 1, 2, 3, 9] == [
        record.offset for batch in records.batches() for record in batch.records()
    ]
    assert at == [header.position for header in records.headers()]
    for target, (base_offset, number) in {0: (0, 0), 1: (1, 1), 3: (1, 1), 4: (9, 2)}.items():
        found = records.search_for_offset_from_position(target, 0)
        assert LogOffsetPosition(base_offset, at[number], len(old[number])) == found
    assert records.search_for_offset_from_position(10, 0) is None
    assert TimestampAndOffset(newest, 3 if magic else -1, None) == records.largest_timestamp_after(
        0
    )
    found_time = records.search_for_timestamp(11, 0, 0)
    assert (TimestampAndOffset(11, 2, None) if magic else None) == found_time
    assert [9] == [
        record.offset for record in records.batch_at(list(records.headers())[2]).records()
    ]


# Searching.


def test_nonblocking_offset_search_raises_would_block_on_cold_pages() -> None:
    files = MemoryFiles()
    records = records_of(padded_batch(0), files=files)
    files.is_cold = True

    with pytest.raises(WouldBlock):
        records.search_for_offset_from_position(0, 0, nowait=True)
    assert records.search_for_offset_from_position(0, 0) is not None


def test_time_search_skips_records_below_the_start_offset() -> None:
    """
    DeleteRecords may have moved the start into the middle of a batch.
    """
    records = records_of(batch_of(0, [300, 100]), batch_of(2, [250], leader_epoch=-1))

    assert TimestampAndOffset(250, 2, None) == records.search_for_timestamp(200, 0, 1)


def test_max_timestamp_is_that_of_the_earliest_batch_that_has_it() -> None:
    records = records_of(
        batch_of(0, [5, 9], leader_epoch=1), batch_of(2, [9, 8], leader_epoch=2), batch_of(4, [7])
    )
    second = list(records.headers())[1].position

    assert TimestampAndOffset(9, 1, 1) == records.largest_timestamp_after(0)
    assert TimestampAndOffset(9, 3, 2) == records.largest_timestamp_after(second)
    assert TimestampAndOffset(-1, -1, None) == records.largest_timestamp_after(records.size)


# Slices, truncation, the file as a whole.


def test_slice_is_read_later() -> None:
    records = records_of(padded_batch(0), padded_batch(1))

    middle, end = records.slice(100, 100), records.slice(200, 1000)

    assert (100, 100, 100) == (middle.position, middle.size, len(middle.read()))
    assert bytes(padded_batch(1))[50:] == bytes(end.read())
    assert 0 == records.slice(300, 10).size


@pytest.mark.parametrize(("position", "size"), [(-1, 1), (301, 1), (0, -1)])
def test_slice_beyond_the_file_is_an_error(position: int, size: int) -> None:
    with pytest.raises(ValueError, match=r"Slice from position|Invalid size"):
        records_of(padded_batch(0), padded_batch(1)).slice(position, size)


@pytest.mark.scenario(54)
def test_slice_outlives_its_file(tmp_path: Path) -> None:
    """
    Retention may remove a segment that is being sent.
    """
    records = FileRecords.open(DiskFiles(), tmp_path / "0.log")
    records.append(padded_batch(0))
    slice_ = records.slice(0, 150)

    assert records.delete_if_exists()
    del records

    assert not (tmp_path / "0.log").exists()
    assert bytes(padded_batch(0)) == bytes(slice_.read(nowait=True))


def test_truncation_removes_whole_batches_and_returns_the_byte_count() -> None:
    files = MemoryFiles()
    records = records_of(padded_batch(0), padded_batch(1), files=files)

    assert 150 == records.truncate_to(150)
    assert 0 == records.truncate_to(150)
    assert (150, 150) == (records.size, files.size(PATH))
    for size in (151, -1):
        with pytest.raises(ValueError, match="Attempt to truncate"):
            records.truncate_to(size)
    assert 150 == records.truncate_to(0)
    assert (0, 0) == (records.size, files.size(PATH))


def test_close_flushes_before_it_trims() -> None:
    files = RecordingFiles()
    files.make_directory(D)
    records = FileRecords.open(files, PATH, init_file_size=1000)
    records.append(padded_batch(0))
    files.operations.clear()

    records.close()

    assert [f"sync {PATH.name}", f"truncate {PATH.name}"] == files.operations
