"""
Regular expressions that clients send, in the dialect that Kafka's brokers take (RE2/J).

It knows nothing that would need going back in the text: neither lookaround nor references to what a
group has matched. Python does, and so takes patterns that Kafka refuses. The other way round, ours
know no Unicode properties (``\\p{Greek}``) and no POSIX classes that are negated
(``[[:^alpha:]]``).
"""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(
    r"""
      (?P<unknown> \\[1-9] | \(\?(?:[=!>(\#] | <[=!] | P[=>]) | (?:[*+?]|\{\d+(?:,\d*)?\})\+ )
    | \\Q (?P<quoted> .*? ) (?: \\E | $ )
    | (?P<end> \\z )
    | (?P<class> \[ \^? \]? (?: \\. | \[:\^?\w+:\] | [^\]\\] )* \] )
    | \\. | .
    """,
    re.VERBOSE | re.DOTALL,
)

_POSIX: Final = re.compile(r"(?P<escaped>\\.)|\[:(?P<name>\^?\w+):\]|(?P<other>\[)", re.DOTALL)
_POSIX_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


def compile_re2(text: str) -> re.Pattern[str]:
    """
    Raises:
        re.error: *text* is no pattern of this dialect.
    """
    return re.compile("".join(map(_translated, _TOKEN.finditer(text))))


def _translated(token: re.Match[str]) -> str:
    if token["unknown"] is not None:
        raise re.error(f"invalid or unsupported syntax: `{token.group()}`")
    if token["quoted"] is not None:
        return re.escape(token["quoted"])
    if token["class"] is not None:
        return "[" + _POSIX.sub(_translated_class, token["class"][1:])
    return r"\Z" if token["end"] is not None else token.group()


def _translated_class(part: re.Match[str]) -> str:
    """
    A part of what is between brackets, where brackets stand for themselves.
    """
    if part["name"] is not None:
        if part["name"] not in _POSIX_CLASSES:
            raise re.error(f"invalid or unsupported character class: `{part.group()}`")
        return _POSIX_CLASSES[part["name"]]
    return part["escaped"] or r"\["
