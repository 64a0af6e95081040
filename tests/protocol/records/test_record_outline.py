"""
Outlines of records, beside the objects of the same records.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import InvalidRecord
from barnabas.protocol.records.batch import RecordBatch, read_batch, seal_batch
from barnabas.protocol.records.outline import RecordOutline, outlines
from barnabas.protocol.records.record import Header, Record, encode_records
from tests.support.compiled import plain
from tests.support.many_headers import batch_with_headers

PLAIN: Any = plain("barnabas.protocol.records.outline")
RUNS = pytest.mark.parametrize("run", [outlines, PLAIN.outlines], ids=["run", "plain"])
DATA = st.none() | st.binary(max_size=9) | st.sampled_from((63, 64, 8191, 8192)).map(bytes)
RECORDS = st.lists(
    st.builds(
        Record,
        st.integers(-5, 2**31 - 1),
        st.integers(-10, 20_000) | st.integers(-(2**62), 2**62),
        DATA,
        DATA,
        st.lists(
            st.builds(Header, st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3
        ).map(tuple),
    ),
    min_size=1,
    max_size=4,
)


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


def memory_of_outlines(batch: RecordBatch) -> int:
    tracemalloc.start()
    try:
        for _ in batch.outlines():
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", list(CompressionType))
def test_outlines_take_the_memory_of_a_piece(codec: CompressionType) -> None:
    value = bytes(16 << 20)
    records = encode_records([Record(0, 0, None, value)], 0, 0)
    sealed = seal_batch(
        records, 1, base_offset=0, last_offset_delta=0, base_timestamp=0, max_timestamp=0,
        compression=codec,
    )  # fmt: skip
    most = 5 << 20 if codec is CompressionType.LZ4 else 2 << 20
    assert memory_of_outlines(read_batch(memoryview(sealed))) < most
    assert memory_of_outlines(batch_with_headers(500_000, codec)) < most
