"""
Regular expressions that clients send, in the dialect that Kafka's brokers take (RE2/J).

It knows nothing that would need going back in the text: neither lookaround nor references to what a
group has matched. Python does, and so takes patterns that Kafka refuses. The other way round, ours
know no Unicode properties (``\\p{Greek}``) and no POSIX classes (``[[:alpha:]]``).
"""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(
    r"""
      (?P<unknown> \\[1-9] | \(\?(?:[=!>(\#] | <[=!] | P[=>]) | (?:[*+?]|\{\d+(?:,\d*)?\})\+ )
    | \\Q (?P<quoted> .*? ) (?: \\E | $ )
    | (?P<end> \\z )
    | (?P<class> \[ \^? \]? (?: \\. | [^\]\\] )* \] )
    | \\. | .
    """,
    re.VERBOSE | re.DOTALL,
)


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
    return r"\Z" if token["end"] is not None else token.group()
