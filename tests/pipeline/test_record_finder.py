from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.pipeline.decoding import find as record_finder
from barnabas.pipeline.decoding.arena import Arena
from barnabas.pipeline.decoding.arrow import pieces
from barnabas.pipeline.decoding.batch_headers import HEADERS
from barnabas.pipeline.decoding.find import find_records, spans_by_walk
from barnabas.pipeline.decoding.record_arrays import spans_by_arrays
from barnabas.pipeline.decoding.spans import Fields, RecordSpans
from barnabas.pipeline.decoding.varint_columns import MalformedRecords
from barnabas.protocol.errors import InvalidRecord
from barnabas.protocol.records.record import Header, Record, encode_records, iter_records
from tests.support.compiled import compiled, plain
from tests.support.some import some

NAME = "barnabas.pipeline.decoding.record_walk"
PLAIN = plain(NAME)

Found = list[list[Any]]


def found(raw: bytes, spans: RecordSpans) -> Found:
    arrays: list[npt.NDArray[np.int64]] = [
        spans.ends,
        spans.timestamps,
        spans.offsets,
        spans.header_counts,
        np.where(spans.header_counts > 0, spans.headers_at, -1),
    ]
    data = np.frombuffer(raw, np.uint8)
    fields = [pieces(data, spans.keys).to_pylist(), pieces(data, spans.values).to_pylist()]
    return [*(array.tolist() for array in arrays), *fields]


def by_walk(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_finder, "_find", spans_by_walk)
    monkeypatch.setattr(record_finder, "RecordFields", module.RecordFields)
    monkeypatch.setattr(record_finder, "_kept", record_finder._Kept())


def find(
    raw: bytes,
    counts: Sequence[int],
    ends: Sequence[int],
    *,
    headers: bool = True,
    bases: int | Sequence[int] = 0,
) -> Found:
    """
    The records of the consecutive batches in *raw*; empty if any are malformed.

    Args:
        bases: the base offset and base timestamp of each batch.
    """
    edges = np.array([0, *ends], np.int64)
    of_batches = np.zeros(len(counts), HEADERS)
    of_batches["record_count"] = counts
    of_batches["base_offset"] = bases
    of_batches["base_timestamp"] = bases
    try:
        spans = find_records(
            Arena(raw, edges[:-1], edges[1:]),
            of_batches,
            Fields(keys=True, values=True, headers=headers),
        )
    except (MalformedRecords, IndexError):
        return []
    return found(raw, spans)


def all_ways(
    raw: bytes, counts: Sequence[int], ends: Sequence[int], **options: Any
) -> dict[str, Found]:
    answers = {}
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(record_finder, "_find", spans_by_arrays)
        answers["arrays"] = find(raw, counts, ends, **options)
        by_walk(PLAIN, monkeypatch)
        answers["plain"] = find(raw, counts, ends, **options)
        by_walk(compiled(NAME), monkeypatch)
        answers["compiled"] = find(raw, counts, ends, **options)
    return answers


numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)
some_bytes = st.none() | st.binary(max_size=200)
some_records = st.lists(
    st.builds(
        Record,
        st.integers(0, 2**31 - 1) | st.integers(0, 300),
        numbers,
        some_bytes,
        some_bytes,
        st.lists(st.builds(Header, st.text(max_size=5), some_bytes), max_size=3).map(tuple),
    ),
    max_size=6,
)


def batches(lists: list[list[Record]]) -> tuple[bytes, list[int], list[int]]:
    raw, ends = b"", []
    for records in lists:
        raw += bytes(encode_records(records, 0, 0))
        ends.append(len(raw))
    return raw, [len(records) for records in lists], ends


@given(st.lists(some_records, min_size=1, max_size=5))
def test_fields_are_found_at_their_positions(lists: list[list[Record]]) -> None:
    raw, counts, ends = batches(lists)

    answers = all_ways(raw, counts, ends)

    records = [record for records in lists for record in records]
    for answer in answers.values():
        assert [record.timestamp for record in records] == answer[1]
        assert [record.offset for record in records] == answer[2]
        assert [len(record.headers) for record in records] == answer[3]
        assert [record.key for record in records] == answer[5]
        assert [record.value for record in records] == answer[6]


@pytest.mark.parametrize("size", range(20))
def test_short_field_is_read_anywhere_in_the_buffer(size: int) -> None:
    field = bytes(range(0xF0, 0xF0 + size)) if size <= 16 else bytes([0xFF] * size)
    records = [Record(0, 0, field, b"long enough to follow"), Record(1, 1, None, field)]
    raw = bytes(encode_records(records, 0, 0))

    for answer in some(all_ways(raw, [2], [len(raw)]).values()):
        assert [[field, None], [b"long enough to follow", field]] == answer[5:]


