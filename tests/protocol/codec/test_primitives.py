"""
Unsigned varints, and what is built on them.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.codec.primitives import (
    UVARINTS,
    compact_length,
    read_compact_length,
    read_uvarint,
    skip_tagged_fields,
    string_length,
    uvarint,
)
from barnabas.protocol.codec.uuids import uuid_from
from barnabas.protocol.errors import DecodeError

UVARINT_BYTES = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2**31 - 1, "ffffffff07"),
    (2**32 - 1, "ffffffff0f"),
]


@pytest.mark.parametrize(("value", "encoded"), UVARINT_BYTES)
def test_a_uvarint_has_these_bytes(value: int, encoded: str) -> None:
    """
    Seven bits a byte, the lowest first.
    """
    data = bytes.fromhex(encoded)

    assert data == uvarint(value)
    assert (value, 1 + len(data)) == read_uvarint(b"x" + data + b"y", 1)


@given(st.integers(0, 2**32 - 1))
def test_a_uvarint_comes_back(value: int) -> None:
    """
    And a part of it does not.
    """
    data = uvarint(value)

    assert (value, len(data)) == read_uvarint(data, 0)
    with pytest.raises(IndexError):
        read_uvarint(data[:-1], 0)


def test_the_table_has_the_uvarints_of_one_byte() -> None:
    """
    Most lengths are looked up there.
    """
    assert [uvarint(value) for value in range(128)] == list(UVARINTS)


@pytest.mark.parametrize(
    ("length", "encoded"),
    [(-1, "00"), (0, "01"), (126, "7f"), (127, "8001"), (2**31, "8180808008")],
)
def test_a_compact_length_is_one_more_than_what_it_tells(length: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)

    assert data == compact_length(length)
    assert (length, 1 + len(data)) == read_compact_length(b"x" + data + b"y", 1)


def test_a_length_below_that_of_null_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit into an unsigned varint"):
        compact_length(-2)


@pytest.mark.parametrize("value", [-1, 2**32])
def test_a_number_that_is_no_uvarint_is_refused(value: int) -> None:
    """
    Neither negative ones nor those of more than 32 bits.
    """
    with pytest.raises(ValueError, match="does not fit into an unsigned varint"):
        uvarint(value)


@pytest.mark.parametrize(("encoded", "value"), [("8180808070", 1), ("ff00", 127)])
def test_a_uvarint_is_read_as_in_kafka(encoded: str, value: int) -> None:
    """
    Bits beyond the 32nd are dropped, and zeros that are not needed do no harm.
    """
    assert value == read_uvarint(bytes.fromhex(encoded), 0)[0]


def test_a_uvarint_has_at_most_five_bytes() -> None:
    """
    Whatever follows.
    """
    with pytest.raises(DecodeError, match="the varint before byte 5 does not end"):
        read_uvarint(b"\x80\x80\x80\x80\x80\x00", 0)


def test_the_length_of_a_compact_string_is_one_more() -> None:
    """
    Zero stands for null.
    """
    assert b"\x01" == string_length(0)
    assert b"\x80\x80\x02" == string_length(32767)
    with pytest.raises(ValueError, match="a string of 32768 bytes is too long"):
        string_length(32768)


def test_a_section_of_tagged_fields_is_skipped() -> None:
    """
    Whatever its fields are.
    """
    assert 1 == skip_tagged_fields(b"\x00", 0)
    assert 6 == skip_tagged_fields(bytes.fromhex("02 0000 0501 ff"), 0)
    with pytest.raises(DecodeError, match="tagged field 5 ends after the data"):
        skip_tagged_fields(bytes.fromhex("02 0000 0502 ff"), 0)


def test_a_uuid_has_its_most_significant_byte_first() -> None:
    """
    As it is written.
    """
    assert "00010203-0405-0607-0809-0a0b0c0d0e0f" == str(uuid_from(bytes(range(16))))
