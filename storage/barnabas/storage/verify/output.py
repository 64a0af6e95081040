"""
Violations as text and as JSON, each printed on a line as soon as it is found.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from barnabas.storage.verify.context import DirectoryState
from barnabas.storage.verify.report import VerifyReport, Violation


class TextOutput:
    """
    Lines for people and for ``grep``.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def violation(self, violation: Violation) -> None:
        place = "".join(f" {name} {number}" for name, number in _places(violation).items())
        self._print(
            f"{violation.severity} {violation.rule} {violation.path}{place}:"
            f" found {violation.found}; expected {violation.expected}"
        )

    def change(self, sentence: str) -> None:
        """
        Print a change of a repair.
        """
        self._print(f"repair: {sentence}")

    def summary(self, report: VerifyReport, states: Mapping[Path, DirectoryState]) -> None:
        for (rule, path), number in report.untold.items():
            self._print(f"{rule} {path}: {number} more")
        for path, state in states.items():
            self._print(f"{path} {_STATES[state]}")
        found = f"{_plural(report.errors, 'error')}, {_plural(report.warnings, 'warning')}"
        self._print(
            f"{found} in {_plural(report.logs, 'log')}: {_plural(report.segments, 'segment')},"
            f" {_plural(report.batches, 'batch', 'es')}, {_plural(report.records, 'record')},"
            f" {_plural(report.bytes, 'byte')}"
        )

    def _print(self, line: str) -> None:
        print(line, file=self._out)


_STATES: Mapping[DirectoryState, str] = {
    DirectoryState.CLEAN: "was stopped cleanly",
    DirectoryState.CRASHED: "was not stopped cleanly: the next start recovers its logs",
    DirectoryState.IN_USE: "is in use by a broker: the ends of active segments were not checked",
    DirectoryState.UNKNOWN: "has no recovery points: it is unknown whether its stop was clean",
}


class JsonOutput:
    """
    One object a line; the last one has the numbers.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def violation(self, violation: Violation) -> None:
        self._print(
            {
                "severity": violation.severity.value,
                "rule": violation.rule,
                "file": str(violation.path),
                **_places(violation),
                "found": violation.found,
                "expected": violation.expected,
            }
        )

    def change(self, sentence: str) -> None:
        self._print({"repair": sentence})

    def summary(self, report: VerifyReport, states: Mapping[Path, DirectoryState]) -> None:
        self._print(
            {
                "errors": report.errors,
                "warnings": report.warnings,
                "logs": report.logs,
                "segments": report.segments,
                "batches": report.batches,
                "records": report.records,
                "bytes": report.bytes,
                "directories": {str(path): state.value for path, state in states.items()},
                "untold": [
                    {"rule": rule, "file": str(path), "violations": number}
                    for (rule, path), number in report.untold.items()
                ],
            }
        )

    def _print(self, content: Mapping[str, object]) -> None:
        print(json.dumps(content, ensure_ascii=False), file=self._out)


def _places(violation: Violation) -> dict[str, int]:
    places = {
        "position": violation.position,
        "offset": violation.offset,
        "entry": violation.entry,
    }
    return {name: number for name, number in places.items() if number is not None}


def _plural(number: int, noun: str, ending: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else ending}"
