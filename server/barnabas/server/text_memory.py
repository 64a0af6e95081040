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
