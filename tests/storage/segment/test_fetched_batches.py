"""
The headers of batches in a slice of a segment.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.errors import CorruptRecord
from barnabas.storage.fs.interface import File
from barnabas.storage.segment.fetch_data import FileSlice
from barnabas.storage.segment.fetched_batches import fetched_batches
from barnabas.testing.disks.memory import MemoryFiles


def batch(base_offset: int, count: int = 2, size: int = 10, producer_id: int = -1) -> bytes:
    records = [SimpleRecord(1, None, b"v" * size) for _ in range(count)]
    if producer_id < 0:
        return bytes(build_batch(records, base_offset=base_offset))
    return bytes(
        build_batch(
            records,
            base_offset=base_offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
    )


def file_of(*parts: bytes) -> File:
    files = MemoryFiles()
    file = files.open(Path("/segment"))
    file.append(b"".join(parts))
    return file


def test_batches_of_any_size_are_found() -> None:
    """
    A last batch cut off by the slice is left out.
    """
    parts = [batch(0), batch(2, size=20_000), batch(4), batch(6, count=1, size=5000), batch(7)]
    file = file_of(b"before", *parts)
    size = sum(map(len, parts))

    found = fetched_batches(FileSlice(file, 6, size), last_known=0, most=100)

    assert [(0, 1), (2, 3), (4, 5), (6, 6), (7, 8)] == [
        (each.base_offset, each.last_offset) for each in found
    ]
    position = 6
    for each, part in zip(found, parts, strict=True):
        assert (position, len(part)) == (each.position, each.size)
        position += len(part)
    cut = fetched_batches(FileSlice(file, 6, size - 1), last_known=0, most=100)
    assert 4 == len(cut)


@pytest.mark.parametrize(
    ("last_known", "most", "count"), [(0, 1, 1), (0, 2, 2), (4, 2, 4), (9, 9, 5)]
)
def test_batch_lookup_ends_at_the_requested_offset_or_count(
    last_known: int, most: int, count: int
) -> None:
    parts = [batch(offset) for offset in range(0, 10, 2)]
    file = file_of(*parts)

    found = fetched_batches(
        FileSlice(file, 0, sum(map(len, parts))), last_known=last_known, most=most
    )

    assert count == len(found)


def test_transactional_batches_and_their_markers_are_distinguished() -> None:
    markers = [
        bytes(
            EndTransactionMarker(kind, 0).batch(
                1, base_offset=offset, producer_id=5, producer_epoch=0
            )
        )
        for offset, kind in ((2, ControlRecordType.COMMIT), (5, ControlRecordType.ABORT))
    ]
    parts = [batch(0, producer_id=5), markers[0], batch(3, producer_id=6), markers[1]]
    file = file_of(*parts)

    found = fetched_batches(FileSlice(file, 0, sum(map(len, parts))), last_known=0, most=99)

    assert [(5, True, False), (5, True, False), (6, True, False), (5, True, True)] == [
        (each.producer_id, each.is_transactional, each.is_abort_marker) for each in found
    ]


def test_malformed_batch_is_an_error() -> None:
    file = file_of(b"\0" * 100)

    with pytest.raises(CorruptRecord):
        fetched_batches(FileSlice(file, 0, 100), last_known=0, most=99)
