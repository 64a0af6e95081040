"""
Java's .properties files.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.properties import format_properties, read_properties


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("", {}),
        ("# a comment\n! another\n\n", {}),
        ("a=b", {"a": "b"}),
        ("  a = b ", {"a": "b "}),
        ("a:b\nc d", {"a": "b", "c": "d"}),
        ("a", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("a=b\\\n   c", {"a": "bc"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a\\=b\\ c=d", {"a=b c": "d"}),
        ("a=\\u0041\\t\\q", {"a": "A\tq"}),
        ("a=1\r\na=2\r", {"a": "2"}),
        ("a=b\\", {"a": "b"}),
        ("a=b\\\n# c", {"a": "b# c"}),
    ],
)
def test_every_form_that_java_reads_is_read(text: str, properties: dict[str, str]) -> None:
    assert properties == read_properties(text)


def test_a_malformed_escape_is_refused() -> None:
    with pytest.raises(ValueError, match="malformed"):
        read_properties("a=\\u12")


def test_comments_come_first() -> None:
    assert "#one\n#two\nnode.id=1\n" == format_properties({"node.id": "1"}, ("one", "two"))


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_what_is_written_is_read(properties: dict[str, str]) -> None:
    assert properties == read_properties(format_properties(properties))
