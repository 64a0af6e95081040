"""
Patterns, ready to be matched.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Final

from barnabas.coordination.regex.characters import InvalidPattern
from barnabas.coordination.regex.parser import Parser
from barnabas.coordination.regex.program import (
    EDGE,
    MOST_INSTRUCTIONS,
    NEWLINE,
    OTHER,
    WORD,
    Assert,
    Char,
    Program,
    Split,
)

__all__ = ["InvalidPattern", "LinearPattern"]

MOST_SETS: Final = 1_000
"""Kept sets of places; one more, and all are dropped. ``.*foo.*bar.*[0-9]{3}`` has 62."""
MOST_PLACES: Final = 20_000
"""Places in all kept sets together, about 100 bytes each."""
INSTRUCTIONS_PER_STEP: Final = 256
"""A step takes less than 0.5 ms."""
CHARACTERS_PER_STEP: Final = 1024
"""The same for characters that are looked up."""


class LinearPattern:
    """
    A compiled pattern.

    The set of places after a set and a character is kept, so that most characters cost one look-up:
    a lazily built automaton.

    Not safe to use from two threads.
    """

    __slots__ = ("_asserts", "_kept_places", "_next", "_program")

    def __init__(self, text: str) -> None:
        """
        Raises:
            InvalidPattern: *text* is no pattern of this dialect, or too large a one.
        """
        steps = parsed(text)
        while True:
            try:
                next(steps)
            except StopIteration as ended:
                self._take(ended.value)
                return

    @classmethod
    def in_steps(cls, text: str) -> Generator[None, None, LinearPattern]:
        """
        Compile *text* in short steps.

        Raises:
            InvalidPattern: as in the constructor.
        """
        pattern = cls.__new__(cls)
        pattern._take((yield from parsed(text)))
        return pattern

    def _take(self, program: Program) -> None:
        self._program = program
        self._asserts = any(isinstance(step, Assert) for step in program)
        self._next: dict[tuple[frozenset[int], int, str], frozenset[int]] = {}
        self._kept_places = 0

    @property
    def size(self) -> int:
        """
        The number of instructions.
        """
        return len(self._program)

    def fullmatch(self, text: str) -> bool:
        """
        Match all of *text* in one step. Use ``matching`` for a long text or pattern.
        """
        steps = self.matching(text)
        while True:
            try:
                next(steps)
            except StopIteration as ended:
                return bool(ended.value)

    def matching(self, text: str) -> Generator[None, None, bool]:
        """
        Find out in short steps whether all of *text* matches.
        """
        places = frozenset((0,))
        before = EDGE
        for number, character in enumerate(text, 1):
            if number % CHARACTERS_PER_STEP == 0:
                yield
            key = (places, before, character)
            following = self._next.get(key)
            if following is None:
                following = yield from self._after(places, before, character)
                self._keep(key, following)
            places = following
            if not places:
                return False
            if self._asserts:
                before = _kind(character)
        return len(self._program) in (yield from self._reachable(places, before, EDGE))

    def _keep(self, key: tuple[frozenset[int], int, str], following: frozenset[int]) -> None:
        kept = len(following) + 1
        if len(self._next) >= MOST_SETS or self._kept_places + kept > MOST_PLACES:
            self._next.clear()
            self._kept_places = 0
        self._next[key] = following
        self._kept_places += kept

    def _after(
        self, places: frozenset[int], before: int, character: str
    ) -> Generator[None, None, frozenset[int]]:
        program = self._program
        after = set()
        work = 0
        reached = yield from self._reachable(places, before, _kind(character))
        for place in reached:
            step = program[place] if place < len(program) else None
            work += step.cost if isinstance(step, Char) else 1
            if work >= INSTRUCTIONS_PER_STEP:
                work = 0
                yield
            if isinstance(step, Char) and step.test(character):
                after.add(place + 1)
        return frozenset(after)

    def _reachable(
        self, places: Iterable[int], before: int, behind: int
    ) -> Generator[None, None, set[int]]:
        """
        The places that a match can reach without another character.
        """
        program = self._program
        reached: set[int] = set()
        left = list(places)
        number = 0
        while left:
            number += 1
            if number % INSTRUCTIONS_PER_STEP == 0:
                yield
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


def parsed(text: str) -> Generator[None, None, Program]:
    """
    The program of *text*, made in short steps.

    Raises:
        InvalidPattern: *text* is no pattern of this dialect, or too large a one.
    """
    if len(text) > MOST_INSTRUCTIONS:
        raise InvalidPattern("expression too large")
    # A short text may be a large program, which takes more than a millisecond.
    yield
    return (yield from Parser(text).parse())


def _kind(character: str) -> int:
    if character == "\n":
        return NEWLINE
    if character == "_" or (character.isascii() and character.isalnum()):
        return WORD
    return OTHER
