from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.pipeline.decoding.arena import BadBatch
from barnabas.pipeline.decoding.batch_headers import walk
from barnabas.pipeline.decoding.decode import (
    OffsetRange,
    RowPartition,
    Wanted,
    bad_checksums,
    decode,
)
from barnabas.pipeline.schemas import RECORDS
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import batches as batches_in
from barnabas.protocol.records.batch import build_batch_with_offsets, seal_batch
from barnabas.protocol.records.record import Header, Record, encode_records

PLACE = RowPartition("events", 3)
NO_HEADERS: tuple[Header, ...] = ()


def record(offset: int, *, size: int = 3, timestamp: int = 1_700_000_000_000) -> Record:
    return Record(offset, timestamp + offset, b"k%d" % offset, bytes(size), NO_HEADERS)


def rows(data: bytes | bytearray, **options: Any) -> list[dict[str, Any]]:
    offsets = options.pop("offsets", OffsetRange())
    wanted = Wanted(**options)
    buffer = bytes(data)
    found = walk(buffer)
    assert len(buffer) == found.end
    batches = list(decode(buffer, found.headers, PLACE, wanted, offsets))
    for batch in batches:
        batch.validate(full=True)
        assert wanted.schema == batch.schema
    return [row for batch in batches for row in batch.to_pylist()]


def expected_rows(data: bytes | bytearray) -> list[dict[str, Any]]:
    return [
        {
            "key": record.key,
            "value": record.value,
            "topic": PLACE.topic,
            "partition": PLACE.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestampType": int(batch.timestamp_type),
            "headers": [header._asdict() for header in record.headers] or None,
        }
        for batch in batches_in(bytes(data))
        for record in batch.records()
    ]


def in_ms(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """
    Timestamps as numbers, for Python cannot hold all of them.
    """
    for row in found:
        if row["timestamp"] is not None:
            us = pa.scalar(row["timestamp"]).value
            assert us % 1000 == 0
            row["timestamp"] = us // 1000
    return list(found)


some_bytes = st.none() | st.binary(max_size=200)
some_headers = st.lists(
    st.builds(Header, st.text(st.characters(exclude_categories=["Cs"]), max_size=70), some_bytes),
    max_size=4,
).map(tuple)
some_batches = st.lists(
    st.tuples(
        st.sampled_from(CompressionType),
        st.none() | st.integers(0, 2**40),
        st.lists(
            st.tuples(
                st.integers(1, 1 << 20) | st.just(1),
                st.integers(0, 2**42),
                some_bytes,
                some_bytes,
                some_headers,
            ),
            max_size=12,
        ),
    ),
    min_size=1,
    max_size=8,
)


def build(batches: list[Any], *, base_offset: int) -> bytearray:
    out = bytearray()
    offset = base_offset
    for codec, log_append_time, steps in batches:
        base = offset
        records = []
        for gap, timestamp, key, value, headers in steps:
            records.append(Record(offset, timestamp, key, value, headers))
            offset += gap
        out += build_batch_with_offsets(
            records,
            base_offset=base,
            compression=codec,
            log_append_time=log_append_time,
            last_offset=offset if not records else None,
        )
        offset += 1
    return out


@settings(max_examples=60)
@given(some_batches, st.integers(0, 2**50))
def test_decoded_rows_equal_those_read_one_by_one(batches: list[Any], base_offset: int) -> None:
    data = build(batches, base_offset=base_offset)

    assert expected_rows(data) == in_ms(rows(data))


@settings(max_examples=60)
@given(
    some_batches,
    st.integers(0, 3 << 20),
    st.integers(0, 3 << 20),
    st.lists(st.sampled_from(RECORDS.names), unique=True, min_size=1),
)
def test_requested_columns_and_offsets_are_returned(
    batches: list[Any], start: int, length: int, columns: list[str]
) -> None:
    data = build(batches, base_offset=10)

    found = rows(data, columns=tuple(columns), offsets=OffsetRange(start, start + length))

    if "timestamp" in columns:
        found = in_ms(found)
    assert [
        {name: row[name] for name in columns}
        for row in expected_rows(data)
        if start <= row["offset"] < start + length
    ] == found


@pytest.mark.parametrize("per_batch", [1, 3, 2000])
def test_large_and_small_batches_are_decoded_alike(per_batch: int) -> None:
    """
    Large batches are decoded by a loop, and many small ones side by side. The sizes are around
    those where a length needs one byte more.
    """
    sizes = [0, 48, 49, 50, 51, 8_170, 8_180, 8_190, 8_200]
    records = [record(offset, size=sizes[offset % len(sizes)]) for offset in range(2000)]
    data = bytearray()
    for base in range(0, len(records), per_batch):
        data += build_batch_with_offsets(records[base : base + per_batch], base_offset=base)

    assert expected_rows(data) == in_ms(rows(data))


def test_decoding_works_in_chunks_of_limited_size() -> None:
    data = bytearray()
    for base in range(0, 40, 10):
        data += build_batch_with_offsets(
            [record(offset, size=1000) for offset in range(base, base + 10)],
            base_offset=base,
            compression=CompressionType.ZSTD,
        )
    buffer = bytes(data)
    wanted = Wanted(columns=("offset",), enough_bytes=15_000)

    pieces = list(decode(buffer, walk(buffer).headers, PLACE, wanted))

    assert [20, 20] == [piece.num_rows for piece in pieces]


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec])
def test_decompression_bomb_is_refused(codec: CompressionType) -> None:
    good = build_batch_with_offsets([record(0)], base_offset=0)
    bomb = build_batch_with_offsets([record(1, size=3_000_000)], base_offset=1, compression=codec)

    with pytest.raises(BadBatch) as caught:
        rows(good + bomb, max_batch_bytes=2_000_000)

    assert (1, True) == (caught.value.index, caught.value.too_large)
    assert codec.name.lower() in caught.value.reason
    assert "2000000" in caught.value.reason


