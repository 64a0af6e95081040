"""
Patterns, ready to be matched.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.server.regex.characters import InvalidPattern
from barnabas.server.regex.parser import Parser
from barnabas.server.regex.program import (
    EDGE,
    MOST_INSTRUCTIONS,
    NEWLINE,
    OTHER,
    WORD,
    Assert,
    Char,
    Split,
)

__all__ = ["InvalidPattern", "LinearPattern"]

MOST_SETS: Final = 1_000
"""Kept sets of places; one more, and all are dropped. ``.*foo.*bar.*[0-9]{3}`` has 62."""


class LinearPattern:
    """
    A compiled pattern.

    The set of places after a set and a character is kept, so that most characters cost one look-up:
    a lazily built automaton.

    Not safe to use from two threads.
    """

    __slots__ = ("_asserts", "_next", "_program")

    def __init__(self, text: str) -> None:
        """
        Raises:
            InvalidPattern: *text* is no pattern of this dialect, or too large a one.
        """
        if len(text) > MOST_INSTRUCTIONS:
            raise InvalidPattern("expression too large")
        self._program = Parser(text).parse()
        self._asserts = any(isinstance(step, Assert) for step in self._program)
        self._next: dict[tuple[frozenset[int], int, str], frozenset[int]] = {}

    def fullmatch(self, text: str) -> bool:
        """
        Whether all of *text* matches.
        """
        places = frozenset((0,))
        before = EDGE
        for character in text:
            key = (places, before, character)
            following = self._next.get(key)
            if following is None:
                following = self._after(places, before, character)
                if len(self._next) >= MOST_SETS:
                    self._next.clear()
                self._next[key] = following
            places = following
            if not places:
                return False
            if self._asserts:
                before = _kind(character)
        return len(self._program) in self._reachable(places, before, EDGE)

    def _after(self, places: frozenset[int], before: int, character: str) -> frozenset[int]:
        program = self._program
        after = set()
        for place in self._reachable(places, before, _kind(character)):
            step = program[place] if place < len(program) else None
            if isinstance(step, Char) and step.test(character):
                after.add(place + 1)
        return frozenset(after)

    def _reachable(self, places: Iterable[int], before: int, behind: int) -> set[int]:
        """
        The places that a match can reach without another character.
        """
        program = self._program
        reached: set[int] = set()
        left = list(places)
        while left:
            place = left.pop()
            if place in reached:
                continue
            reached.add(place)
            step = program[place] if place < len(program) else None
            if isinstance(step, Split):
                left += (place + step.first, place + step.second)
            elif isinstance(step, Assert) and step.holds(before, behind):
                left.append(place + 1)
        return reached


def _kind(character: str) -> int:
    if character == "\n":
        return NEWLINE
    if character == "_" or (character.isascii() and character.isalnum()):
        return WORD
    return OTHER
