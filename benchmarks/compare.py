"""
Measures Barnabas and Apache Kafka side by side, on this machine, in one run.

    python -m benchmarks.compare                              everything
    python -m benchmarks.compare --list                       the names of the measures
    python -m benchmarks.compare --only 'start-*,consume-1k' --scale 0.2 --passes 3
    python -m benchmarks.compare --broker barnabas --json results.json
    python -m benchmarks.compare --beside 'Another=/opt/another --port {port} --dir {data}'
    python -m benchmarks.compare --json results.json --page docs/performance.md --plots docs/images
    python -m benchmarks.compare --from results.json          the table of a run that has been

The brokers take turns, so that what else the machine does hits all of them, and another one is
first each time; the two run with the same options, a further one as its command says. The first
runs of a measure warm a broker up and do not count (a virtual machine compiles its hot code
meanwhile). Of the others the median counts, and the ratio of the best ones stands beside it, for
noise only ever makes things slower.
"""

from __future__ import annotations

import argparse
import math
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks import contender, report, results
from benchmarks.bench import Bench
from benchmarks.contender import Contender
from benchmarks.exchange import Exchanger
from benchmarks.further import Further
from benchmarks.loader import Loader
from benchmarks.machine import machine
from benchmarks.results import Measured, Results
from benchmarks.runner import Budget, run
from benchmarks.suite import all_measures, chosen
from tests.support.apache_kafka import PrerequisiteMissing, class_path


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run what the command line asks for, print the table, and return the exit status.
    """
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if options.runs:
        found = results.merged([results.read(path) for path in options.runs])
    else:
        with tempfile.TemporaryDirectory(prefix="barnabas-bench-", dir=options.directory) as name:
            found = _measured(options, Path(name))
    if not found.measured:
        return 0
    print(report.machine_line(found))
    print(report.table(found))
    if options.page is not None:
        report.rewrite_page(options.page, found)
    if options.plots is not None:
        from benchmarks.plots import draw  # noqa: PLC0415  # matplotlib takes a second to load

        draw(found, options.plots)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="say what there is to measure")
    parser.add_argument("--broker", choices=("both", "barnabas", "apache"), default="both")
    parser.add_argument(
        "--beside",
        type=_further,
        action="append",
        default=[],
        metavar="NAME=COMMAND",
        help="a further broker, which listens on {port}, and on {spare_port} for what else it may"
        " need, and writes to {data}",
    )
    parser.add_argument("--only", default="", help="names or patterns, separated by commas")
    parser.add_argument("--skip", default="", help="the same, of what not to measure")
    parser.add_argument("--scale", type=float, default=1.0, help="a factor on all numbers")
    parser.add_argument("--passes", type=int, default=5, help="of each measure, after warming up")
    parser.add_argument(
        "--budget",
        type=float,
        default=math.inf,
        metavar="MINUTES",
        help="rather make fewer passes than take longer",
    )
    parser.add_argument("--recovery-gib", type=float, default=1.0, help="to recover after a kill")
    parser.add_argument("--directory", type=Path, help="where the brokers write")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep every sample there")
    parser.add_argument(
        "--from",
        dest="runs",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="measure nothing: show that run, with lines of later ones in place of its own",
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the table into that page")
    parser.add_argument("--plots", type=Path, metavar="DIRECTORY", help="draw what was measured")
    return parser


def _further(text: str) -> Further:
    try:
        return Further.parsed(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _measured(options: argparse.Namespace, directory: Path) -> Results:
    bench = Bench(
        directory,
        Loader(directory),
        Exchanger(directory),
        options.scale,
        int(options.recovery_gib * options.scale * 2**30),
    )
    try:
        measures = chosen(all_measures(bench), options.only, options.skip)
    except ValueError as unknown:
        sys.exit(str(unknown))
    said = {"passes": str(options.passes), "scale": f"{options.scale:g}"}
    measured: list[Measured] = []
    found = Results(machine(directory), said, measured)
    if options.list:
        print("\n".join(f"{m.name:24}{m.figures[0].title} ({m.client})" for m in measures))
        return found
    with _contenders(directory, options.broker, options.beside) as contenders:
        budget = Budget(60 * options.budget, len(measures))
        for measure in measures:
            measured.append(run(measure, contenders, options.passes, budget.next_share()))
            if options.json is not None:
                found.write(options.json)
    return found


@contextmanager
def _contenders(
    directory: Path, which: str, beside: Sequence[Further]
) -> Iterator[list[Contender]]:
    """
    The brokers to measure, which have ended afterwards, whatever happened.
    """
    with ExitStack() as running:
        found: list[Contender] = []
        if which in ("both", "apache"):
            try:
                class_path()
            except PrerequisiteMissing as missing:
                sys.exit(f"Apache Kafka cannot be measured: {missing}")
            found.append(contender.apache_kafka(directory))
        if which in ("both", "barnabas"):
            found.append(contender.barnabas(directory))
        for number, kind in enumerate(beside, 1):
            found.append(contender.further(kind, directory / f"further-{number}"))
        for one in found:
            running.callback(one.close)
        yield found


if __name__ == "__main__":
    sys.exit(main())
