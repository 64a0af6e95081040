from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.errors import CorruptRecord
from barnabas.storage.segment.fetch_data import FileSlice
from barnabas.storage.segment.fetched_batches import FetchedBatch, fetched_batches
from barnabas.testing.disks.memory import MemoryFiles


def batch(base_offset: int, count: int = 2, size: int = 10, **producer: Any) -> bytes:
    records = [SimpleRecord(1, None, b"v" * size) for _ in range(count)]
    return bytes(build_batch(records, base_offset=base_offset, **producer))


def transactional(base_offset: int, producer_id: int) -> bytes:
    producer = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
    return batch(base_offset, is_transactional=True, **producer)


def found_in(
    *parts: bytes, cut: int = 0, last_known: int = 0, most: int = 100
) -> list[FetchedBatch]:
    """
    What is found in a slice with *parts*, behind other bytes of the file, but for the last *cut*.
    """
    file = MemoryFiles().open(Path("/segment"))
    file.append(b"before" + b"".join(parts))
    part = FileSlice(file, 6, sum(map(len, parts)) - cut)
    return fetched_batches(part, last_known=last_known, most=most)


def test_batches_of_any_size_are_found() -> None:
    parts = [batch(0), batch(2, size=20_000), batch(4), batch(6, count=1, size=5000), batch(7)]

    found = found_in(*parts)

    assert [(0, 1), (2, 3), (4, 5), (6, 6), (7, 8)] == [
        (each.base_offset, each.last_offset) for each in found
    ]
    positions = accumulate(map(len, parts), initial=6)
    assert list(zip(positions, map(len, parts), strict=False)) == [
        (each.position, each.size) for each in found
    ]
    assert 4 == len(found_in(*parts, cut=1))


@pytest.mark.parametrize(
    ("last_known", "most", "count"), [(0, 1, 1), (0, 2, 2), (4, 2, 4), (9, 9, 5)]
)
def test_batch_lookup_ends_at_the_requested_offset_or_count(
    last_known: int, most: int, count: int
) -> None:
    parts = [batch(offset) for offset in range(0, 10, 2)]

    assert count == len(found_in(*parts, last_known=last_known, most=most))


def test_transactional_batches_and_their_markers_are_distinguished() -> None:
    commit, abort = (
        EndTransactionMarker(kind, 0).batch(1, base_offset=offset, producer_id=5, producer_epoch=0)
        for offset, kind in ((2, ControlRecordType.COMMIT), (5, ControlRecordType.ABORT))
    )

    found = found_in(transactional(0, 5), bytes(commit), transactional(3, 6), bytes(abort))

    assert [(5, True, False), (5, True, False), (6, True, False), (5, True, True)] == [
        (each.producer_id, each.is_transactional, each.is_abort_marker) for each in found
    ]


def test_malformed_batch_is_an_error() -> None:
    with pytest.raises(CorruptRecord):
        found_in(b"\0" * 100)
