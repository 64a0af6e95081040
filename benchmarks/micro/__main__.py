"""
Times the functions through which every request goes, compiled and as plain Python.

    python -m benchmarks.micro                      both, each in a process of its own
    python -m benchmarks.micro --mode plain --only 'append*'

Each function is called for as long as ``--seconds`` says, in five rounds of which the fastest
counts: noise only ever makes things slower.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, TypedDict

from benchmarks.micro.plain_modules import are_compiled, import_sources

ROUNDS: Final = 5


class Timing(TypedDict):
    """
    Seconds that a function takes for one of what it is about.
    """

    name: str
    unit: str
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Time what the command line asks for, print the table, and return the exit status.
    """
    options = _parser().parse_args(arguments)
    if options.mode == "both":
        modes = ("compiled", "plain") if are_compiled() else ("plain",)
        timings = {mode: _in_another_process(mode, options) for mode in modes}
    else:
        timings = {options.mode: _timings(options)}
    print(json.dumps(timings[options.mode]) if options.json else _table(timings))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.micro",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--mode", choices=("both", "compiled", "plain"), default="both")
    parser.add_argument("--only", default="*", help="a pattern for names of functions")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each function")
    parser.add_argument("--json", action="store_true", help="print seconds, of one mode")
    return parser


def _in_another_process(mode: str, options: argparse.Namespace) -> list[Timing]:
    command = [sys.executable, "-m", "benchmarks.micro", "--json", "--mode", mode]
    command += ["--only", options.only, "--seconds", str(options.seconds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    timings: list[Timing] = json.loads(done.stdout)
    return timings


def _timings(options: argparse.Namespace) -> list[Timing]:
    if options.mode == "plain":
        import_sources()
    from benchmarks.micro.functions import functions  # noqa: PLC0415  # sources or libraries

    with (
        tempfile.TemporaryDirectory(prefix="barnabas-micro-") as directory,
        functions(Path(directory)) as found,
    ):
        return [
            Timing(
                name=function.name,
                unit=function.unit,
                seconds=_fastest(function.work, options.seconds) / function.per,
            )
            for function in found
            if fnmatchcase(function.name, options.only)
        ]


def _fastest(work: Callable[[], object], seconds: float) -> float:
    """
    Seconds of one call.
    """
    timer, calls = timeit.Timer(work), 1
    while (took := timer.timeit(calls)) < seconds / (2 * ROUNDS):
        calls *= 2
    calls = max(1, int(calls * seconds / ROUNDS / took))
    return min(timer.repeat(ROUNDS, calls)) / calls


def _table(timings: dict[str, list[Timing]]) -> str:
    modes = list(timings)
    heads = "".join(f"{mode:>14}" for mode in modes)
    lines = [f"{'':40}{heads}{'times':>8}" if len(modes) > 1 else f"{'':40}{heads}"]
    for row in zip(*timings.values(), strict=True):
        cells = "".join(f"{_time(timing['seconds']):>14}" for timing in row)
        times = f"{row[-1]['seconds'] / row[0]['seconds']:>8.1f}" if len(modes) > 1 else ""
        lines.append(f"{row[0]['name']:40}{cells}{times}  a {row[0]['unit']}")
    return "\n".join(lines)


def _time(seconds: float) -> str:
    return f"{seconds * 1e9:,.0f} ns" if seconds < 1e-5 else f"{seconds * 1e6:,.1f} us"


if __name__ == "__main__":
    sys.exit(main())
