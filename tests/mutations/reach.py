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

_FIRST_FILES: Final = 6
_FIRST_SECONDS: Final = 6.0


class Batch(NamedTuple):
    """
    Tests that run in one process, and their recorded time.
    """

    tests: Sequence[str]
    seconds: float


class Choice(NamedTuple):
    """
    Attributes:
        batches: the tests to run, those that are likely to fail soon in the first.
        reaching: how many tests execute the mutated lines.
    """

    batches: Sequence[Batch]
    reaching: int


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

        The fastest are the first, and the tests of the module count as faster than they are.
        """
        reaching = self._reaching(mutation)
        weights = _weights(mutation.path)

        def cost(test: str) -> float:
            weight = min(weight for start, weight in weights.items() if test.startswith(start))
            return weight * self.seconds[test]

        chosen: list[str] = []
        total = 0.0
        for test in sorted(reaching, key=cost):
            if budget is None or not chosen or total + self.seconds[test] <= budget:
                chosen.append(test)
                total += self.seconds[test]
        first = self._first_batch(chosen)
        parts = (chosen[:first], chosen[first:])
        batches = [Batch(part, sum(map(self.seconds.__getitem__, part))) for part in parts if part]
        return Choice(batches, len(reaching))

    def _first_batch(self, tests: Sequence[str]) -> int:
        """
        Return how many of *tests* are few enough, in few files, to be collected and run soon.
        """
        files: set[str] = set()
        total = 0.0
        for i, test in enumerate(tests):
            files.add(test.partition("::")[0])
            total += self.seconds[test]
            if len(files) > _FIRST_FILES or total > _FIRST_SECONDS:
                return max(i, 1)
        return len(tests)

    def _reaching(self, mutation: Mutation) -> list[str]:
        by_line = self._lines(mutation.path)
        if mutation.at_import:
            # Whoever uses the module sees the values that its import has made, and its own tests
            # may execute nothing else of it.
            own, folder, _ = _weights(mutation.path)
            found = set().union(*by_line.values()) | self._tests_below(own)
            if found <= {_IMPORTS}:
                found = self._tests_below(folder)
        else:
            found = set().union(*(by_line.get(line, ()) for line in mutation.lines))
            if found <= {_IMPORTS}:
                found = set().union(*(by_line.get(line, ()) for line in mutation.statement))
        return [test for test in found if test in self.seconds]

    def _tests_below(self, start: str) -> set[str]:
        return {test for test in self.seconds if test.startswith(start)}

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


def _weights(path: str) -> Mapping[str, float]:
    """
    The beginnings of the names of tests: the module's own, those of its folder, and all.
    """
    package, _, _, *folders, module = Path(path).parts
    folder = "/".join(("tests", package, *folders))
    return {f"{folder}/test_{module}": 0.1, f"{folder}/": 0.3, "": 1.0}
