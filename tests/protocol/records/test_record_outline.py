from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import InvalidRecord
from barnabas.protocol.records.batch import read_batch
from barnabas.protocol.records.outline import RecordOutline, outlines
from barnabas.protocol.records.record import Record, encode_records
from tests.support.bombs import memory_below
from tests.support.compiled import plain
from tests.support.many_headers import batch_with_headers
from tests.support.record_bytes import record_lists, sealed

PLAIN: Any = plain("barnabas.protocol.records.outline")
RUNS = pytest.mark.parametrize("run", [outlines, PLAIN.outlines], ids=["run", "plain"])
RECORDS = record_lists((63, 64, 8191, 8192), min_size=1, max_size=4)


def size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def outline(record: Record) -> RecordOutline:
    offset, timestamp, key, value, headers = record
    return RecordOutline(offset, timestamp, size(key), size(value), len(headers))


def walked(run: Any, data: bytes, count: int, piece: int) -> list[tuple[int, ...]]:
    pieces = [data[at : at + piece] for at in range(0, len(data), piece)]
    found = run(pieces, count, base_offset=0, base_timestamp=0, log_append_time=None)
    return [tuple(each) for each in found]


@RUNS
@given(records=RECORDS, piece=st.integers(1, 40) | st.just(1 << 20))
def test_outlines_are_those_of_the_records_however_they_are_cut(
    run: Any, records: list[Record], piece: int
) -> None:
    data = bytes(encode_records(records, 0, 0))
    assert walked(run, data, len(records), piece) == [tuple(outline(each)) for each in records]


@RUNS
@given(records=RECORDS, cut=st.integers(1, 60), piece=st.integers(1, 40))
def test_a_batch_that_is_cut_or_too_long_is_refused(
    run: Any, records: list[Record], cut: int, piece: int
) -> None:
    data = bytes(encode_records(records, 0, 0))
    with pytest.raises(InvalidRecord):
        walked(run, data[:-cut], len(records), piece)
    with pytest.raises(InvalidRecord):
        walked(run, data + bytes(cut), len(records), piece)


@RUNS
@given(data=st.binary(max_size=60), count=st.integers(-1, 4), piece=st.integers(1, 9))
def test_any_bytes_are_records_or_refused(run: Any, data: bytes, count: int, piece: int) -> None:
    try:
        found = walked(run, data, count, piece)
    except InvalidRecord:
        return
    assert len(found) == count


@pytest.mark.parametrize("codec", list(CompressionType))
@pytest.mark.parametrize("count", [0, 1, 50_000])
def test_outline_counts_headers(codec: CompressionType, count: int) -> None:
    (found,) = batch_with_headers(count, codec).outlines()

    assert found.header_count == count


@pytest.mark.parametrize("codec", list(CompressionType))
def test_outlines_take_the_memory_of_a_piece(codec: CompressionType) -> None:
    value = bytes(16 << 20)
    data = sealed(encode_records([Record(0, 0, None, value)], 0, 0), compression=codec)
    most = 5 << 20 if codec is CompressionType.LZ4 else 2 << 20
    for batch in (read_batch(memoryview(data)), batch_with_headers(500_000, codec)):
        with memory_below(most):
            for _ in batch.outlines():
                pass
