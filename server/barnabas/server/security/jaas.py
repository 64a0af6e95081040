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
    |(?P<mark>[=;{}])
    |(?P<word>[^\s=;{}"']+)""",
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
    modules = list(_modules(_tokens(text), None))
    if not modules:
        raise ValueError("it has no login module")
    return modules


def parse_jaas_file(text: str) -> dict[str, list[LoginModule]]:
    """
    The sections of a file, by their names::

        KafkaServer {
            org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";
        };

    Raises:
        ValueError: it is malformed. The sentence has nothing of the values, which are secrets.
    """
    sections: dict[str, list[LoginModule]] = {}
    tokens = _tokens(text)
    for name in tokens:
        if next(tokens, None) != "{":
            raise ValueError(f"there is no {{ behind {name}")
        sections[name] = list(_modules(tokens, "}"))
        if next(tokens, None) != ";":
            raise ValueError(f"the section {name} does not end with }};")
    return sections


def _modules(tokens: Iterator[str], end: str | None) -> Iterator[LoginModule]:
    """
    The login modules up to the token *end*, or to the end of the text.
    """
    while (name := next(tokens, None)) != end:
        if name is None:
            raise ValueError("a section is not closed")
        flag = next(tokens, "")
        if flag.lower() not in FLAGS:
            raise ValueError(f"behind the login module {name} has to be one of {', '.join(FLAGS)}")
        yield LoginModule(name, flag.lower(), dict(_options(tokens)))


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
