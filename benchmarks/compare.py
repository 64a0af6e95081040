"""
Measures Barnabas and Apache Kafka side by side, on this machine, in one run.

    python -m benchmarks.compare                 everything
    python -m benchmarks.compare --only start,consume-1k --scale 0.2
    python -m benchmarks.compare --broker barnabas --json results.json

Both brokers run at once and take turns, so that what else the machine does hits both. The first
pass of each measure warms a broker up and is not counted (a virtual machine compiles its hot
code meanwhile); of the others the best one counts, for noise only ever makes things slower.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import measures
from benchmarks.loader import best_loader
from benchmarks.measures import Load, Run, Sample
from tests.support.apache_kafka import ApacheKafka, PrerequisiteMissing, class_path
from tests.support.broker_process import Barnabas, BrokerProcess

SOON_DELETED = {"log.segment.delete.delay.ms": "1000"}


@dataclass(frozen=True, slots=True)
class Figure:
    """
    One line of the table, taken from a sample.

    Attributes:
        goal: the ratio of Barnabas to Apache Kafka to reach, or to stay below if less is better.
    """

    title: str
    unit: str
    of: Callable[[Sample], float]
    goal: float | None = None
    less_is_better: bool = False


@dataclass(frozen=True, slots=True)
class Measure:
    """
    Something to run, and the figures that come out of it.
    """

    name: str
    run: Run
    figures: tuple[Figure, ...]


def all_measures(load: Load) -> list[Measure]:
    """
    In the order of the table.
    """

    def throughput(title: str, goal: float | None = None) -> tuple[Figure, ...]:
        rate = Figure(title, "MB/s", lambda sample: sample.megabytes_per_second, goal)
        return rate, cpu

    cpu = Figure(
        "  broker's CPU per million records",
        "s",
        lambda sample: sample.cpu_per_million,
        less_is_better=True,
    )
    seconds = Figure(
        "start to first acknowledged record", "s", lambda sample: sample.seconds, 0.1, True
    )
    memory = Figure("idle memory", "MiB", lambda sample: sample.resident / 2**20, 0.14, True)
    requests = Figure(
        "one-record requests, pipelined", "/s", lambda sample: sample.records_per_second, 2.0
    )
    return [
        Measure("start", measures.start, (seconds,)),
        Measure("idle", measures.idle, (memory,)),
        Measure("produce-1k", load.produce_1k, throughput("produce 1 KB, 1 MB batches", 1.2)),
        Measure("idempotent", load.produce_1k_idempotent, throughput("- idempotent, acks=all")),
        Measure("lz4", load.produce_1k_lz4, throughput("- lz4")),
        Measure("produce-100", load.produce_100, throughput("produce 100 B, 1 MB batches")),
        Measure("pipelined", load.pipelined, (requests, cpu)),
        Measure("consume-1k", load.consume_1k, throughput("consume 1 KB", 0.8)),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run what the command line asks for, print the table, and return the exit status.
    """
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-", dir=options.directory) as name:
        directory = Path(name)
        loader = best_loader(directory)
        chosen = _chosen(all_measures(Load(loader, options.scale)), options.only)
        with _brokers(directory, options.broker) as brokers:
            results = {
                measure.name: _sample(measure, brokers, options.passes) for measure in chosen
            }
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}, load by {loader.name}, best of {options.passes - 1} passes after the first")
    print(_table(chosen, results))
    if options.json is not None:
        options.json.write_text(json.dumps(_as_json(chosen, results), indent=2) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--broker", choices=("both", "barnabas", "apache"), default="both")
    parser.add_argument("--only", default="", help="names of measures, separated by commas")
    parser.add_argument("--scale", type=float, default=1.0, help="a factor on all numbers")
    parser.add_argument("--passes", type=int, default=3, help="of each measure, the first one cold")
    parser.add_argument("--directory", type=Path, help="where the brokers write")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    return parser


def _chosen(every: Sequence[Measure], only: str) -> list[Measure]:
    names = {name for name in only.split(",") if name}
    unknown = names - {measure.name for measure in every}
    if unknown:
        known = ", ".join(measure.name for measure in every)
        sys.exit(f"no measure is named {', '.join(sorted(unknown))}; there are {known}")
    return [measure for measure in every if not names or measure.name in names]


@contextmanager
def _brokers(directory: Path, which: str) -> Iterator[list[BrokerProcess]]:
    """
    The brokers to measure, running, each on a directory that it has written to before.
    """
    found: list[BrokerProcess] = []
    if which in ("both", "apache"):
        try:
            class_path()
        except PrerequisiteMissing as missing:
            sys.exit(f"Apache Kafka cannot be measured: {missing}")
        found.append(ApacheKafka(directory / "apache", settings=SOON_DELETED, bounded=False))
    if which in ("both", "barnabas"):
        found.append(Barnabas(directory / "barnabas", settings=SOON_DELETED, bounded=False))
    with ExitStack() as running:
        for broker in found:
            running.callback(broker.close)
            broker.launch()
            measures.produce_when_possible(broker)
        yield found


def _sample(measure: Measure, brokers: Sequence[BrokerProcess], passes: int) -> dict[str, Sample]:
    """
    The best sample of each broker, all passes but the first taken in turns.
    """
    samples: dict[str, list[Sample]] = {broker.name: [] for broker in brokers}
    for number in range(passes):
        for broker in brokers:
            sample = measure.run(broker)
            samples[broker.name].append(sample)
            figures = ", ".join(f"{f.of(sample):,.2f} {f.unit}" for f in measure.figures)
            print(f"{measure.name} {number + 1}: {broker.name}: {figures}", file=sys.stderr)
    return {
        name: min(taken[1:] or taken, key=lambda sample: (sample.seconds, sample.resident))
        for name, taken in samples.items()
    }


Results = Mapping[str, Mapping[str, Sample]]


def _table(chosen: Sequence[Measure], results: Results) -> str:
    heads = [ApacheKafka.name, Barnabas.name]
    lines = [f"{'':40}{heads[0]:>18}{heads[1]:>18}{'ratio':>9}  goal"]
    for measure in chosen:
        for figure in measure.figures:
            values = {name: figure.of(sample) for name, sample in results[measure.name].items()}
            cells = "".join(f"{_cell(values.get(name), figure.unit):>18}" for name in heads)
            lines.append(f"{figure.title:40}{cells}{_ratio(values):>9}  {_goal(figure)}".rstrip())
    return "\n".join(lines)


def _cell(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    return f"{value:,.2f} {unit}" if value < 100 else f"{value:,.0f} {unit}"


def _ratio(values: Mapping[str, float]) -> str:
    kafka, barnabas = values.get(ApacheKafka.name), values.get(Barnabas.name)
    return f"{barnabas / kafka:.3f}" if kafka and barnabas is not None else "-"


def _goal(figure: Figure) -> str:
    if figure.goal is None:
        return ""
    return f"{'<=' if figure.less_is_better else '>='} {figure.goal:g}"


def _as_json(chosen: Sequence[Measure], results: Results) -> dict[str, object]:
    return {
        measure.name: {
            broker: {figure.title.strip(" -"): figure.of(sample) for figure in measure.figures}
            for broker, sample in results[measure.name].items()
        }
        for measure in chosen
    }


if __name__ == "__main__":
    sys.exit(main())
