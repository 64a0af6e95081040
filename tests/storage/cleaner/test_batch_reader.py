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


@pytest.mark.parametrize(
    ("sizes", "options", "offsets", "reads"),
    [
        ([150] * 5, {}, [[0, 1], [2, 3], [4]], [400, 400, 150]),
        ([150] * 5, {"position": 300}, [[2, 3], [4]], [400, 150]),
        ([], {}, [], []),
        ([150, 500, *[150] * 5], {}, [[0], [1, 2, 3], [4, 5, 6]], [400, 400, 800, 450]),
        ([900, *[150] * 4], {}, [[0], [1, 2, 3, 4]], [400, 1000, 600]),
        ([900, *[150] * 4], {"max_buffer_bytes": 1600}, [[0, 1, 2, 3, 4]], [400, 1500]),
        ([1200, 150], {}, [[0], [1]], [400, 1200, 150]),
    ],
    ids=[
        "only whole batches",
        "from a position on",
        "an empty segment",
        "doubled for a larger batch",
        "doubled up to max.message.bytes",
        "doubled up to a larger limit",
        "as large as a batch beyond max.message.bytes",
    ],
)
def test_buffer_grows_to_the_size_of_the_batches(
    sizes: list[int], options: dict[str, int], offsets: list[list[int]], reads: list[int]
) -> None:
    assert (offsets, reads) == read(records_of(*sizes), **options)


def test_buffer_is_small_again_for_the_next_segment() -> None:
    throttled: list[int] = []
    reader = BatchReader(400, 400, throttled.append)
    records = records_of(900, 150)

    for _ in range(2):
        assert 2 == len(list(reader.read(records, max_message_bytes=1000)))

    assert [400, 1000, 150] * 2 == throttled


@pytest.mark.parametrize(
    ("left", "sentence"),
    [
        (100, "batch size 150 > 100 bytes left"),
        *((left, "Could not determine next batch size") for left in (1, 11, 16)),
    ],
)
def test_incomplete_batch_at_the_end_of_a_segment_is_an_error(left: int, sentence: str) -> None:
    records = records_of(150, 150, behind=bytes(padded_batch(2))[:left])

    with pytest.raises(CorruptRecord, match=sentence) as error:
        read(records)
    assert (PATH, 300) == (error.value.path, error.value.position)


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
    records = records_of(900, 600)
    records._open.get().truncate(left)

    with pytest.raises(CorruptRecord) as error:
        read(records)
    assert (PATH, 0 if left < 900 else 900) == (error.value.path, error.value.position)
