"""
Programs that match a text, and how larger ones are made of smaller ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final, TypeAlias

from barnabas.coordination.regex.characters import InvalidPattern, Test
from barnabas.protocol.structs import NamedTuple

LARGEST_REPEAT: Final = 1000
"""Of ``{n,m}``, multiplied by those inside it; the limit of RE2/J."""
MOST_INSTRUCTIONS: Final = 10_000
"""Of a program, and characters of a pattern: each costs up to 2 us for a character of a text."""

# The kinds of characters that assertions distinguish.
EDGE, NEWLINE, WORD, OTHER = range(4)


class Char(NamedTuple):
    """
    Consume a character that passes the test. A class of several tests costs as many.
    """

    test: Test
    cost: int = 1


class Assert(NamedTuple):
    """
    Continue if the kinds of the characters before and after this place are right.
    """

    holds: Callable[[int, int], bool]


class Split(NamedTuple):
    """
    Continue at both places, given as distances from this one.
    """

    first: int
    second: int


Instruction: TypeAlias = Char | Assert | Split
Program: TypeAlias = tuple[Instruction, ...]


class Piece(NamedTuple):
    """
    A program for a part of a pattern, and the product of the repetitions nested in it.
    """

    program: Program
    repeats: int = 1


def sequence(pieces: Sequence[Piece]) -> Piece:
    """
    One piece after the other.
    """
    if len(pieces) == 1:
        return pieces[0]
    program = tuple(chain.from_iterable(piece.program for piece in pieces))
    return _limited(program, max((piece.repeats for piece in pieces), default=1))


def either(pieces: Sequence[Piece]) -> Piece:
    """
    One of the pieces, of which there is at least one.
    """
    *others, last = pieces
    parts = [last.program]
    behind = len(last.program)
    for piece in reversed(others):
        skip = Split(behind + 1, behind + 1)
        parts.append((Split(1, len(piece.program) + 2), *piece.program, skip))
        behind += len(parts[-1])
        if behind > MOST_INSTRUCTIONS:
            raise InvalidPattern("expression too large")
    program = tuple(chain.from_iterable(reversed(parts)))
    return _limited(program, max(piece.repeats for piece in pieces))


def repeated(piece: Piece, least: int, most: int | None) -> Piece:
    """
    A piece from *least* to *most* times; without limit if *most* is None.

    Raises:
        InvalidPattern: that is too often, or the program gets too large.
    """
    body = piece.program
    times = max(least, most or 0, 1)
    if piece.repeats * times > LARGEST_REPEAT:
        raise InvalidPattern("invalid repeat count")
    if len(body) * times > MOST_INSTRUCTIONS:
        raise InvalidPattern("expression too large")
    if most is None:
        back = -len(body) - 1
        optional: Program = (Split(1, len(body) + 2), *body, Split(back, back))
    else:
        optional = (Split(1, len(body) + 1), *body) * (most - least)
    return _limited(body * least + optional, piece.repeats * times)


def _limited(program: Program, repeats: int) -> Piece:
    if len(program) > MOST_INSTRUCTIONS:
        raise InvalidPattern("expression too large")
    return Piece(program, repeats)
