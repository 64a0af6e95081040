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
LAST = NOW + 2
MOST_MEMORY = 9 << 20  # two pieces of LZ4, the largest ones
MOST_UNCOMPRESSED = 1 << 20


def value_batch(codec: CompressionType) -> bytes:
    records = [
        Record(number, NOW + number, None, bytes(size))
        for number, size in enumerate((16 << 20, 10, 16 << 20))
    ]
    payload = encode_records(records, 0, NOW)
    return bytes(
        sealed(payload, len(records), timestamp=NOW, compression=codec, max_timestamp=LAST)
    )


BATCHES: dict[str, Callable[[CompressionType], bytes]] = {
    "headers": lambda codec: bytes(headers_batch(300_000, codec, LAST)),
    "values": value_batch,
}
"""The last record of each has the timestamp ``LAST``."""


def by_time(segment: LogSegment) -> int | None:
    found = segment.find_offset_by_timestamp(LAST, 0)
    return None if found is None else found.offset


def latest(segment: LogSegment) -> int | None:
    segments = LogSegments("t-0")
    segments.add(segment)
    found = find_max_timestamp(segments)
    return None if found is None else found.offset


@pytest.mark.parametrize("codec", CompressionType)
@pytest.mark.parametrize(("kind", "last_offset"), [("headers", 0), ("values", 2)])
@pytest.mark.parametrize("look", [by_time, latest])
def test_a_lookup_by_time_takes_the_memory_of_a_piece(
    look: Callable[[LogSegment], int | None], kind: str, last_offset: int, codec: CompressionType
) -> None:
    segment = open_segment(files=MemoryFiles())
    segment.append(last_offset, memoryview(BATCHES[kind](codec)))

    with memory_below(MOST_MEMORY if codec else MOST_UNCOMPRESSED):
        assert look(segment) == last_offset
