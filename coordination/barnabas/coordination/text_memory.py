"""
The memory that Python takes for a text that a client has sent.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import Final

MOST_BYTES_OF_A_CHARACTER: Final = 4
"""
One character beyond U+FFFF makes Python store all characters of its string in four bytes.
"""
_MORE_OF_A_TEXT: Final = 32
"""
A text that is not ASCII has a larger header.
"""


MOST_BYTES_OF_A_NAME: Final = 256
"""
The memory of a text in a collection whose limit counts entries.
"""

_SHORT_WHATEVER_IT_HOLDS: Final = (
    MOST_BYTES_OF_A_NAME - _MORE_OF_A_TEXT
) // MOST_BYTES_OF_A_CHARACTER
"""
Texts of this many characters are short, whichever characters they are.
"""


def is_short(text: str) -> bool:
    """
    Return true if *text* may be an entry of a collection whose limit counts entries.
    """
    length = len(text)
    if length <= _SHORT_WHATEVER_IT_HOLDS:
        return True
    return length <= MOST_BYTES_OF_A_NAME and text_bytes(text) <= MOST_BYTES_OF_A_NAME


def shortened(text: str) -> str:
    """
    *text*, or its digest if it is long, for a collection whose limit counts entries.
    """
    if is_short(text):
        return text
    import hashlib  # noqa: PLC0415 - it loads OpenSSL, 3 MiB, which few brokers need

    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def text_bytes(text: str) -> int:
    """
    The memory of *text* beside that of an empty string, at most. Every budget counts texts by this,
    not by their characters.

    A budget counts a text again when it is dropped, so the result never changes, unlike that of
    ``getsizeof``: CPython may keep another encoding of a string.
    """
    if text.isascii():
        return len(text)
    return _MORE_OF_A_TEXT + MOST_BYTES_OF_A_CHARACTER * len(text)
