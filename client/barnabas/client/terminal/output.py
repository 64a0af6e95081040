"""
Tables for people and JSON for scripts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

_GAP: Final = "  "

Cell = str | int | None


def print_table(titles: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """
    Print rows in columns as wide as their longest cell; numbers are aligned to the right, None is
    ``-``.
    """
    table = [list(row) for row in rows]
    numeric = [
        any(isinstance(row[column], int) for row in table)
        and all(isinstance(row[column], int | None) for row in table)
        for column in range(len(titles))
    ]
    texts = [list(titles), *([_text(cell) for cell in row] for row in table)]
    widths = [max(len(row[column]) for row in texts) for column in range(len(titles))]
    for row in texts:
        cells = [
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, numeric, strict=True)
        ]
        print(_GAP.join(cells).rstrip())


def _text(cell: Cell) -> str:
    if cell is None:
        return "-"
    return f"{cell:,}" if isinstance(cell, int) else printable(cell)


def printable(text: str) -> str:
    """
    *text* with control characters escaped, so a name cannot move the cursor of a terminal.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def print_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """
    Print one JSON document.
    """
    print(json.dumps(value, indent=2, ensure_ascii=False))


def note(text: str) -> None:
    """
    Print a line for people that is no part of the result.
    """
    print(f"barnabas: {text}", file=sys.stderr)
