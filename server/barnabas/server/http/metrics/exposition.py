"""
From samples to the text formats of Prometheus and of OpenMetrics.

``prometheus_client`` writes all families at once: with 10,000 partitions that holds the event loop
for a third of a second. Here a family is written as its samples are found, in turns of the loop,
and in a fifth of the time. What is written reads the same
(``tests/server/http/metrics/test_exposition.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf, isnan
from typing import Final

from barnabas.server.http.metrics.families import Family

LINES_AT_ONCE: Final = 512
"""
So many lines are put together: a line alone takes three times its size.
"""


class Block:
    """
    The text of one family, as far as it is written.
    """

    __slots__ = ("_chunks", "_lines", "_sample", "size")

    def __init__(self, family: Family, *, is_open_metrics: bool) -> None:
        self._sample = family.sample
        # The two formats differ in whether a family of counters is named as its samples are.
        name = family.name if is_open_metrics else self._sample
        head = f"# HELP {name} {escaped_help(family.help)}\n# TYPE {name} {family.kind}\n"
        self._lines = [head]
        self._chunks: list[bytes] = []
        self.size = 0
        """Bytes of ``chunks``."""

    def add(self, labels: str, value: float, suffix: str = "") -> None:
        """
        Write a sample.

        Args:
            labels: their text, see ``labels_text``.
            suffix: behind the name, as of the buckets of a histogram.
        """
        # An offset is written as it is: as a floating-point number it may be another one.
        text = str(value) if type(value) is int else number_text(value)
        lines = self._lines
        lines.append(f"{self._sample}{suffix}{labels} {text}\n")
        if len(lines) >= LINES_AT_ONCE:
            self._put_together()

    def chunks(self) -> list[bytes]:
        """
        All that was written.
        """
        self._put_together()
        return self._chunks

    def _put_together(self) -> None:
        if self._lines:
            # A name of a group may have half a character, which UTF-8 cannot say.
            self._chunks.append("".join(self._lines).encode("utf-8", "replace"))
            self.size += len(self._chunks[-1])
            self._lines = []


class Blocks:
    """
    The texts of all families.
    """

    def __init__(self, families: Iterable[Family], *, is_open_metrics: bool) -> None:
        self._is_open_metrics = is_open_metrics
        self._blocks = {
            family.name: Block(family, is_open_metrics=is_open_metrics) for family in families
        }

    def of(self, name: str) -> Block:
        """
        The block of the family with that name.
        """
        return self._blocks[name]

    def get(self, name: str) -> Block | None:
        return self._blocks.get(name)

    def add(self, family: Family) -> Block:
        """
        The block of a family that is not in the table.
        """
        block = self._blocks.get(family.name)
        if block is None:
            block = Block(family, is_open_metrics=self._is_open_metrics)
            self._blocks[family.name] = block
        return block

    def chunks(self) -> list[bytes]:
        """
        The whole text.
        """
        found = [chunk for block in self._blocks.values() for chunk in block.chunks()]
        return [*found, b"# EOF\n"] if self._is_open_metrics else found


def labels_text(labels: Mapping[str, str]) -> str:
    """
    The labels of a sample, between braces; nothing if there are none.
    """
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"


def escaped(value: str) -> str:
    """
    The value of a label between its quotes.
    """
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def escaped_help(text: str) -> str:
    """
    A help text without what ends its line, or begins an escape.
    """
    return text.replace("\\", r"\\").replace("\n", r"\n")


def number_text(value: float) -> str:
    """
    A number, which may be infinite, or none.
    """
    if isnan(value):
        return "NaN"
    if value in (inf, -inf):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))