def test_timestamp_before_1970_is_an_ordinary_one() -> None:
    buffer = bytes(build_batch_with_offsets([Record(0, -1, None, None)], base_offset=0))

    (batch,) = decode(buffer, walk(buffer).headers, PLACE, Wanted(("timestamp",)))

    assert [-1000] == batch.column(0).cast(pa.int64()).to_pylist()


def test_header_key_with_invalid_utf_8_is_replaced() -> None:
    payload = encode_records([Record(0, 0, None, None, (Header("??", b"x"),))], 0, 0)
    payload = payload.replace(b"??", b"\xff?")
    data = seal_batch(
        payload, 1, base_offset=0, last_offset_delta=0, base_timestamp=0, max_timestamp=0
    )

    assert [{"key": "\ufffd?", "value": b"x"}] == rows(data)[0]["headers"]


@settings(max_examples=150)
@given(
    st.integers(0, 60), st.integers(1, 255), st.sampled_from([1, 3]), st.sampled_from([1, 2, 30])
)
def test_malformed_records_are_detected(at: int, flip: int, filler: int, copies: int) -> None:
    """
    A changed byte gives other records or an error, exactly as in the plain reader; the error names
    the first malformed batch.
    """
    headers = (Header("h", b"1"), Header("n", None))
    records = [Record(i, i, b"key", b"value", headers) for i in range(3)]
    payload = encode_records(records, 0, 0)
    broken = bytearray(payload)
    broken[at % len(broken)] ^= flip
    data = bytearray()
    for content in [payload] * filler + [broken] * copies:
        data += seal_batch(
            content, 3, base_offset=0, last_offset_delta=2, base_timestamp=0, max_timestamp=2
        )
    try:
        expected = expected_rows(data)
    except Exception:
        with pytest.raises(BadBatch) as caught:
            rows(data)
        assert filler == caught.value.index
    else:
        assert expected == in_ms(rows(data))


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 2**31 - 1])
def test_wrong_record_count_is_detected(count: int) -> None:
    payload = encode_records([record(0), record(1)], 0, 0)
    data = seal_batch(
        payload, count, base_offset=0, last_offset_delta=1, base_timestamp=0, max_timestamp=0
    )

    if count == 0:
        assert [] == rows(data)  # Nothing is looked at, as in Kafka.
    else:
        with pytest.raises(BadBatch):
            rows(data)


def test_checksums_are_verified_per_batch() -> None:
    data = bytearray()
    starts = []
    for base in range(5):
        starts.append(len(data))
        data += build_batch_with_offsets([record(base)], base_offset=base)
    for index in (1, 4):
        data[starts[index] + 65] ^= 1
    buffer = bytes(data)

    assert [1, 4] == bad_checksums(buffer, walk(buffer).headers)


def test_walk_ends_where_no_whole_batch_begins() -> None:
    """
    A truncated batch reports its full length, and zeros report none.
    """
    data = bytes(build_batch_with_offsets([record(0)], base_offset=0))

    cut = walk(data + data[:-1])
    zeros = walk(data + bytes(100))
    little = walk(data + bytes(60))

    assert (1, len(data), len(data)) == (len(cut.headers), cut.end, cut.next_size)
    assert (1, len(data), -1) == (len(zeros.headers), zeros.end, zeros.next_size)
    assert (1, len(data), 0) == (len(little.headers), little.end, little.next_size)
    assert np.array_equal(cut.headers, zeros.headers)
