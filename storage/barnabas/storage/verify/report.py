"""
What was found, one violation at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from barnabas.protocol.structs import struct
from barnabas.storage.verify.rules import Rule, Severity

MOST_ALIKE: Final = 5
"""So many violations of one rule in one file are told; of the others, only how many there are."""


@struct(kw_only=True)
class Violation:
    """
    Something that does not hold.
    """

    severity: Severity
    rule: str
    path: Path
    """The file or directory."""
    found: str
    expected: str
    position: int | None = None
    """The byte of the file at which the batch begins."""
    offset: int | None = None
    """The first offset of the batch, or the one that is said in the file."""
    entry: int | None = None
    """The number of the entry in an index or a text file, from 0 on."""


Sink = Callable[[Violation], None]


class Report:
    """
    Takes violations, tells them at once, and counts.

    Invariants:

    1. ``errors`` and ``warnings`` count all violations, told or not.
    2. No more than ``MOST_ALIKE`` of the same rule in the same file are told.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._alike: Counter[tuple[str, Path]] = Counter()
        self.errors = 0
        self.warnings = 0
        self.logs = 0
        self.segments = 0
        self.batches = 0
        self.records = 0
        self.bytes = 0
        """Of batches that were looked at."""

    @property
    def untold(self) -> dict[tuple[str, Path], int]:
        """
        How many violations were counted only, by rule and file.
        """
        return {key: n - MOST_ALIKE for key, n in self._alike.items() if n > MOST_ALIKE}

    def count(self, other: Report) -> None:
        """
        Count what *other* has looked at, and not what it has found.
        """
        self.logs += other.logs
        self.segments += other.segments
        self.batches += other.batches
        self.records += other.records
        self.bytes += other.bytes

    def add(self, violation: Violation) -> None:
        if violation.severity is Severity.ERROR:
            self.errors += 1
        else:
            self.warnings += 1
        key = violation.rule, violation.path
        self._alike[key] += 1
        if self._alike[key] <= MOST_ALIKE:
            self._sink(violation)


class FileReport:
    """
    The violations in one file.

    Args:
        mended: whether the next start makes the file good again; then there are no errors in it.
    """

    __slots__ = ("_add", "mended", "path")

    def __init__(self, add: Sink, path: Path, *, mended: bool = False) -> None:
        self._add = add
        self.path = path
        self.mended = mended

    def beside(self, path: Path) -> FileReport:
        """
        A report for another file that is mended together with this one.
        """
        return FileReport(self._add, path, mended=self.mended)

    def add(
        self,
        rule: Rule,
        found: str,
        expected: str,
        *,
        position: int | None = None,
        offset: int | None = None,
        entry: int | None = None,
        mended: bool = False,
    ) -> None:
        warning = mended or self.mended or rule.severity is Severity.WARNING
        self._add(
            Violation(
                severity=Severity.WARNING if warning else Severity.ERROR,
                rule=rule.name,
                path=self.path,
                found=found,
                expected=expected,
                position=position,
                offset=offset,
                entry=entry,
            )
        )
