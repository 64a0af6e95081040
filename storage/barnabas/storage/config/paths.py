"""
Paths in the arguments of commands.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Final

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_LONGEST_PATH: Final = 4095
_LONGEST_NAME: Final = 255
"""The limits of Linux, in bytes (PATH_MAX, NAME_MAX)."""


def local_path(text: str) -> Path:
    """
    The path in an argument, for ``argparse``.

    Raises:
        ArgumentTypeError: *text* is empty, a URL, or no possible path.
    """
    if reason := why_no_path(text):
        raise argparse.ArgumentTypeError(reason)
    return Path(text)


def why_no_path(text: str) -> str | None:
    """
    Why no file of this machine can have the path *text*; None if one can.
    """
    if not text.strip():
        return "the path is empty"
    if _URL.match(text):
        return f"{text} is a URL; name a path of this machine"
    if "\0" in text:
        return "the path has a null character"
    sizes = [len(name.encode(errors="surrogatepass")) for name in text.split("/")]
    if max(sizes) > _LONGEST_NAME or sum(sizes) + len(sizes) > _LONGEST_PATH:
        return f"{text[:40]}... is too long for a path"
    return None
