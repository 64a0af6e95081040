"""
Tests on one character: escapes, and classes in brackets.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

Test: TypeAlias = Callable[[str], bool]


class InvalidPattern(ValueError):
    """
    The text is no pattern of the dialect, or too large a one.

    Args:
        description: what is wrong, in the words of RE2/J.
        fragment: the part of the text that is.
    """

    def __init__(self, description: str, fragment: str | None = None) -> None:
        super().__init__(description if fragment is None else f"{description}: `{fragment}`")
        self.description = description


def any_character(_: str) -> bool:
    """
    Pass every character.
    """
    return True


Fold: TypeAlias = Callable[[Test], Test]
"""
Makes the test that counts of one that knows one case only: ``as_is``, or ``folded`` under ``(?i)``.
What is negated is folded before, not after: under ``(?i)``, ``[^a]`` takes neither a nor A.
"""


def as_is(test: Test) -> Test:
    """
    The test itself.
    """
    return test


def folded(test: Test) -> Test:
    """
    A test that a character passes in any case.
    """
    return lambda character: any(map(test, _cases(character)))


def _cases(character: str) -> Iterator[str]:
    """
    The character in other cases that are one character: \u00df in upper case would be two, and
    \u017f is an s by way of its upper case.
    """
    upper = character.upper()
    return (each for each in (character, character.lower(), upper, upper.lower()) if len(each) == 1)


def _not(test: Test) -> Test:
    return lambda character: not test(character)


def _in(*ranges: str) -> Test:
    """
    A test for *ranges*, of which each is given by its first and its last character.
    """
    return lambda character: any(each[0] <= character <= each[1] for each in ranges)


_POSIX: Final[dict[str, Test]] = {
    "alnum": _in("09", "AZ", "az"),
    "alpha": _in("AZ", "az"),
    "ascii": _in("\0\x7f"),
    "blank": "\t ".__contains__,
    "cntrl": _in("\0\x1f", "\x7f\x7f"),
    "digit": _in("09"),
    "graph": _in("!~"),
    "lower": _in("az"),
    "print": _in(" ~"),
    "punct": _in("!/", ":@", "[`", "{~"),
    "space": "\t\n\v\f\r ".__contains__,
    "upper": _in("AZ"),
    "word": _in("09", "AZ", "az", "__"),
    "xdigit": _in("09", "AF", "af"),
}
_PERL: Final[dict[str, Test]] = {
    "d": _POSIX["digit"],
    "s": "\t\n\f\r ".__contains__,
    "w": _POSIX["word"],
}
_CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CATEGORY: Final = re.compile("C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?")
"""General categories of Unicode, or the first letter of several."""

_ESCAPED: Final = r"\\(?:x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|[0-7]{1,3}|.)"
_MEMBER: Final = re.compile(
    rf"""
      \[:(?P<negated>\^?)(?P<posix>\w+):\]
    | (?P<set> \\ (?: [pP]\{{\^?\w+\}} | [pP]\w | [dDsSwW] ) )
    | (?P<first> {_ESCAPED} | . ) (?: - (?P<last> {_ESCAPED} | [^\]] ) )?
    """,
    re.VERBOSE | re.DOTALL,
)


def class_test(text: str, fold: Fold) -> tuple[Test, int]:
    """
    The test of a class, with its brackets, and how many tests that takes.

    Raises:
        InvalidPattern: a member of the class is unknown, or a range ends before it begins.
    """
    inside = text[1:-1]
    ranges: list[tuple[str, str]] = []
    sets: dict[str, Test] = {}
    for token in _MEMBER.finditer(inside.removeprefix("^")):
        if token["first"] is not None:
            ranges.append(_range(token))
        elif token.group() not in sets:
            sets[token.group()] = _set(token, fold)
    tests = list(sets.values())
    if ranges:
        tests.insert(0, fold(_in_sorted(ranges)))

    def any_of(character: str) -> bool:
        return any(test(character) for test in tests)

    return _not(any_of) if inside.startswith("^") else any_of, max(1, len(tests))


def _in_sorted(ranges: list[tuple[str, str]]) -> Test:
    """
    A test for very many ranges, in the time of a search among them.
    """
    firsts: list[str] = []
    lasts: list[str] = []
    for first, last in sorted(ranges):
        if lasts and first <= lasts[-1]:
            lasts[-1] = max(last, lasts[-1])
        else:
            firsts.append(first)
            lasts.append(last)

    def is_in(character: str) -> bool:
        place = bisect_right(firsts, character)
        return place > 0 and character <= lasts[place - 1]

    return is_in


def _range(token: re.Match[str]) -> tuple[str, str]:
    first = _character(token["first"])
    last = first if token["last"] is None else _character(token["last"])
    if first > last:
        raise InvalidPattern("invalid character class range", token.group())
    return first, last


def _set(token: re.Match[str], fold: Fold) -> Test:
    if token["posix"] is not None:
        if token["posix"] not in _POSIX:
            raise InvalidPattern("invalid character class range", token.group())
        test = fold(_POSIX[token["posix"]])
        return _not(test) if token["negated"] else test
    return escape_test(token["set"], fold)


def escape_test(text: str, fold: Fold) -> Test:
    """
    The test of an escape, with its backslash.

    Raises:
        InvalidPattern: there is no such escape.
    """
    letter = text[1]
    if letter in "pP":
        return _category_test(text, fold)
    if letter.lower() in _PERL:
        test = fold(_PERL[letter.lower()])
        return test if letter in _PERL else _not(test)
    return fold(_character(text).__eq__)


def _category_test(text: str, fold: Fold) -> Test:
    name = text[2:].strip("{}")
    is_negated = (text[1] == "P") != name.startswith("^")
    name = name.removeprefix("^")
    if name != "Any" and not _CATEGORY.fullmatch(name):
        raise InvalidPattern("invalid character class range", text)

    def has_category(character: str) -> bool:
        return name == "Any" or unicodedata.category(character).startswith(name)

    return _not(fold(has_category)) if is_negated else fold(has_category)


def _character(text: str) -> str:
    """
    The character that *text* stands for: itself, or an escape.
    """
    if not text.startswith("\\"):
        return text
    rest = text[1:]
    if rest[0] == "x" and len(rest) > 1:
        number = int(rest[1:].strip("{}"), 16)
        if number > 0x10FFFF:
            raise InvalidPattern("invalid escape sequence", text)
        return chr(number)
    if rest[0] == "0" or (len(rest) > 1 and rest.isdecimal()):
        return chr(int(rest, 8))
    if rest in _CONTROLS:
        return _CONTROLS[rest]
    if rest.isalnum() and rest.isascii():
        raise InvalidPattern("invalid escape sequence", text)
    return rest
