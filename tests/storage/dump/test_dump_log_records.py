"""
The reader of records that ``barnabas dump-log`` has of its own, held against the usual one.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import InvalidRecord
from barnabas.protocol.records.record import Header, Record, encode_records, iter_records
from barnabas.storage.dump.failure import DumpFailure
from barnabas.storage.dump.java_text import double_text, int32, int64, utf8_text
from barnabas.storage.dump.record_reader import RecordReader, increment_sequence
from tests.support.compiled import plain

PLAIN: Any = plain("barnabas.storage.dump.record_reader")
SIZES = (63, 64, 8191, 8192, 1 << 20)
"""Around those at which the number that says them becomes longer."""
DATA = st.none() | st.binary(max_size=9) | st.sampled_from(SIZES).map(bytes)
RECORDS = st.lists(
    st.builds(
        Record,
        st.integers(-5, 2**31 - 1),
        st.integers(-10, 20_000) | st.integers(-(2**62), 2**62),
        DATA,
        DATA,
        st.lists(
            st.builds(Header, st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2
        ).map(tuple),
    ),
    max_size=3,
)
READERS = pytest.mark.parametrize("cls", [RecordReader, PLAIN.RecordReader], ids=["run", "plain"])


def read(cls: Any, data: bytes, count: int, *, streamed: bool = False) -> list[Record]:
    reader = cls(
        data,
        0,
        count,
        base_offset=0,
        base_timestamp=0,
        base_sequence=-1,
        log_append_time=None,
        streamed=streamed,
    )
    found = []
    while reader.advance():
        headers = tuple(Header(name.decode(), value) for name, value in reader.headers())
        key, value = reader.key(), reader.value()
        assert (reader.key_size, reader.value_size, reader.header_count) == (
            -1 if key is None else len(key),
            -1 if value is None else len(value),
            len(headers),
        )
        found.append(Record(reader.offset, reader.timestamp, key, value, headers))
    return found


@READERS
@given(records=RECORDS, streamed=st.booleans())
def test_records_are_read_as_they_were_written(
    cls: Any, records: list[Record], streamed: bool
) -> None:
    data = bytes(encode_records(records, 0, 0))

    assert records == read(cls, data, len(records), streamed=streamed)


@READERS
@given(records=RECORDS.filter(bool), data=st.data())
def test_the_two_readers_agree_about_what_is_a_record(
    cls: Any, records: list[Record], data: Any
) -> None:
    """
    After any byte was changed.
    """
    encoded = encode_records(records, 0, 0)
    encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    payload = bytes(encoded)

    try:
        expected = list(iter_records(payload, len(records)))
    except InvalidRecord:
        with pytest.raises(DumpFailure):
            read(cls, payload, len(records))
    else:
        try:
            assert expected == read(cls, payload, len(records))
        except UnicodeDecodeError:
            assert "\ufffd" in str(expected)


@READERS
def test_numbers_wrap_around_as_longs(cls: Any) -> None:
    """
    The base is as large as a number can be.
    """
    data = bytes(encode_records([Record(1, 2, None, None)], 0, 0))
    reader = cls(
        data,
        0,
        1,
        base_offset=2**63 - 1,
        base_timestamp=2**63 - 1,
        base_sequence=2**31 - 1,
        log_append_time=None,
        streamed=False,
    )

    assert reader.advance()
    assert (-(2**63), -(2**63) + 1, 0) == (reader.offset, reader.timestamp, reader.sequence)


@given(st.integers(-(2**40), 2**40))
def test_ints_and_longs_wrap_around(number: int) -> None:
    assert int32(number) == int32(number + 2**32)
    assert int64(number) == number == int64(number + 2**64)
    assert -(2**31) <= int32(number) < 2**31


def test_sequences() -> None:
    """
    The last case is of a corrupt batch: Java's ints overflow there.
    """
    assert [8, 2**31 - 1, 0, 4] == [
        increment_sequence(sequence, increment)
        for sequence, increment in ((5, 3), (2**31 - 2, 1), (2**31 - 1, 1), (2**31 - 1, 5))
    ]
    assert 5 - 2**31 == increment_sequence(10, -5)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.0009, "9.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-12345678.9, "-1.23456789E7"),
        (1e23, "1.0E23"),
        (5e-324, "4.9E-324"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_as_java_writes_them(value: float, text: str) -> None:
    assert text == double_text(value)


@given(st.text(), st.binary(max_size=4))
def test_text_as_java_reads_it(text: str, junk: bytes) -> None:
    """
    Good text is kept, and around what is bad as well.
    """
    assert text == utf8_text(text.encode())
    assert utf8_text(b"\xff" + text.encode() + b"|" + junk).startswith(f"\ufffd{text}|")


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"\xed\xa0\x80", 1),
        (b"\xed\xa0", 1),
        (b"\xf0\x9f\x98", 1),
        (b"\xf4\x90\x80\x80", 4),
        (b"\xe0\x80\x80", 3),
        (b"\xc0\xaf", 2),
    ],
)
def test_how_much_one_replacement_character_stands_for(data: bytes, count: int) -> None:
    assert "\ufffd" * count == utf8_text(data)
