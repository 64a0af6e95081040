"""
JAAS: the text in which Kafka's options have the users of a mechanism (Kafka ``JaasConfig``).

::

    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from barnabas.protocol.structs import struct

FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/
    |(?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    |(?P<mark>[=;])
    |(?P<word>[^\s=;"']+)""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


@struct
class LoginModule:
    """
    One entry: a login module with its options.
    """

    name: str
    flag: str
    options: Mapping[str, str]


def parse_jaas(text: str) -> list[LoginModule]:
    """
    The entries in *text*.

    Raises:
        ValueError: it is malformed. The sentence has nothing of the values, which are secrets.
    """
    tokens = _tokens(text)
    modules = []
    while (name := next(tokens, None)) is not None:
        flag = next(tokens, "")
        if flag.lower() not in FLAGS:
            raise ValueError(f"behind the login module {name} has to be one of {', '.join(FLAGS)}")
        modules.append(LoginModule(name, flag.lower(), dict(_options(tokens))))
    if not modules:
        raise ValueError("it has no login module")
    return modules


def _options(tokens: Iterator[str]) -> Iterator[tuple[str, str]]:
    for key in tokens:
        if key == ";":
            return
        if next(tokens, None) != "=":
            raise ValueError(f"there is no = behind {key}")
        value = next(tokens, None)
        if value is None or value in ("=", ";"):
            raise ValueError(f"there is no value behind {key}=")
        yield key, value
    raise ValueError("a login module ends with ;")


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError("a quotation mark has no counterpart")
        if match["quoted"]:
            yield re.sub(
                r"\\(.)",
                lambda found: _ESCAPES.get(found[1], found[1]),
                match["quoted"][1:-1],
                flags=re.DOTALL,
            )
        elif match["mark"] or match["word"]:
            yield match["mark"] or match["word"]
        at = match.end()
