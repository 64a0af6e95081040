from __future__ import annotations

from benchmarks.turns import turns


def test_everybody_comes_first_in_turn() -> None:
    rounds = ["".join(turns("abc", number)) for number in range(-1, 4)]

    assert ["cab", "abc", "bca", "cab", "abc"] == rounds
