"""
Text as Java sees it.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import Final

_TRIMMED: Final = "".join(map(chr, range(ord(" ") + 1)))


def is_blank(text: str) -> bool:
    """
    Whether nothing is left of *text* after ``String.trim``.
    """
    return not text.strip(_TRIMMED)
