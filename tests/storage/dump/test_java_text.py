"""
Numbers and text as Java writes them.
"""

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
