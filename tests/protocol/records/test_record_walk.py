from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import InvalidRecord
from barnabas.protocol.records import walk as record_walk
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import (
    Header,
    Record,
    SimpleRecord,
    encode_records,
    iter_records,
)
from barnabas.protocol.records.walk import RecordWalk, RegularityWalk
from tests.support.compiled import compiled, plain
from tests.support.random_logs import strange_record
from tests.support.record_bytes import record_lists

RECORDS = record_lists(least_offset=0, min_size=1, max_size=5)
SOME = [
    Record(0, 5, b"key", b"value"),
    Record(1, 90_000, b"", None, (Header("h", b"x"), Header("n", None))),
    Record(300, -7, None, bytes(9000)),
]


def walked(walk: Any) -> list[tuple[int, int, bytes | None, bool, bytes]]:
    found = []
    for _ in range(walk.record_count):
        walk.advance()
        key = walk.data[walk.key_at : walk.key_at + walk.key_length]
        found.append(
            (
                walk.offset_delta,
                walk.timestamp_delta,
                key if walk.key_length >= 0 else None,
                walk.has_value,
                walk.data[walk.record_at : walk.record_end],
            )
        )
    return found


def expected(records: list[Record]) -> list[tuple[int, int, bytes | None, bool, bytes]]:
    return [
        (
            record.offset,
            record.timestamp,
            record.key,
            record.value is not None,
            bytes(encode_records([record], 0, 0)),
        )
        for record in records
    ]


def walk_of(records: list[Record], module: ModuleType = record_walk) -> Any:
    payload = bytes(encode_records(records, 0, 0))
    around = b"before" + payload + b"behind"
    return module.RecordWalk(around, 6, 6 + len(payload), len(records))


@given(RECORDS)
def test_walk_returns_the_written_records(records: list[Record]) -> None:
    assert expected(records) == walked(walk_of(records))


@pytest.mark.parametrize("how", ["plain", "compiled"])
def test_plain_and_compiled_walk_agree(how: str) -> None:
    name = "barnabas.protocol.records.walk"
    module = plain(name) if how == "plain" else compiled(name)

    assert expected(SOME) == walked(walk_of(SOME, module))


def test_tail_of_a_record_does_not_depend_on_its_timestamp() -> None:
    tails = []
    for base_timestamp in (0, 1_700_000_000_000):
        payload = bytes(encode_records(SOME, 0, base_timestamp))
        walk = RecordWalk(payload, 0, len(payload), len(SOME))
        for _ in SOME:
            walk.advance()
            tails.append(payload[walk.tail_at : walk.record_end])

    assert tails[: len(SOME)] == tails[len(SOME) :]
    assert len(set(tails)) == len(SOME)


@given(RECORDS, st.data())
def test_truncated_record_is_an_error(records: list[Record], data: st.DataObject) -> None:
    payload = bytes(encode_records(records, 0, 0))
    end = data.draw(st.integers(0, len(payload) - 1))

    with pytest.raises(InvalidRecord):
        walked(RecordWalk(payload[:end], 0, end, len(records)))


@given(st.binary(max_size=60), st.integers(0, 5))
def test_walk_and_reader_accept_the_same_records(payload: bytes, count: int) -> None:
    def outcome(read: Any) -> object:
        try:
            return len(read())
        except InvalidRecord:
            return "invalid"

    assert outcome(lambda: list(iter_records(payload, count))) == outcome(
        lambda: walked(RecordWalk(payload, 0, len(payload), count))
    )


def test_negative_record_count_is_an_error() -> None:
    with pytest.raises(InvalidRecord, match="-1 records"):
        RecordWalk(b"", 0, 0, -1)


def test_bytes_behind_the_last_record_are_an_error() -> None:
    payload = bytes(encode_records(SOME, 0, 0)) + b"\0"
    walk = RecordWalk(payload, 0, len(payload), len(SOME))

    with pytest.raises(InvalidRecord, match="1 bytes are left behind the last record"):
        walked(walk)


@pytest.mark.parametrize("how", [0, 1, 2])
def test_record_that_kafka_would_encode_differently_is_not_regular(how: int) -> None:
    records = [SimpleRecord(5, b"key", b"value"), SimpleRecord(5, b"key", b"value")]
    payload = bytearray(build_batch(records)[61:])
    regular = RecordWalk(bytes(payload), 0, len(payload), 2)
    strange = strange_record(payload, how)
    walk = RecordWalk(bytes(strange), 0, len(strange), 2)

    regular.advance()
    walk.advance()

    assert regular.is_regular
    assert not walk.is_regular
    assert (0, 3, True) == (walk.offset_delta, walk.key_length, walk.has_value)
    walk.advance()
    assert walk.is_regular


@pytest.mark.parametrize(
    ("number", "is_regular"),
    [
        (bytes.fromhex("8101"), True),
        (bytes.fromhex("8100"), False),
        (bytes.fromhex("808001"), True),
        (bytes.fromhex("808000"), False),
        # The fifth byte of 32 bits has four of them; what is above is lost.
        (bytes.fromhex("808080800f"), True),
        (bytes.fromhex("8080808010"), False),
    ],
)
def test_varint_is_regular_in_its_shortest_form(number: bytes, is_regular: bool) -> None:
    body = b"\0\0" + number + b"\x01\x01\0"
    payload = bytes([2 * len(body)]) + body
    walk = RecordWalk(payload, 0, len(payload), 1)

    walk.advance()

    assert is_regular == walk.is_regular


@pytest.mark.parametrize(
    ("key", "value", "is_regular"), [(1, 1, True), (3, 1, False), (1, 5, False)]
)
def test_null_is_regular_with_length_minus_one(key: int, value: int, is_regular: bool) -> None:
    payload = bytes((12, 0, 0, 0, key, value, 0))
    walk = RecordWalk(payload, 0, len(payload), 1)

    walk.advance()

    assert is_regular == walk.is_regular
    assert (True, False) == (walk.key_length < 0, walk.has_value)


@given(RECORDS, st.data())
def test_walk_before_a_rebuild_works_in_windows(records: list[Record], data: st.DataObject) -> None:
    payload = bytes(encode_records(records, 0, 0))
    end = data.draw(st.integers(0, len(payload)))
    walk = RegularityWalk(payload[:end], len(records))
    walk.step()

    rest = payload[walk.record_end :]
    further = RegularityWalk(rest, len(records) - walk.walked)
    further.step()

    assert len(records) == walk.walked + further.walked
    assert len(rest) == further.record_end
    assert 0 <= walk.next_size <= max(0, len(rest))
    least = min(0, *(record.timestamp for record in records), 0)
    assert least == min(walk.least_timestamp_delta, further.least_timestamp_delta)


def test_header_keys_with_invalid_utf_8_are_not_regular() -> None:
    walk = walk_of([Record(0, 0, b"k", b"v", (Header("name", b"\xff"),))])
    walk.advance()
    assert walk.is_regular

    walk = walk_of([Record(0, 0, b"k", b"v", (Header("é", b"x"),))])
    walk.advance()
    assert not walk.is_regular
