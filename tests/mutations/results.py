"""
The results of a run: their file, their summary, and the comparison of two runs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.mutations.drawing import area_of, path_of
from tests.mutations.running import KILLED, SURVIVED, TIMEOUT, UNREACHED

STATUSES: Final = (KILLED, TIMEOUT, SURVIVED, UNREACHED)
CAUGHT: Final = frozenset({KILLED, TIMEOUT})


@dataclass(frozen=True, slots=True)
class Result:
    """
    Attributes:
        name: of the mutation.
        line: where it was when it ran.
        reaching: how many tests execute it.
        chosen: how many of them were to run.
        test: the one that failed.
    """

    name: str
    operator: str
    line: int
    status: str
    test: str
    seconds: float
    reaching: int
    chosen: int

    @property
    def area(self) -> str:
        return area_of(path_of(self.name))


def write(path: Path, results: Iterable[Result]) -> None:
    path.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")


def read(path: Path) -> list[Result]:
    return [Result(**result) for result in json.loads(path.read_text())]


def summary(results: Iterable[Result]) -> Iterator[str]:
    """
    Yield a table by area and one by operator, then the mutations that no test has caught.
    """
    found = list(results)
    yield from _table("area", found, [result.area for result in found])
    yield from _table("operator", found, [result.operator for result in found])
    for each in found:
        if each.status not in CAUGHT:
            yield f"{each.status} after {each.chosen} of {each.reaching} tests, line {each.line}"
            yield f"    {each.name}"


def _table(title: str, results: Sequence[Result], kinds: Sequence[str]) -> Iterator[str]:
    yield f"{title:14s}" + "".join(f"{status:>11s}" for status in STATUSES)
    counts = Counter(zip(kinds, (result.status for result in results), strict=True))
    for kind in sorted(set(kinds)):
        yield f"{kind:14s}" + "".join(f"{counts[kind, status]:11d}" for status in STATUSES)
    yield ""


def comparison(before: Iterable[Result], after: Iterable[Result]) -> Iterator[str]:
    """
    Yield the mutations that only one of two runs has caught.
    """
    old = {result.name: result for result in before}
    new = {result.name: result for result in after}
    both = [name for name in old if name in new]
    lost = [n for n in both if old[n].status in CAUGHT and new[n].status not in CAUGHT]
    gained = [n for n in both if old[n].status not in CAUGHT and new[n].status in CAUGHT]
    yield f"{len(both)} mutations are in both runs"
    for title, names in (("no longer caught", lost), ("caught now", gained)):
        yield f"{title}: {len(names)}"
        for name in names:
            test = old[name].test or new[name].test
            yield f"    {name}"
            yield f"        by {test}"
