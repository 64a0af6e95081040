"""
Where Barnabas spends its time under a measure's load.

    python -m benchmarks.profile requests-single                  counts calls (cProfile)
    python -m benchmarks.profile produce-16k --with py-spy        samples of Python functions
    python -m benchmarks.profile produce-1k --with perf           samples of C and the kernel

``cProfile`` is always there, looks at the event loop's thread alone, and makes small functions look
dearer than they are: what it shows is how often something is called. ``py-spy`` (``pip install
py-spy``) and ``perf`` look from outside and cost the broker little; they need the right to trace
another process. The measure warms up first, unless calls are counted.
"""

from __future__ import annotations

import argparse
import os
import pstats
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.bench import Bench
from benchmarks.contender import Contender, barnabas
from benchmarks.exchange import Exchanger
from benchmarks.loader import Loader
from benchmarks.measure import Measure
from benchmarks.suite import all_measures, chosen
from tests.support.broker_process import Barnabas

SHOWN: Final = 40
"""
How many functions are printed.
"""
CALLS: Final = "calls"


class CountedBarnabas(Barnabas):
    """
    Barnabas with every call of its main thread counted, which is written down when it stops.
    """

    def command(self) -> list[str]:
        python, *rest = super().command()
        return [python, "-m", "cProfile", "-o", str(self.directory / CALLS), *rest]


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Profile what the command line asks for, print what was found, and return the exit status.
    """
    options = _parser().parse_args(arguments)
    if options.tool != "cprofile" and _program(options.tool) is None:
        sys.exit(f"there is no {options.tool} on the path")
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as name:
        directory = Path(name)
        loader, exchanger = Loader(directory), Exchanger(directory)
        bench = Bench(directory, loader, exchanger, options.scale, recovery_bytes=1 << 30)
        [measure, *_] = chosen(all_measures(bench), options.measure, "")
        samples = options.output or directory / "samples"
        if options.tool == "cprofile":
            _count_calls(measure, directory)
        else:
            _sample(measure, directory, options.tool, samples)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.profile",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("measure", help="a name that benchmarks.compare --list prints")
    parser.add_argument(
        "--with", dest="tool", choices=("cprofile", "py-spy", "perf"), default="cprofile"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="a factor on all numbers")
    parser.add_argument("--output", type=Path, metavar="FILE", help="keep the samples there")
    return parser


def _count_calls(measure: Measure, directory: Path) -> None:
    contender = Contender(CountedBarnabas, directory / "barnabas")
    try:
        with measure.opened(contender) as run:
            run()
        contender.broker.stop()
        stats = pstats.Stats(str(contender.broker.directory / CALLS))
        stats.sort_stats("tottime").print_stats(SHOWN)
    finally:
        contender.close()


def _sample(measure: Measure, directory: Path, tool: str, samples: Path) -> None:
    contender = barnabas(directory)
    try:
        with measure.opened(contender) as run:
            for _ in range(max(1, measure.warm_ups)):
                run()
            with _sampling(tool, contender.broker.pid, samples):
                run()
    finally:
        contender.close()
    if tool == "perf":
        shown = ["--stdio", "--no-children", "--call-graph=none", "--percent-limit=0.5"]
        subprocess.run(["perf", "report", "-i", str(samples), *shown], check=True)
    else:
        print(own_time(samples.read_text()))


@contextmanager
def _sampling(tool: str, pid: int, samples: Path) -> Iterator[None]:
    """
    The tool looks at the process during the body.
    """
    commands = {
        "py-spy": ["record", "--nonblocking", "-f", "raw", "-o", str(samples)],
        "perf": ["record", "--quiet", "-g", "-o", str(samples)],
    }
    program = _program(tool)
    assert program is not None, "the command line was checked"
    with subprocess.Popen([program, *commands[tool], "--pid", str(pid)]) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)


def _program(tool: str) -> str | None:
    """
    Where the tool is: beside this interpreter, or on the path.
    """
    beside = str(Path(sys.executable).parent)
    return shutil.which(tool, path=os.pathsep.join([beside, os.environ.get("PATH", "")]))


def own_time(collapsed: str) -> str:
    """
    Where the samples were taken, the most frequent place first.

    Args:
        collapsed: lines of functions, outermost first, with a number of samples behind them.
    """
    places: Counter[str] = Counter()
    for line in collapsed.splitlines():
        stack, _, number = line.rpartition(" ")
        places[stack.rpartition(";")[2]] += int(number)
    total = max(1, places.total())
    return "\n".join(
        f"{number / total:7.1%}  {place}" for place, number in places.most_common(SHOWN)
    )


if __name__ == "__main__":
    sys.exit(main())
