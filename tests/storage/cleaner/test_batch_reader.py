"""
All batches of a segment, through a buffer that may be too small.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.errors import CorruptMessage
from barnabas.storage.cleaner.batch_reader import BatchReader
from barnabas.storage.errors import CorruptRecord
from barnabas.storage.segment.records import FileRecords
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.segments import padded_batch

PATH = Path("/data/t-0/00000000000000000000.log")


def records_of(*sizes: int, behind: bytes = b"") -> FileRecords:
    """
    A file with batches of some *sizes*.
    """
    files = MemoryFiles()
    files.make_directory(PATH.parent)
    records = FileRecords.open(files, PATH)
    for offset, size in enumerate(sizes):
        records.append(padded_batch(offset, size=size))
    records.append(behind)
    return records


def read(
    records: FileRecords,
    *,
    position: int = 0,
    buffer_bytes: int = 400,
    max_buffer_bytes: int = 400,
    max_message_bytes: int = 1000,
) -> tuple[list[list[int]], list[int]]:
    """
    The offsets of the batches of each read, and how many bytes each of them took.
    """
    throttled: list[int] = []
    reader = BatchReader(buffer_bytes, max_buffer_bytes, throttled.append)
    found = [
        [batch.base_offset for batch in piece.batches]
        for piece in reader.read(records, position, max_message_bytes=max_message_bytes)
    ]
    return found, throttled


def test_read_returns_only_whole_batches() -> None:
    assert ([[0, 1], [2, 3], [4]], [400, 400, 150]) == read(records_of(*[150] * 5))


def test_read_begins_at_the_given_position() -> None:
    assert ([[2, 3], [4]], [400, 150]) == read(records_of(*[150] * 5), position=300)


def test_read_of_an_empty_segment_returns_nothing() -> None:
    assert ([], []) == read(records_of())


def test_buffer_doubles_for_a_larger_batch() -> None:
    records = records_of(150, 500, 150, 150, 150, 150, 150)

    assert ([[0], [1, 2, 3], [4, 5, 6]], [400, 400, 800, 450]) == read(records)


def test_buffer_doubles_up_to_max_message_bytes() -> None:
    records = records_of(900, *[150] * 4)

    assert ([[0], [1, 2, 3, 4]], [400, 1000, 600]) == read(records)
    assert ([[0, 1, 2, 3, 4]], [400, 1500]) == read(records, max_buffer_bytes=1600)


def test_buffer_grows_to_the_size_of_a_batch_beyond_max_message_bytes() -> None:
    assert ([[0], [1]], [400, 1200, 150]) == read(records_of(1200, 150))


def test_buffer_is_small_again_for_the_next_segment() -> None:
    throttled: list[int] = []
    reader = BatchReader(400, 400, throttled.append)
    records = records_of(900, 150)

    for _ in range(2):
        assert 2 == len(list(reader.read(records, max_message_bytes=1000)))

    assert [400, 1000, 150] * 2 == throttled


def test_incomplete_batch_at_the_end_of_a_segment_is_an_error() -> None:
    records = records_of(150, 150, behind=bytes(padded_batch(2))[:100])

    with pytest.raises(CorruptRecord, match="batch size 150 > 100 bytes left") as error:
        read(records)
    assert (PATH, 300) == (error.value.path, error.value.position)


@pytest.mark.parametrize("left", [1, 11, 16])
def test_end_of_a_segment_too_short_for_a_size_field_is_an_error(left: int) -> None:
    records = records_of(150, behind=bytes(padded_batch(1))[:left])

    with pytest.raises(CorruptRecord, match="Could not determine next batch size"):
        read(records)


@pytest.mark.parametrize(
    ("at", "value"), [(8, b"\xff\xff\xff\xff"), (8, b"\0\0\0\x0d"), (16, b"\x03"), (16, b"\xff")]
)
def test_malformed_batch_header_is_an_error(at: int, value: bytes) -> None:
    batch = bytearray(padded_batch(1))
    batch[at : at + len(value)] = value

    with pytest.raises(CorruptMessage):
        read(records_of(150, behind=bytes(batch)))


@pytest.mark.parametrize("left", [0, 10, 300, 400, 450, 899, 900, 1000])
def test_segment_file_shortened_after_opening_is_an_error(left: int) -> None:
    """
    The reader expects all batches that the segment had when it was opened.
    """
    records = records_of(900, 600)
    records._open.get().truncate(left)

    with pytest.raises(CorruptRecord) as error:
        read(records)
    assert (PATH, 0 if left < 900 else 900) == (error.value.path, error.value.position)
