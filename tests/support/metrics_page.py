"""
The table of docs/metrics.md, and what a broker shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from barnabas.server.http.metrics.families import FAMILIES, HISTOGRAM, Family

PAGE: Final = Path(__file__).parents[2] / "docs" / "metrics.md"
_HEAD: Final = "| metric | kind | labels | Apache Kafka | |\n|---|---|---|---|---|"


def table() -> str:
    return "\n".join([_HEAD, *map(_row, FAMILIES)])


def sample_names() -> set[str]:
    return {
        f"{family.sample}{suffix}"
        for family in FAMILIES
        for suffix in (("_bucket", "_count", "_sum") if family.kind == HISTOGRAM else ("",))
    }


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    mbean = f"`{family.mbean}`" if family.mbean else ""
    return f"| `{family.sample}` | {family.kind} | {labels} | {mbean} | {family.help} |"