def test_offsets_and_timestamps_are_relative_to_their_batch() -> None:
    bases = [1000, -5, 7]
    lists = [[Record(base + step, base - step, None, b"v") for step in range(3)] for base in bases]
    raw, ends = b"", []
    for base, records in zip(bases, lists, strict=True):
        raw += bytes(encode_records(records, base, base))
        ends.append(len(raw))

    for answer in some(all_ways(raw, [3, 3, 3], ends, bases=bases).values()):
        assert [record.timestamp for records in lists for record in records] == answer[1]
        assert [record.offset for records in lists for record in records] == answer[2]


def test_timestamp_beyond_64_bits_wraps_around() -> None:
    raw = bytes(encode_records([Record(0, 2, None, None)], 0, 0))
    first = 2**63 - 1

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(record_finder, "_find", spans_by_arrays)
        by_arrays = find(raw, [1], [len(raw)], bases=first)
        by_walk(compiled(NAME), monkeypatch)
        compiled_walk = find(raw, [1], [len(raw)], bases=first)

    assert [-(2**63) + 1] == by_arrays[1] == compiled_walk[1]


def test_result_buffer_is_reused_for_more_or_fewer_records() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        by_walk(PLAIN, monkeypatch)
        for count in (3, 1, 5, 0, 2):
            records = [Record(offset, offset, b"k", None) for offset in range(count)]
            raw = bytes(encode_records(records, 0, 0))

            assert list(range(count)) == find(raw, [count], [len(raw)])[2]


TELLING = (0, 1, 2, 3, 4, 6, 8, 0x7F, 0x80, 0x81, 0xFF)
"""Bytes that mean something else as a length, a count, or as a part of a larger number."""


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("headers", [False, True])
def test_all_implementations_agree_on_damaged_records(count: int, headers: bool) -> None:
    records = [Record(0, 5, b"k", b"va", (Header("h", b"v"),)), Record(1, -70, None, b"", ())]
    raw = bytes(encode_records(records, 0, 0))
    refused = 0
    places = itertools.product(range(len(raw) - 1), TELLING, TELLING)
    changed = [raw[:at] + bytes([one, two]) + raw[at + 2 :] for at, one, two in places]
    # A length that is null of itself.
    changed += [raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :] for at in range(len(raw))]
    for damaged in some(changed):
        answers = all_ways(damaged, [count], [len(damaged)], headers=headers)

        assert answers["arrays"] == answers["plain"] == answers["compiled"], damaged
        refused += not answers["plain"]
    assert refused


NUMBERS = [
    b"\x00",
    b"\x01",
    b"\x02",
    b"\x80\x00",
    b"\x82\x80\x00",
    b"\x80\x80\x80\x80\x00",
    b"\x80\x80\x80\x80\x10",
    b"\x82\x80\x80\x80\x70",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\x80\x80\x80\x80\x80\x00",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00",
    b"\x80",
    b"\x80\x80\x80",
]


@pytest.mark.parametrize("field", range(6))
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("is_followed", [False, True])
def test_varint_of_any_length_is_read_or_refused(
    field: int, number: bytes, is_followed: bool
) -> None:
    """
    For size, time, offset, the lengths of key and value, and the count of headers, with and without
    the bytes of another record behind.
    """
    fields = [b"", b"\x00", b"\x00", b"\x01", b"\x01", b"\x00"]
    fields[field] = number
    body = b"\x00" + b"".join(fields[1:])
    raw = (number if field == 0 else bytes([2 * len(body)])) + body
    if is_followed:
        raw += bytes(encode_records([Record(7, 7, b"", b"")], 0, 0))
    count = 1 + is_followed
    try:
        expected = [(record.timestamp, record.offset) for record in iter_records(raw, count)]
    except InvalidRecord:
        expected = []

    for answer in some(all_ways(raw, [count], [len(raw)], headers=True).values()):
        assert expected == (list(zip(answer[1], answer[2], strict=True)) if answer else [])


@given(st.binary(max_size=40), st.integers(0, 5))
# Sizes that lead further than 32 bits can tell.
@example(b"\xfe\xff\xff\xff\x0f\x00\x00\x00\x01\xe8\xff\xff\xff\x0f", 1)
@example(b"\x0c\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x01\x01\x00", 1)
@example(b"\x80\x80\x80\x80\x80\x00", 1)
@example(b"\x0e\x00\xff\xff\xff\xff\x7f\x00\x01\x01\x00", 1)
def test_all_implementations_agree_on_arbitrary_bytes(raw: bytes, count: int) -> None:
    answers = all_ways(raw, [count], [len(raw)])

    assert answers["arrays"] == answers["plain"] == answers["compiled"]


def test_no_batches_have_no_records() -> None:
    for answer in all_ways(b"", [], []).values():
        assert [[]] * 7 == answer
