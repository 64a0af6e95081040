"""
A look-up by time reads a large batch in pieces, compressed or not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.log.offsets_by_time import find_max_timestamp
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.segment.segments import LogSegments
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.bombs import memory_below
from tests.support.segments import FIRST_TIMESTAMP, open_segment

MIB: Final = 1 << 20
NOW: Final = FIRST_TIMESTAMP


def by_time(segment: LogSegment) -> int | None:
    found = segment.find_offset_by_timestamp(NOW + 2, 0)
    return None if found is None else found.offset


def latest(segment: LogSegment) -> int | None:
    segments = LogSegments("t-0")
    segments.add(segment)
    found = find_max_timestamp(segments)
    return None if found is None else found.offset


@pytest.mark.parametrize("look", [by_time, latest])
def test_look_up_by_time_reads_a_large_batch_in_pieces(
    look: Callable[[LogSegment], int | None],
) -> None:
    records = [
        SimpleRecord(NOW + number, b"key", bytes(size))
        for number, size in enumerate([5 * MIB, 10, 6 * MIB])
    ]
    segment = open_segment(files=MemoryFiles())
    segment.append(2, memoryview(build_batch(records)))

    with memory_below(MIB):
        found = look(segment)

    assert 2 == found
