"""
Violations, one at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.structs import struct
from barnabas.storage.verify.invariants import Invariant, Severity

MOST_ALIKE: Final = 5
"""So many violations of one invariant in one file are printed; the others are counted."""


@struct(kw_only=True)
class Violation:
    """
    A violation of an invariant.
    """

    severity: Severity
    rule: str
    path: Path
    """The file or directory."""
    found: str
    expected: str
    position: int | None = None
    """The position of the batch in the file."""
    offset: int | None = None
    """The first offset of the batch, or the offset in the file."""
    entry: int | None = None
    """The number of the entry in an index or a text file, from 0 on."""


Sink = Callable[[Violation], None]


class VerifyReport:
    """
    Takes violations, hands them on at once, and counts.

    Invariants:

    1. ``errors`` and ``warnings`` count all violations.
    2. No more than ``MOST_ALIKE`` of the same invariant in the same file are handed on.
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
        """The bytes of the batches that were read."""

    @property
    def untold(self) -> dict[tuple[str, Path], int]:
        """
        The number of violations that were only counted, by invariant and file.
        """
        return {key: n - MOST_ALIKE for key, n in self._alike.items() if n > MOST_ALIKE}

    def count(self, other: VerifyReport) -> None:
        """
        Add the numbers of logs, segments, batches, records and bytes of *other*.
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


Add = Callable[[Invariant, str, str], None]
"""Reports a violation in one batch: the invariant, what was found, and what was expected."""


class FileReport:
    """
    The violations in one file.

    Args:
        mended: whether the next start repairs the file; then its violations are warnings.
    """

    __slots__ = ("_add", "mended", "path")

    def __init__(self, add: Sink, path: Path, *, mended: bool = False) -> None:
        self._add = add
        self.path = path
        self.mended = mended

    def beside(self, path: Path) -> FileReport:
        """
        A report for another file that the next start repairs together with this one.
        """
        return FileReport(self._add, path, mended=self.mended)

    def at(self, position: int, batch: RecordBatch) -> Add:
        """
        Reports violations in *batch*, which begins at *position*.
        """
        return partial(self.add, position=position, offset=batch.base_offset)

    def add(
        self,
        invariant: Invariant,
        found: str,
        expected: str,
        *,
        position: int | None = None,
        offset: int | None = None,
        entry: int | None = None,
        mended: bool = False,
    ) -> None:
        warning = mended or self.mended or invariant.severity is Severity.WARNING
        self._add(
            Violation(
                severity=Severity.WARNING if warning else Severity.ERROR,
                rule=invariant.name,
                path=self.path,
                found=found,
                expected=expected,
                position=position,
                offset=offset,
                entry=entry,
            )
        )
