"""
Patterns of RE2's dialect, matched in linear time. ``tests/interop/test_patterns.py`` compares what
random ones match with RE2/J.
"""

from __future__ import annotations

import random
import re
import tracemalloc

import pytest

from barnabas.coordination.regex.pattern import MOST_SETS, InvalidPattern, LinearPattern
from barnabas.coordination.regex.program import MOST_INSTRUCTIONS
from tests.support.limits import stated


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
        "[[:greek:]]",
        r"\p{Greek}",
        "*",
        "a|*",
        "(*)",
        ")",
        "(?i",
        "(?P<n>a)(?P<n>b)",
        "a{1001}",
        "a{2,1}",
        "(a{100}){11}",
        "a{9999999999999999999}",
        "\\",
        r"\8",
        r"\q",
        "[b-a]",
        "[]x",
        "[[:alpha:]",
        r"\x{110000}",
        "(" * 3_000 + "a" + ")" * 3_000,
        "(" * 500_000,
        "(((a|b|c|d){10}){10}){10}e{900}",
        "(abcdefghijk){1000}",
        "(?i)" * 100_000,
    ],
)
def test_unsupported_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        LinearPattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", ".*.*.*.*.*.*.*b", "(a|a)*b", "(a*)*b", "(?:a?){1000}a{0}b"]
)
def test_no_pattern_causes_backtracking(pattern: str) -> None:
    """
    Python's own engine would take far too long for these patterns.
    """
    matching = LinearPattern(pattern)

    assert not matching.fullmatch("a" * 10_000)
    assert matching.fullmatch("a" * 1_000 + "b")


def test_pattern_limits_match_the_documentation() -> None:
    assert stated("pattern-size") == MOST_INSTRUCTIONS
    assert LinearPattern("a" * 10_000).fullmatch("a" * 10_000)
    assert LinearPattern("(" * 900 + "a" + ")" * 900).fullmatch("a")
    with pytest.raises(InvalidPattern, match="too large"):
        LinearPattern("a" * 10_001)


def test_what_is_kept_of_a_text_is_bounded() -> None:
    """
    The automaton of the pattern has a million sets of states, and the text reaches most of them.
    """
    pattern = LinearPattern("(a|b)*a(a|b){18}")
    choose = random.Random(18)

    for _ in range(10):
        text = "".join(choose.choices("ab", k=1_000))
        assert pattern.fullmatch(text) == (text[-19] == "a")
        assert len(pattern._next) <= MOST_SETS


@pytest.mark.parametrize("seed", range(300))
def test_pattern_matching_agrees_with_pythons_re(seed: int) -> None:
    choose = random.Random(seed)

    def piece(depth: int) -> str:
        kinds = ["a", "b", "[ab]", "[^a]", ".", r"\w", "c"]
        if depth:
            kinds += [f"({alternatives(depth - 1)})", f"(?:{alternatives(depth - 1)})"]
        return choose.choice(kinds) + choose.choice(["", "", "", "*", "+", "?", "{2}", "{1,3}"])

    def alternatives(depth: int) -> str:
        return "|".join(
            "".join(piece(depth) for _ in range(choose.randrange(1, 4)))
            for _ in range(choose.randrange(1, 3))
        )

    pattern = alternatives(2)
    ours, pythons = LinearPattern(pattern), re.compile(pattern)

    for _ in range(60):
        text = "".join(choose.choices("abc ", k=choose.randrange(7)))
        assert ours.fullmatch(text) == (pythons.fullmatch(text) is not None), (pattern, text)


LARGE = [
    "(.?){1000}" * 5,
    "(.?){1000}(.*){100}",
    ("(a|b|.)?" * 11),
    "(.{0,9}){100}",
    "(?m)(^?.?$?){1000}",
    "([^b]?){1000}" * 3,
]
"""Patterns that may be in very many places at once."""


@pytest.mark.parametrize("pattern", LARGE)
@pytest.mark.parametrize("alphabet", ["a", "ab", "ab\n_-", "".join(map(chr, range(32, 127)))])
def test_memory_of_a_match_is_bounded(pattern: str, alphabet: str) -> None:
    compiled = LinearPattern(pattern)
    text = "".join(random.Random(0).choices(alphabet, k=30))
    tracemalloc.start()
    try:
        compiled.fullmatch(text)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("pattern", ["(.?){1000}" * 5, "([^b]?){1000}" * 3])
def test_a_character_in_many_places_takes_many_steps(pattern: str) -> None:
    compiled = LinearPattern(pattern)
    steps = sum(1 for _ in compiled.matching("xyz"))
    # The first character comes to all instructions, as does the second from all places.
    assert steps >= 3 * len(compiled._program) // 256
