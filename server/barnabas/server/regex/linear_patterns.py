"""
Regular expressions that clients send, matched in linear time.

The dialect is that of Kafka's brokers (RE2/J): neither lookaround nor references to what a group
has matched, so that no pattern needs going back in the text. Python's own engine goes back, and
some patterns take it years. (RE2 itself has wheels for some systems only.)

::

    pattern --parse--> program --+
                                 |  set of places in it --character--> set of places
    text ------------------------+

A pattern becomes a program of four instructions. Where in the program a match can be after each
character is a set, and the sets that were met are kept with what follows them: a lazily built
automaton. The work for a character is bounded by the size of the program, which is bounded too.

Only whole texts are matched, and groups capture nothing: greedy and lazy repetition are the same.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from barnabas.protocol.named_tuple import NamedTuple

LARGEST_REPEAT: Final = 1000
"""Of ``{n,m}``, also of one inside another; the limit of RE2/J."""
DEEPEST_NESTING: Final = 1000
MOST_INSTRUCTIONS: Final = 10_000
"""Of a program, and characters of a pattern."""
MOST_SETS: Final = 1_000
"""Kept sets of places; when there are more, all are forgotten."""

Test: TypeAlias = Callable[[str], bool]


class InvalidPattern(ValueError):
    """
    The text is no pattern of the dialect, or too large a one.
    """


class Char(NamedTuple):
    """
    Go on behind a character that passes.
    """

    test: Test


class Split(NamedTuple):
    """
    Go on at two places, so many instructions away.
    """

    first: int
    second: int


class Jump(NamedTuple):
    """
    Go on so many instructions away.
    """

    distance: int


class Assert(NamedTuple):
    """
    Go on if the kinds of the characters before and behind are right.
    """

    holds: Callable[[int, int], bool]


Instruction: TypeAlias = Char | Split | Jump | Assert
Program: TypeAlias = tuple[Instruction, ...]

# The kinds of characters, as far as assertions tell them apart.
EDGE, NEWLINE, WORD, OTHER = range(4)

_ASSERTIONS: Final[dict[str, Assert]] = {
    r"\A": Assert(lambda before, _: before == EDGE),
    r"\z": Assert(lambda _, behind: behind == EDGE),
    r"\b": Assert(lambda before, behind: (before == WORD) != (behind == WORD)),
    r"\B": Assert(lambda before, behind: (before == WORD) == (behind == WORD)),
}
_LINE_START: Final = Assert(lambda before, _: before in (EDGE, NEWLINE))
_LINE_END: Final = Assert(lambda _, behind: behind in (EDGE, NEWLINE))


def _kind(character: str) -> int:
    if character == "\n":
        return NEWLINE
    if character == "_" or (character.isascii() and character.isalnum()):
        return WORD
    return OTHER


class LinearPattern:
    """
    A compiled pattern. Not for two threads at a time.
    """

    __slots__ = ("_asserts", "_next", "_program", "text")

    def __init__(self, text: str) -> None:
        """
        Raises:
            InvalidPattern: *text* is no pattern of this dialect.
        """
        if len(text) > MOST_INSTRUCTIONS:
            raise InvalidPattern("expression too large")
        self.text = text
        self._program = _Parser(text).parse()
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
            found = self._next.get(key)
            if found is None:
                found = self._after(places, before, character)
                if len(self._next) >= MOST_SETS:
                    self._next.clear()
                self._next[key] = found
            places = found
            if not places:
                return False
            if self._asserts:
                before = _kind(character)
        return len(self._program) in self._reachable(places, before, EDGE)

    def _after(self, places: frozenset[int], before: int, character: str) -> frozenset[int]:
        program = self._program
        after = set()
        for place in self._reachable(places, before, _kind(character)):
            if place < len(program):
                step = program[place]
                if isinstance(step, Char) and step.test(character):
                    after.add(place + 1)
        return frozenset(after)

    def _reachable(self, places: Iterable[int], before: int, behind: int) -> set[int]:
        """
        Where a match can be without another character.
        """
        program = self._program
        reached: set[int] = set()
        left = list(places)
        while left:
            place = left.pop()
            if place in reached:
                continue
            reached.add(place)
            if place == len(program):
                continue
            step = program[place]
            if isinstance(step, Split):
                left += (place + step.first, place + step.second)
            elif isinstance(step, Jump):
                left.append(place + step.distance)
            elif isinstance(step, Assert) and step.holds(before, behind):
                left.append(place + 1)
        return reached


class _Piece(NamedTuple):
    """
    A part of a program, and how often repetitions in it multiply.
    """

    program: Program
    repeats: int


_NOTHING: Final = _Piece((), 1)


class _Group:
    """
    A group that is being read: what came before its last bar, and what has come since.
    """

    __slots__ = ("alternatives", "flags", "pieces")

    def __init__(self, flags: frozenset[str]) -> None:
        self.flags = flags  # of what is around the group
        self.alternatives: list[_Piece] = []
        self.pieces: list[_Piece] = []

    def end_alternative(self) -> None:
        self.alternatives.append(_sequence(self.pieces))
        self.pieces = []

    def whole(self) -> _Piece:
        self.end_alternative()
        *others, piece = self.alternatives
        for other in reversed(others):
            piece = _either(other, piece)
        return piece


def _sequence(pieces: list[_Piece]) -> _Piece:
    program = tuple(step for piece in pieces for step in piece.program)
    return _limited(program, max((piece.repeats for piece in pieces), default=1))


def _either(first: _Piece, second: _Piece) -> _Piece:
    a, b = first.program, second.program
    program = (Split(1, len(a) + 2), *a, Jump(len(b) + 1), *b)
    return _limited(program, max(first.repeats, second.repeats))


def _repeated(piece: _Piece, least: int, most: int | None) -> _Piece:
    body = piece.program
    repeats = piece.repeats * max(least, most or 0, 1)
    if repeats > LARGEST_REPEAT or least > LARGEST_REPEAT:
        raise InvalidPattern("invalid repeat count")
    if len(body) * max(least, most or 0, 1) > MOST_INSTRUCTIONS:
        raise InvalidPattern("expression too large")
    if most is None:
        again: Program = (Split(1, len(body) + 2), *body, Jump(-len(body) - 1))
        return _limited(body * least + again, repeats)
    perhaps: Program = (Split(1, len(body) + 1), *body)
    return _limited(body * least + perhaps * (most - least), repeats)


def _limited(program: Program, repeats: int) -> _Piece:
    if len(program) > MOST_INSTRUCTIONS:
        raise InvalidPattern("expression too large")
    return _Piece(program, repeats)


_TOKEN: Final = re.compile(
    r"""
      \\Q (?P<quoted> .*? ) (?: \\E | $ )
    | (?P<group> \( (?: \?P?<(?P<name>\w+)> | \?(?P<flags>[imsU]*(?:-[imsU]+)?)(?P<kind>[:)]) )? )
    | (?P<repeat> [*+?] | \{ (?P<least>\d+) (?P<comma>,)? (?P<most>\d+)? \} ) (?P<lazy>\?)?
    | (?P<class> \[ \^? \]? (?: \\. | \[:\^?\w+:\] | [^\]\\] )* \] )
    | (?P<escape> \\ (?: x\{[0-9A-Fa-f]+\} | x[0-9A-Fa-f]{2} | [pP]\{\^?\w+\} | [pP]\w
                       | 0[0-7]{0,2} | [1-7][0-7]{1,2} | . ) )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)


