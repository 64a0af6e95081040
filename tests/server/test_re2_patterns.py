"""
Patterns of RE2, as far as they differ from Python's.
"""

from __future__ import annotations

import re

import pytest

from barnabas.server.re2_patterns import compile_re2


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a.*", "abc"),
        (r"\Qa.*(\E.", "a.*(b"),
        (r"\Qa.b", "a.b"),
        (r"a\z", "a"),
        (r"[(?=]\(\?=", "((?="),
        (r"a\++", "a++"),
        (r"[\]+]+", "]+"),
        ("[[:alpha:]_]+x", "ab_x"),
        ("[^[:digit:][:punct:]]+", "abc"),
        ("[[x]+", "[x["),
        ("(?i)ABC", "abc"),
        ("(?:ab)+?c", "ababc"),
        ("(?P<name>x){2,3}", "xxx"),
    ],
)
def test_it_matches(pattern: str, text: str) -> None:
    assert compile_re2(pattern).fullmatch(text)


def test_what_is_quoted_stands_for_itself() -> None:
    assert not compile_re2(r"\Qa.b\E").fullmatch("axb")


@pytest.mark.parametrize(
    "pattern",
    [
        "x(?=y)",
        "x(?!y)",
        "(?<=x)y",
        "(?<!x)y",
        r"(a)\1",
        "(?P<n>a)(?P=n)",
        "(?>a)",
        "a++",
        "a{2}+",
        "(",
        ".*[",
        "a**",
        "(?#b)a",
        "(a)(?(1)b)",
        "[[:^alpha:]]",
        "[[:greek:]]",
        r"\pL",
    ],
)
def test_it_is_refused(pattern: str) -> None:
    with pytest.raises(re.error):
        compile_re2(pattern)
