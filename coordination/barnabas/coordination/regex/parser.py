"""
The parser: from the text of a pattern to its program, without recursion.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

from barnabas.coordination.regex.characters import (
    Fold,
    InvalidPattern,
    any_character,
    as_is,
    class_test,
    escape_test,
    folded,
)
from barnabas.coordination.regex.program import (
    EDGE,
    LARGEST_REPEAT,
    NEWLINE,
    WORD,
    Assert,
    Char,
    Instruction,
    Piece,
    Program,
    either,
    repeated,
    sequence,
)

DEEPEST_NESTING: Final = 1000
"""Of groups; the limit of RE2/J."""

TOKENS_PER_STEP: Final = 64
"""A step takes less than 1 ms, but for a class or an alternation of thousands: up to 10 ms."""

_TOKEN: Final = re.compile(
    r"""
      \\Q (?P<quoted> .*? ) (?: \\E | $ )
    | (?P<group> \( (?: \?P?<(?P<name>\w+)> | \?(?P<flags>[imsU]*(?:-[imsU]+)?)(?P<kind>[:)]) )? )
    | (?P<repeat> [*+?] | \{ (?P<least>\d+) (?P<comma>,)? (?P<most>\d+)? \} ) (?P<lazy>\?)?
    | (?P<class> \[ \^? \]?+ (?: \\. | \[:\^?\w+:\] | [^\]\\] )*+ \] )
    | (?P<escape> \\ (?: x\{[0-9A-Fa-f]+\} | x[0-9A-Fa-f]{2} | [pP]\{\^?\w+\} | [pP]\w
                       | 0[0-7]{0,2} | [1-7][0-7]{1,2} | . ) )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)

_ASSERTIONS: Final[dict[str, Assert]] = {
    r"\A": Assert(lambda before, _: before == EDGE),
    r"\z": Assert(lambda _, behind: behind == EDGE),
    r"\b": Assert(lambda before, behind: (before == WORD) != (behind == WORD)),
    r"\B": Assert(lambda before, behind: (before == WORD) == (behind == WORD)),
}
_LINE_START: Final = Assert(lambda before, _: before in (EDGE, NEWLINE))
_LINE_END: Final = Assert(lambda _, behind: behind in (EDGE, NEWLINE))


class _Group:
    """
    An open group: its alternatives up to the last bar, and the pieces after it.
    """

    __slots__ = ("alternatives", "flags", "pieces")

    def __init__(self, flags: frozenset[str]) -> None:
        self.flags = flags  # outside the group
        self.alternatives: list[Piece] = []
        self.pieces: list[Piece] = []

    def end_alternative(self) -> None:
        self.alternatives.append(sequence(self.pieces))
        self.pieces = []

    def close(self) -> Piece:
        self.end_alternative()
        return either(self.alternatives) if len(self.alternatives) > 1 else self.alternatives[0]


class Parser:
    """
    Parses one pattern.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._flags: frozenset[str] = frozenset()
        self._groups = [_Group(self._flags)]
        self._may_repeat = False
        self._names: set[str] = set()

    def parse(self) -> Generator[None, None, Program]:
        """
        Parse in short steps.

        Raises:
            InvalidPattern: the text is no pattern of this dialect, or too large a one.
        """
        for number, token in enumerate(_TOKEN.finditer(self._text), 1):
            if number % TOKENS_PER_STEP == 0:
                yield
            self._take(token)
        if len(self._groups) > 1:
            raise InvalidPattern("missing closing )", self._text)
        return self._groups[0].close().program

    def _take(self, token: re.Match[str]) -> None:
        word = token.group()
        if token["repeat"] is not None:
            self._repeat(token)
        elif token["group"] is not None:
            self._open(token)
        elif token["quoted"] is not None:
            for character in token["quoted"]:
                self._add(Char(self._fold(character.__eq__)))
        elif word == ")":
            self._close()
        elif word == "|":
            self._groups[-1].end_alternative()
            self._may_repeat = False
        else:
            self._add(self._instruction(token))

    def _add(self, instruction: Instruction) -> None:
        self._groups[-1].pieces.append(Piece((instruction,)))
        self._may_repeat = True

    def _instruction(self, token: re.Match[str]) -> Instruction:
        word = token.group()
        if token["class"] is not None:
            return Char(*class_test(word, self._fold))
        if token["escape"] is not None:
            return _ASSERTIONS.get(word) or Char(escape_test(word, self._fold))
        match word:
            case "[":
                raise InvalidPattern("missing closing ]", "[")
            case "\\":
                raise InvalidPattern("trailing backslash at end of pattern", "\\")
            case ".":
                return Char(any_character if "s" in self._flags else "\n".__ne__)
            case "^":
                return _LINE_START if "m" in self._flags else _ASSERTIONS[r"\A"]
            case "$":
                return _LINE_END if "m" in self._flags else _ASSERTIONS[r"\z"]
            case _:
                return Char(self._fold(word.__eq__))

    @property
    def _fold(self) -> Fold:
        return folded if "i" in self._flags else as_is

    def _repeat(self, token: re.Match[str]) -> None:
        word = token.group()
        pieces = self._groups[-1].pieces
        if not self._may_repeat:
            problem = "invalid nested repetition operator" if pieces else "missing argument to"
            raise InvalidPattern(f"{problem} repetition operator", word)
        least, most = _counts(token)
        if most is not None and least > most:
            raise InvalidPattern("invalid repeat count", word)
        pieces.append(repeated(pieces.pop(), least, most))
        self._may_repeat = False

    def _open(self, token: re.Match[str]) -> None:
        if token.group() == "(" and self._text.startswith("?", token.end()):
            unknown = self._text[token.start() : token.end() + 2]
            raise InvalidPattern("invalid or unsupported Perl syntax", unknown)
        if token["name"] is not None:
            if token["name"] in self._names:
                raise InvalidPattern("duplicate capture group name", token["name"])
            self._names.add(token["name"])
        outside = self._flags
        if token["flags"] is not None:
            if not token["flags"] and token["kind"] == ")":
                raise InvalidPattern("missing argument to repetition operator", "?")
            on, _, off = token["flags"].partition("-")
            self._flags = (self._flags | frozenset(on)) - frozenset(off)
        if token["kind"] == ")":
            # The flags hold to the end of the group around. A repetition behind them, as RE2/J has
            # it, is of the piece before them.
            self._may_repeat = bool(self._groups[-1].pieces)
            return
        self._may_repeat = False
        if len(self._groups) > DEEPEST_NESTING:
            raise InvalidPattern("expression nests too deeply")
        self._groups.append(_Group(outside))

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise InvalidPattern("unexpected )", ")")
        group = self._groups.pop()
        self._flags = group.flags
        self._groups[-1].pieces.append(group.close())
        self._may_repeat = True


def _counts(token: re.Match[str]) -> tuple[int, int | None]:
    if token["least"] is None:
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[token["repeat"]]
    if max(len(token["least"]), len(token["most"] or "")) > len(str(LARGEST_REPEAT)):
        raise InvalidPattern("invalid repeat count", token.group())
    least = int(token["least"])
    if token["most"] is not None:
        return least, int(token["most"])
    return least, None if token["comma"] else least
