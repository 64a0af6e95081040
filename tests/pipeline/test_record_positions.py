"""
Where records begin, found by a plain loop and by the compiled one.
"""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.records import Record, encode_records
from tests.support.compiled import compiled, plain

NAME = "barnabas.pipeline.record_positions"
PLAIN = plain(NAME)


@pytest.fixture(scope="module", params=["plain", "compiled"])
def positions(request: pytest.FixtureRequest) -> ModuleType:
    return PLAIN if request.param == "plain" else compiled(NAME)


def test_lengths_of_every_size_lead_on(positions: ModuleType) -> None:
    """
    Of one byte to four.
    """
    sizes = [0, 1, 55, 56, 57, 8_180, 8_190, 1_048_570, 1_048_580, 3]
    data, expected = b"..", []
    for size in sizes:
        expected.append(len(data))
        data += bytes(encode_records([Record(0, 0, None, bytes(size))], 0, 0))

    found: list[int] = []

    assert positions.note_records(data + b"..", 2, len(data), len(sizes), found)
    assert expected == found


def test_what_does_not_end_where_it_should_is_refused(positions: ModuleType) -> None:
    """
    Too few records, too many, a length of null or of too many bytes, and the end of the data.
    """
    data = bytes(encode_records([Record(0, 0, b"k", b"v")] * 2, 0, 0))
    half = len(data) // 2

    def fits(raw: bytes, end: int, count: int) -> bool:
        return bool(positions.note_records(raw, 0, end, count, []))

    assert fits(data, len(data), 2)
    assert fits(data + bytes(1), len(data), 2)
    assert fits(b"\x80\x80\x80\x80\x00", 5, 1)
    assert not fits(data, len(data), 1)
    assert not fits(data, len(data), 3)
    assert not fits(data, half, 2)
    assert not fits(data[:half], len(data), 2)
    assert not fits(b"\x01" + data, len(data) + 1, 1)
    assert not fits(b"\x80", 1, 1)
    assert not fits(b"\xff\xff\xff\xff\x80\x00", 6, 1)


@given(st.binary(max_size=40), st.integers(0, 5))
def test_the_compiled_loop_does_what_the_plain_one_does(data: bytes, count: int) -> None:
    """
    Whatever the bytes are.
    """
    fast = compiled(NAME)
    found: tuple[list[int], list[int]] = ([], [])

    ends = [
        module.note_records(data, 0, len(data), count, places)
        for module, places in zip((PLAIN, fast), found, strict=True)
    ]

    assert ends[0] == ends[1]
    assert found[0] == found[1]
