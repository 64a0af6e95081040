"""
Java's ``.properties`` files, as ``java.util.Properties`` reads and writes them.

A line is a key, then ``=``, ``:`` or white space, then a value. ``#`` and ``!`` begin a comment, a
backslash at the end continues the line in the next one. Escapes are ``\\t \\n \\r \\f \\uXXXX``,
and ``\\`` before any other character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.)|$)", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"


def read_properties(text: str) -> dict[str, str]:
    """
    The keys and values of *text*; a key that comes twice has its last value.

    Raises:
        ValueError: an escape ``\\u`` is not followed by four hexadecimal digits.
    """
    properties = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        properties[_unescape(key)] = _unescape(value)
    return properties


def format_properties(properties: Mapping[str, str], comments: tuple[str, ...] = ()) -> str:
    """
    *properties* as text, after *comments*.
    """
    lines = [f"#{comment}" for comment in comments]
    lines += [f"{_escape(key, key=True)}={_escape(value)}" for key, value in properties.items()]
    return "".join(line + "\n" for line in lines)


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(_BLANK)
        if not pending and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANK:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return line[:end], rest


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        code, character = match.groups()
        if code:
            return chr(int(code, 16))
        if character == "u":
            raise ValueError(f"malformed \\uXXXX in {text!r}")
        return _NAMED.get(character, character or "")

    found = _ESCAPE.sub(plain, text)
    if found != text and not found.isascii():
        # Two escapes of UTF-16 are one character.
        return found.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return found


def _escape(text: str, *, key: bool = False) -> str:
    escaped = re.sub(r"([\\=:#!])", r"\\\1", text)
    for letter, character in _NAMED.items():
        escaped = escaped.replace(character, "\\" + letter)
    if key:
        return escaped.replace(" ", "\\ ")
    return "\\" + escaped if escaped.startswith(" ") else escaped
