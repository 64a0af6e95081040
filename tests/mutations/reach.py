"""
The map from lines to the tests that execute them, as recorded, and the choice of tests by it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from tests.mutations.drawing import ROOT
from tests.mutations.mutation import Mutation

FOLDER_VARIABLE: Final = "BARNABAS_MUTATIONS_MAP"
PREFIX_VARIABLE: Final = "BARNABAS_MUTATIONS_PREFIX"

LINES_SUFFIX: Final = ".coverage"
TIMES_SUFFIX: Final = ".times"
"""Lines of JSON: a test and its seconds."""

_IMPORTS: Final = ""
"""The context of lines that run outside of tests."""


class Choice(NamedTuple):
    """
    Attributes:
        reaching: how many tests execute the mutated lines.
        seconds: the recorded time of *tests*.
    """

    tests: Sequence[str]
    reaching: int
    seconds: float


class Reach:
    """
    The recorded runs in a folder.
    """

    def __init__(self, folder: Path) -> None:
        self._recorded = sorted(folder.glob(f"*{LINES_SUFFIX}"))
        assert self._recorded, f"no recorded run in {folder}"
        self._folder = folder

    @cached_property
    def seconds(self) -> Mapping[str, float]:
        """
        The time of each test that has passed.
        """
        found: dict[str, float] = {}
        for file in self._folder.glob(f"*{TIMES_SUFFIX}"):
            found |= map(json.loads, file.read_text().splitlines())
        return found

    def choose(self, mutation: Mutation, budget: float | None) -> Choice:
        """
        Choose tests that execute the mutated lines, up to *budget* seconds of recorded time.

        The tests of the module come first, then the fastest.
        """
        reaching = self._reaching(mutation)
        near = _near(mutation.path)
        reaching.sort(key=lambda test: (not test.startswith(near), self.seconds[test]))
        chosen: list[str] = []
        total = 0.0
        for test in reaching:
            if budget is not None and chosen and total + self.seconds[test] > budget:
                continue
            chosen.append(test)
            total += self.seconds[test]
        return Choice(chosen, len(reaching), total)

    def _reaching(self, mutation: Mutation) -> list[str]:
        by_line = self._lines(mutation.path)
        if mutation.at_import:
            # Whoever uses the module sees the values that its import has made.
            found = set().union(*by_line.values()) if by_line else set()
        else:
            found = set().union(*(by_line.get(line, ()) for line in mutation.lines))
            if found <= {_IMPORTS}:
                found = set().union(*(by_line.get(line, ()) for line in mutation.statement))
        if mutation.at_import and found <= {_IMPORTS}:
            return [test for test in self.seconds if test.startswith(_near(mutation.path))]
        return [test for test in found if test in self.seconds]

    @lru_cache(maxsize=4)  # noqa: B019  # There is one object.
    def _lines(self, path: str) -> Mapping[int, set[str]]:
        from coverage import CoverageData  # noqa: PLC0415  # Only recorded runs need it.

        found: dict[int, set[str]] = {}
        for recorded in self._recorded:
            data = CoverageData(str(recorded))
            data.read()
            for line, tests in data.contexts_by_lineno(str(ROOT / path)).items():
                found.setdefault(line, set()).update(tests)
        return found


def _near(path: str) -> tuple[str, str]:
    """
    The beginnings of the names of a module's own tests, and of those of its folder.
    """
    package, _, _, *folders, module = Path(path).parts
    folder = "/".join(("tests", package, *folders))
    return f"{folder}/test_{module}", f"{folder}/"
