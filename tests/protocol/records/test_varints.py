from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.compiled import compiled, plain

NAME = "barnabas.protocol.records.varints"
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)

PLAIN = plain(NAME)


@pytest.fixture(scope="module", params=["plain", "compiled"])
def varints(request: pytest.FixtureRequest) -> ModuleType:
    return PLAIN if request.param == "plain" else compiled(NAME)


def encoded(varints: ModuleType, value: int) -> bytes:
    out = bytearray()
    varints.append_varint(out, value)
    return bytes(out)


@pytest.mark.scenario(4)
@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-2, "03"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (300, "d804"),
        (-301, "d904"),
        (2147483647, "feffffff0f"),
        (-2147483648, "ffffffff0f"),
        (86400000, "80f0b252"),
        (-86400000, "ffefb252"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_varints_have_kafkas_bytes(varints: ModuleType, value: int, data: str) -> None:
    expected = bytes.fromhex(data)

    assert expected == encoded(varints, value)
    within = b"\xff" + expected + b"\xff"
    end = 1 + len(expected)
    assert (value, end) == varints.next_varlong(within, 1, len(within))
    if len(expected) <= 5:
        assert (value, end) == varints.next_varint(within, 1, len(within))


@given(value=INT64, small=INT32)
def test_varint_survives_a_round_trip(varints: ModuleType, value: int, small: int) -> None:
    for number, read in ((value, varints.next_varlong), (small, varints.next_varint)):
        data = encoded(varints, number)

        assert (number, len(data)) == read(data, 0, len(data))


@given(value=INT64, cut=st.integers(0, 9))
def test_truncated_varint_is_detected(varints: ModuleType, value: int, cut: int) -> None:
    data = encoded(varints, value)
    cut = min(cut, len(data) - 1)

    assert varints.CUT == varints.next_varlong(data[:cut], 0, cut)[1]
    assert varints.CUT == varints.next_varlong(data, 0, cut)[1]
    if cut < 5:
        assert varints.CUT == varints.next_varint(data, 0, cut)[1]


@pytest.mark.parametrize(("read", "longest"), [("next_varint", 5), ("next_varlong", 10)])
def test_endless_varint_is_detected(varints: ModuleType, read: str, longest: int) -> None:
    next_number = getattr(varints, read)
    data = b"\x80" * longest + b"\0"

    assert varints.TOO_LONG == next_number(data, 0, len(data))[1]
    assert (0, longest) == next_number(data[1:], 0, longest)


def test_bits_beyond_the_width_are_dropped(varints: ModuleType) -> None:
    """
    As in Java's shifts.
    """
    assert (-(2**31), 5) == varints.next_varint(b"\xff\xff\xff\xff\x7f", 0, 5)
    assert (-(2**63), 10) == varints.next_varlong(b"\xff" * 9 + b"\x7f", 0, 10)
    assert (0, 10) == varints.next_varlong(b"\x80" * 9 + b"\x7e", 0, 10)


@given(data=st.binary(max_size=12))
def test_plain_and_compiled_varints_agree(data: bytes) -> None:
    other = compiled(NAME)

    for read in ("next_varint", "next_varlong"):
        assert getattr(PLAIN, read)(data, 0, len(data)) == getattr(other, read)(data, 0, len(data))