class _Parser:
    """
    Reads a pattern, without recursion.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._flags: frozenset[str] = frozenset()
        self._groups = [_Group(self._flags)]
        self._may_repeat = False
        self._names: set[str] = set()

    def parse(self) -> Program:
        position = 0
        while position < len(self._text):
            token = _TOKEN.match(self._text, position)
            assert token is not None, "any character is a token"
            position = token.end()
            self._take(token)
        if len(self._groups) > 1:
            raise InvalidPattern(f"missing closing ): `{self._text}`")
        return self._groups[0].whole().program

    def _take(self, token: re.Match[str]) -> None:
        if token["repeat"] is not None:
            self._repeat(token)
            return
        if token["group"] is not None:
            self._open(token)
            return
        word = token.group()
        if word == ")":
            self._close()
        elif word == "|":
            self._groups[-1].end_alternative()
            self._may_repeat = False
        elif token["quoted"] is not None:
            for character in token["quoted"]:
                self._add(Char(self._literal(character)))
        else:
            self._add(self._step(token))

    def _add(self, *steps: Instruction) -> None:
        self._groups[-1].pieces.append(_Piece(steps, 1))
        self._may_repeat = True

    def _step(self, token: re.Match[str]) -> Instruction:
        word = token.group()
        if token["class"] is not None:
            return Char(self._folded(_class(word)))
        if token["escape"] is not None:
            return _ASSERTIONS.get(word) or Char(self._folded(_escape(word)))
        if word in ("[", "\\"):
            missing = "missing closing ]" if word == "[" else "trailing backslash at end of pattern"
            raise InvalidPattern(f"{missing}: `{word}`")
        if word == ".":
            return Char(_anything if "s" in self._flags else _no_newline)
        if word == "^":
            return _LINE_START if "m" in self._flags else _ASSERTIONS[r"\A"]
        if word == "$":
            return _LINE_END if "m" in self._flags else _ASSERTIONS[r"\z"]
        return Char(self._literal(word))

    def _literal(self, character: str) -> Test:
        if "i" in self._flags:
            cases = {character, *_cases(character)}
            return cases.__contains__
        return character.__eq__

    def _folded(self, test: Test) -> Test:
        if "i" not in self._flags:
            return test
        return lambda character: any(map(test, (character, *_cases(character))))

    def _repeat(self, token: re.Match[str]) -> None:
        word = token.group()
        if not self._may_repeat:
            pieces = self._groups[-1].pieces
            problem = "invalid nested repetition operator" if pieces else "missing argument to"
            raise InvalidPattern(f"{problem} repetition operator: `{word}`")
        least, most = _counts(token)
        if most is not None and least > most:
            raise InvalidPattern(f"invalid repeat count: `{word}`")
        pieces = self._groups[-1].pieces
        pieces.append(_repeated(pieces.pop(), least, most))
        self._may_repeat = False

    def _open(self, token: re.Match[str]) -> None:
        if token["name"] in self._names:
            raise InvalidPattern(f"duplicate capture group name: `{token['name']}`")
        if token["name"] is not None:
            self._names.add(token["name"])
        around = self._flags
        if token["flags"] is not None:
            if not token["flags"] and token["kind"] == ")":
                raise InvalidPattern("missing argument to repetition operator: `?`")
            on, _, off = token["flags"].partition("-")
            self._flags = (self._flags | frozenset(on)) - frozenset(off)
        self._may_repeat = False
        if token["kind"] == ")":
            return
        if len(self._groups) > DEEPEST_NESTING:
            raise InvalidPattern("expression nests too deeply")
        self._groups.append(_Group(around))

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise InvalidPattern("unexpected ): `)`")
        group = self._groups.pop()
        self._flags = group.flags
        self._groups[-1].pieces.append(group.whole())
        self._may_repeat = True


def _counts(token: re.Match[str]) -> tuple[int, int | None]:
    if token["least"] is None:
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[token["repeat"]]
    if max(len(token["least"]), len(token["most"] or "")) > len(str(LARGEST_REPEAT)):
        raise InvalidPattern(f"invalid repeat count: `{token.group()}`")
    least = int(token["least"])
    if token["most"] is not None:
        return least, int(token["most"])
    return least, None if token["comma"] else least


def _anything(_: str) -> bool:
    return True


def _no_newline(character: str) -> bool:
    return character != "\n"


def _cases(character: str) -> tuple[str, str]:
    return character.lower(), character.upper()


def _in(*ranges: tuple[str, str]) -> Test:
    return lambda character: any(first <= character <= last for first, last in ranges)


def _not(test: Test) -> Test:
    return lambda character: not test(character)


_LOWER, _UPPER, _DIGITS = ("a", "z"), ("A", "Z"), ("0", "9")
_POSIX: Final[dict[str, Test]] = {
    "alnum": _in(_DIGITS, _UPPER, _LOWER),
    "alpha": _in(_UPPER, _LOWER),
    "ascii": _in(("\0", "\x7f")),
    "blank": "\t ".__contains__,
    "cntrl": _in(("\0", "\x1f"), ("\x7f", "\x7f")),
    "digit": _in(_DIGITS),
    "graph": _in(("!", "~")),
    "lower": _in(_LOWER),
    "print": _in((" ", "~")),
    "punct": _in(("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": "\t\n\v\f\r ".__contains__,
    "upper": _in(_UPPER),
    "word": _in(_DIGITS, _UPPER, _LOWER, ("_", "_")),
    "xdigit": _in(_DIGITS, ("A", "F"), ("a", "f")),
}
_PERL: Final[dict[str, Test]] = {
    "d": _POSIX["digit"],
    "s": "\t\n\f\r ".__contains__,
    "w": _POSIX["word"],
}
_CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CATEGORY: Final = re.compile("C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?")
"""General categories of Unicode, which are named by one letter or two."""


def _escape(word: str) -> Test:
    """
    What *word*, which begins with a backslash, stands for.
    """
    letter = word[1:2]
    if letter in "pP":
        return _property(word)
    if letter.lower() in _PERL:
        return _PERL[letter] if letter in _PERL else _not(_PERL[letter.lower()])
    return _character(word).__eq__


def _character(word: str) -> str:
    """
    The one character that *word* stands for, which may begin with a backslash.
    """
    if not word.startswith("\\"):
        return word
    rest = word[1:]
    if rest[0] == "x" and len(rest) > 1:
        number = int(rest[1:].strip("{}"), 16)
        if number > 0x10FFFF:
            raise InvalidPattern(f"invalid escape sequence: `{word}`")
        return chr(number)
    if rest[0] == "0" or (len(rest) > 1 and rest.isdecimal()):
        return chr(int(rest, 8))
    if rest in _CONTROLS:
        return _CONTROLS[rest]
    if rest.isalnum() and rest.isascii():
        raise InvalidPattern(f"invalid escape sequence: `{word}`")
    return rest


def _property(word: str) -> Test:
    name = word[2:].strip("{}")
    negated = (word[1] == "P") != name.startswith("^")
    name = name.removeprefix("^")
    if name == "Any":
        found: Test = _anything
    elif _CATEGORY.fullmatch(name):
        found = lambda character: unicodedata.category(character).startswith(name)  # noqa: E731
    else:
        raise InvalidPattern(f"invalid character class range: `{word}`")
    return _not(found) if negated else found


_ESCAPED: Final = r"\\(?:x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|[0-7]{1,3}|.)"
_MEMBER: Final = re.compile(
    rf"""
      \[:(?P<negated>\^?)(?P<posix>\w+):\]
    | (?P<set> \\ (?: [pP]\{{\^?\w+\}} | [pP]\w | [dDsSwW] ) )
    | (?P<first> {_ESCAPED} | . ) (?: - (?P<last> {_ESCAPED} | [^\]] ) )?
    """,
    re.VERBOSE | re.DOTALL,
)


def _class(word: str) -> Test:
    """
    What *word*, between brackets, stands for.
    """
    inside = word[1:-1]
    negated = inside.startswith("^")
    tests = [_member(token) for token in _MEMBER.finditer(inside.removeprefix("^"))]

    def any_of(character: str) -> bool:
        return any(test(character) for test in tests)

    return _not(any_of) if negated else any_of


def _member(token: re.Match[str]) -> Test:
    if token["posix"] is not None:
        if token["posix"] not in _POSIX:
            raise InvalidPattern(f"invalid character class range: `{token.group()}`")
        test = _POSIX[token["posix"]]
        return _not(test) if token["negated"] else test
    if token["set"] is not None:
        return _escape(token["set"])
    first = _character(token["first"])
    last = first if token["last"] is None else _character(token["last"])
    if first > last:
        raise InvalidPattern(f"invalid character class range: `{token.group()}`")
    return _in((first, last))
