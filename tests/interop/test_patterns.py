"""
Regular expressions beside RE2/J, which Apache Kafka matches them with.
"""

from __future__ import annotations

import random
from base64 import b64encode
from pathlib import Path

import pytest

from barnabas.coordination.regex.pattern import InvalidPattern, LinearPattern
from tests.support.apache_kafka import java
from tests.support.commands import output_of
from tests.support.java_programs import compiled

pytestmark = pytest.mark.interop

SOURCE = Path(__file__).parent / "java" / "Patterns.java"
PATIENCE = 120
PATTERNS = 20_000
ATOMS = (
    *"abABsS09_ .^$|*+?()[]\\-\n,:",
    *(r"\d", r"\W", r"\s", r"\b", r"\B", r"\A", r"\z", r"\n", r"\x41", r"\x{1F}", r"\012"),
    # Of the cases of letters RE2/J 1.8 folds some only, such as S and not B for (?i)\p{Ll}.
    *(r"\pL", r"\PN", r"\p{Nd}", r"\p{^Sc}", r"\Q", r"\E"),
    *("(?i)", "(?i:", "(?s)", "(?m)", "(?-i)", "(?P<n>", "(?<n>", "(?:"),
    *("[[:alpha:]]", "[^a-c]", r"[a\]b]", "[[:^digit:]x]", "[[x]", r"[\pL\d]", r"[^\pL]"),
    *("{2}", "{1,3}", "{2,}", "{0}", "{,2}"),
)
CHARACTERS = "abABsS09_ .\n-\u03b1\u0391\u00df\u017f"


def random_patterns(count: int) -> list[tuple[str, list[str]]]:
    choose = random.Random(2)
    return [
        (
            "".join(choose.choices(ATOMS, k=choose.randrange(1, 8))),
            ["".join(choose.choices(CHARACTERS, k=choose.randrange(5))) for _ in range(6)],
        )
        for _ in range(count)
    ]


def ours(pattern: str, texts: list[str]) -> str:
    try:
        matching = LinearPattern(pattern)
    except InvalidPattern:
        return "invalid"
    return "".join(str(int(matching.fullmatch(text))) for text in texts)


def kafkas(cases: list[tuple[str, list[str]]]) -> list[str]:
    command = java("Patterns", extra_class_path=compiled(SOURCE))
    lines = (
        "\t".join(b64encode(text.encode()).decode() for text in (pattern, *texts))
        for pattern, texts in cases
    )
    return output_of(*command, input="\n".join(lines)).splitlines()


def test_random_patterns_match_the_same_texts_as_in_kafka() -> None:
    cases = random_patterns(PATTERNS)

    expected = kafkas(cases)

    assert len(cases) == len(expected)
    assert PATTERNS // 4 < sum(answer != "invalid" for answer in expected)
    different = [
        (pattern, texts, theirs, answer)
        for (pattern, texts), theirs in zip(cases, expected, strict=True)
        if theirs != (answer := ours(pattern, texts))
    ]
    assert [] == different
