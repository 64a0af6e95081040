"""
What a lookup by time keeps in memory of a batch that expands to very much.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.record import Record, encode_records
from barnabas.storage.log.offsets_by_time import find_max_timestamp
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.segment.segments import LogSegments
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.bombs import memory_below
from tests.support.many_headers import headers_batch
from tests.support.record_bytes import sealed
from tests.support.segments import FIRST_TIMESTAMP, open_segment

NOW = FIRST_TIMESTAMP
MOST_MEMORY = 9 << 20  # two pieces of LZ4, the largest ones


def value_batch(codec: CompressionType, size: int = 32 << 20) -> bytes:
    records = encode_records([Record(0, NOW, None, bytes(size))], 0, NOW)
    return bytes(sealed(records, timestamp=NOW, compression=codec))


BATCHES: dict[str, Callable[[CompressionType], bytes]] = {
    "headers": lambda codec: bytes(headers_batch(300_000, codec, NOW)),
    "value": value_batch,
}
COMPRESSED = [codec for codec in CompressionType if codec]


def by_time(segment: LogSegment) -> int | None:
    found = segment.find_offset_by_timestamp(NOW, 0)
    return None if found is None else found.offset


def latest(segment: LogSegment) -> int | None:
    segments = LogSegments("t-0")
    segments.add(segment)
    found = find_max_timestamp(segments)
    return None if found is None else found.offset


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("kind", BATCHES)
@pytest.mark.parametrize("look", [by_time, latest])
def test_a_lookup_by_time_takes_the_memory_of_a_piece(
    look: Callable[[LogSegment], int | None], kind: str, codec: CompressionType
) -> None:
    segment = open_segment(files=MemoryFiles())
    segment.append(0, memoryview(BATCHES[kind](codec)))

    with memory_below(MOST_MEMORY):
        assert look(segment) == 0
