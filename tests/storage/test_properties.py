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
        ("a=\\u00e9 \\ud83d\\ude00", {"a": "é 😀"}),
        ("a=é \\ud83d\\ude00 \\ud83d", {"a": "é 😀 \ud83d"}),
        ("a=1\r\na=2\r", {"a": "2"}),
        ("a=b\\", {"a": "b"}),
        ("a=b\\\n# c", {"a": "b# c"}),
    ],
)
def test_properties_parser_reads_every_syntax_of_java(
    text: str, properties: dict[str, str]
) -> None:
    assert properties == read_properties(text)


def test_malformed_escape_is_refused() -> None:
    with pytest.raises(ValueError, match="malformed"):
        read_properties("a=\\u12")


def test_properties_are_written_with_comments_first() -> None:
    assert "#one\n#two\nnode.id=1\n" == format_properties({"node.id": "1"}, ("one", "two"))


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_written_properties_can_be_read(properties: dict[str, str]) -> None:
    assert properties == read_properties(format_properties(properties))
