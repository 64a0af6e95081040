"""
Whether tests catch faults: runs them against mutations of the product.

::

    python -m tests.mutations --record tests/storage tests/protocol tests/coordination tests/server
    python -m tests.mutations --seed 1 --count 300 --out results.json
    python -m tests.mutations --survivors-of results.json --tests all
    python -m tests.mutations --compare before.json after.json

``--record`` runs the given tests once and keeps which lines each of them executes. A run draws
mutations by a seed and runs the recorded tests that execute the mutated line, up to the first that
fails. The checkout does not change.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.mutations import results
from tests.mutations.drawing import AREAS, ROOT, area_of, draw, named, path_of
from tests.mutations.mutation import Mutation
from tests.mutations.reach import FOLDER_VARIABLE, PREFIX_VARIABLE, Reach
from tests.mutations.results import CAUGHT, Result
from tests.mutations.running import MEMORY_LIMIT, UNREACHED, USUAL_MEMORY_LIMIT, Outcome, Runner

FAST_BUDGET: Final = 12.0
"""Recorded seconds of tests for one mutation with ``--tests fast``."""

CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "barnabas-mutations"


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if options.compare:
        _print(results.comparison(*map(results.read, options.compare)))
    elif options.record:
        sys.exit(record(options.record, options.map))
    else:
        mutations = _mutations(options)
        if options.list:
            _print(mutation.name for mutation in mutations)
        else:
            budget = FAST_BUDGET if options.tests == "fast" else None
            found = run(mutations, Reach(options.map), budget, options.out)
            _print(results.summary(found))


def record(tests: Sequence[str], folder: Path) -> int:
    """
    Record a run of *tests*, a folder at a time, and return pytest's exit code.
    """
    folder.mkdir(parents=True, exist_ok=True)
    codes = []
    for place in tests:
        environment = {FOLDER_VARIABLE: str(folder), PREFIX_VARIABLE: place.replace("/", "-")}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        options = ["-p", "tests.mutations.recording", "-m", "not interop and not prove", place]
        codes.append(
            subprocess.run(
                [*command, *options], cwd=ROOT, env=os.environ | environment, check=False
            ).returncode
        )
    return max(codes)


def run(
    mutations: Iterable[Mutation], reach: Reach, budget: float | None, out: Path | None
) -> list[Result]:
    """
    Run the tests of each mutation, and write what is known to *out* after each.
    """
    found: list[Result] = []
    with TemporaryDirectory(prefix="mutations-", ignore_cleanup_errors=True) as folder:
        runner = Runner(Path(folder))
        for mutation in mutations:
            result = _run(runner, mutation, reach, budget)
            found.append(result)
            print(f"{result.status:10s}{result.seconds:7.1f} s  {result.name}", flush=True)
            if out is not None:
                results.write(out, found)
    return found


def _run(runner: Runner, mutation: Mutation, reach: Reach, budget: float | None) -> Result:
    choice = reach.choose(mutation, budget)
    outcome = Outcome(UNREACHED, "", 0.0)
    seconds = 0.0
    for batch in choice.batches:
        outcome = runner.run(
            mutation,
            batch.tests,
            expected_seconds=batch.seconds,
            memory_limit=MEMORY_LIMIT.get(area_of(mutation.path), USUAL_MEMORY_LIMIT),
        )
        seconds += outcome.seconds
        if outcome.status in CAUGHT:
            break
    return Result(
        name=mutation.name,
        operator=mutation.operator,
        line=mutation.lines.start,
        status=outcome.status,
        test=outcome.test,
        seconds=round(seconds, 2),
        reaching=choice.reaching,
        chosen=sum(len(batch.tests) for batch in choice.batches),
    )


def _mutations(options: argparse.Namespace) -> list[Mutation]:
    areas = options.area or AREAS
    if options.survivors_of is None:
        return [m for area in areas for m in draw(area, options.seed, options.count)]
    survivors = [r.name for r in results.read(options.survivors_of) if r.status not in CAUGHT]
    found = named(name for name in survivors if area_of(path_of(name)) in areas)
    return list(found.values())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    parser.add_argument("--seed", type=int, default=1, help="which mutations are drawn")
    parser.add_argument("--count", type=int, default=300, help="how many, from all areas together")
    parser.add_argument(
        "--area", action="append", choices=AREAS, help="only the mutations of this area"
    )
    parser.add_argument(
        "--tests",
        choices=("fast", "all"),
        default="fast",
        help=f"of the tests that execute a mutation: {FAST_BUDGET:.0f} seconds, or all",
    )
    parser.add_argument("--out", type=Path, help="a file for the results")
    parser.add_argument("--list", action="store_true", help="print the mutations, and run nothing")
    parser.add_argument(
        "--survivors-of", type=Path, metavar="RESULTS", help="no draw: those that nothing caught"
    )
    parser.add_argument(
        "--compare", type=Path, nargs=2, metavar="RESULTS", help="what only one of two runs catches"
    )
    parser.add_argument(
        "--record", nargs="+", metavar="TESTS", help="record which lines these tests execute"
    )
    parser.add_argument(
        "--map", type=Path, default=CACHE, help=f"the folder of recorded runs ({CACHE})"
    )
    return parser


def _print(lines: Iterable[str] | Iterator[str]) -> None:
    for line in lines:
        print(line)


if __name__ == "__main__":
    main()
