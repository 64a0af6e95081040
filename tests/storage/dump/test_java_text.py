from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.dump.java_text import double_text, utf8_text


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
def test_doubles_are_formatted_as_in_java(value: float, text: str) -> None:
    assert text == double_text(value)


@given(st.text(), st.binary(max_size=4))
def test_text_is_decoded_as_in_java(text: str, junk: bytes) -> None:
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
def test_invalid_bytes_become_as_many_replacement_characters_as_in_java(
    data: bytes, count: int
) -> None:
    assert "\ufffd" * count == utf8_text(data)
