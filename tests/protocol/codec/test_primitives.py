from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.codec.primitives import (
    UVARINTS,
    compact_length,
    read_compact_length,
    read_uvarint,
    uvarint,
)
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
def test_uvarint_has_seven_bits_per_byte_lowest_first(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)

    assert data == uvarint(value)
    assert (value, 1 + len(data)) == read_uvarint(b"x" + data + b"y", 1)


@given(st.integers(0, 2**32 - 1))
def test_uvarint_survives_a_round_trip_and_its_prefixes_are_refused(value: int) -> None:
    data = uvarint(value)

    assert (value, len(data)) == read_uvarint(data, 0)
    with pytest.raises(IndexError):
        read_uvarint(data[:-1], 0)


def test_lookup_table_has_the_one_byte_uvarints() -> None:
    assert [uvarint(value) for value in range(128)] == list(UVARINTS)


@pytest.mark.parametrize(
    ("length", "encoded"),
    [(-1, "00"), (0, "01"), (126, "7f"), (127, "8001"), (2**31, "8180808008")],
)
def test_compact_length_is_the_length_plus_one(length: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)

    assert data == compact_length(length)
    assert (length, 1 + len(data)) == read_compact_length(b"x" + data + b"y", 1)


def test_compact_length_below_null_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit into an unsigned varint"):
        compact_length(-2)


@pytest.mark.parametrize("value", [-1, 2**32])
def test_number_outside_the_uvarint_range_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match="does not fit into an unsigned varint"):
        uvarint(value)


@pytest.mark.parametrize(("encoded", "value"), [("8180808070", 1), ("ff00", 127)])
def test_uvarint_is_decoded_as_in_kafka(encoded: str, value: int) -> None:
    """
    Bits beyond the 32nd are dropped, and redundant zeros are accepted.
    """
    assert value == read_uvarint(bytes.fromhex(encoded), 0)[0]


def test_uvarint_of_more_than_five_bytes_is_refused() -> None:
    with pytest.raises(DecodeError, match="the varint before byte 5 does not end"):
        read_uvarint(b"\x80\x80\x80\x80\x80\x00", 0)
