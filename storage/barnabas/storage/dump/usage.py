"""
The help, in the layout of Kafka's library (joptsimple's BuiltinHelpFormatter).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from barnabas.storage.dump.options import OPTIONS, DumpOption

DESCRIPTION: Final = (
    "This tool helps to parse a log file and dump its contents to the console, useful for "
    "debugging a seemingly corrupt log segment."
)

_WIDTH: Final = 80
_GAP: Final = 2
_INDENT: Final = "  "
_PIECE: Final = re.compile(r"\S+?(?:-(?=[a-z])|\.(?=[a-zA-Z])|\s+|$)")
"""A line is broken only between two of these: behind a blank, a hyphen or a dot."""


def usage(options: Iterable[DumpOption] = OPTIONS.values()) -> str:
    """
    A table of the options and their descriptions. Each line is filled up with blanks.
    """
    rows = [("Option", "Description"), ("------", "-----------")]
    rows += [(_title(option), _description(option)) for option in options]
    left = max(len(title) for title, _ in rows)
    right = min(_WIDTH - left - _GAP, max(len(text) for _, text in rows))
    lines = []
    for title, text in rows:
        for line in _wrapped(text, right):
            lines.append(f"{title:<{left}}{'':{_GAP}}{line:<{right}}\n")
            title = ""  # noqa: PLW2901 - only the first line of a row has it.
    return "".join(lines)


def _title(option: DumpOption) -> str:
    return f"--{option.name} {option.argument}".rstrip()


def _description(option: DumpOption) -> str:
    return f"{option.help} (default: {option.default})" if option.default else option.help


def _wrapped(text: str, width: int) -> Iterator[str]:
    line = ""
    for piece in _PIECE.findall(text):
        if len(line) + len(piece) > width:
            yield line.rstrip()
            line = _INDENT
        line += piece
    yield line.rstrip()
