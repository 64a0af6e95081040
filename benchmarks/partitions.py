"""
Measures what very many partitions cost a broker: to create, to start with, to hold in memory.

    python -m benchmarks.partitions                        10,000 of them, both brokers
    python -m benchmarks.partitions --partitions 1000 --broker barnabas

Each broker makes topics of up to 1,000 partitions in one request each, writes a few records to
every partition of a few topics, stops, and starts again; then it writes as much once more, is
killed, and starts again. A start is measured up to the first acknowledged record, for a broker that
listens may still be loading. The brokers do not run at the same time: one of them fills a small
machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.contender import BusyKafka
from benchmarks.topics import produce_when_possible
from tests.support.apache_kafka import ApacheKafka, PrerequisiteMissing, class_path
from tests.support.broker_process import Barnabas, BrokerProcess, cpu_seconds, resident_bytes

PER_TOPIC: Final = 1_000
WRITTEN_EACH: Final = 4  # so many topics, one is written to
RECORDS: Final = 3  # to each partition that is written to
SETTLED_S: Final = 3.0  # after a start, until memory is looked at
LONGEST_S: Final = 300.0
PATIENT: Final = {"log_level": 0, "socket.timeout.ms": int(LONGEST_S * 1000)}


@dataclass(frozen=True, slots=True)
class Figure:
    """
    One line of the table.

    Attributes:
        name: of the attribute of `Costs`.
        goal: the ratio of Barnabas to Apache Kafka to stay below.
    """

    name: str
    title: str
    unit: str
    goal: float | None = None


FIGURES: Final = (
    Figure("create_s", "create a topic of 1,000 partitions", "s"),
    Figure("clean_start_s", "start after a clean stop", "s", 1 / 6),
    Figure("clean_start_cpu_s", "  broker's CPU", "s"),
    Figure("memory_mib", "idle memory", "MiB", 1 / 6),
    Figure("start_after_kill_s", "start after a kill", "s", 1 / 6),
    Figure("start_after_kill_cpu_s", "  broker's CPU", "s"),
    Figure("memory_after_kill_mib", "idle memory after a kill", "MiB", 1 / 6),
)


@dataclass(frozen=True, slots=True)
class Costs:
    """
    What the partitions cost one broker.

    Attributes:
        create_s: the median of what one request to create a topic takes, in seconds.
        clean_start_s: from starting the process after a clean stop to its first record, in seconds.
        clean_start_cpu_s: the processor time of that start, in seconds.
        memory_mib: what the process holds some seconds later, in MiB.
        start_after_kill_s: as after a clean stop.
        start_after_kill_cpu_s: the same.
        memory_after_kill_mib: the same.
    """

    create_s: float
    clean_start_s: float
    clean_start_cpu_s: float
    memory_mib: float
    start_after_kill_s: float
    start_after_kill_cpu_s: float
    memory_after_kill_mib: float


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run what the command line asks for, print the table, and return the exit status.
    """
    options = _parser().parse_args(arguments)
    results: dict[str, Costs] = {}
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-", dir=options.directory) as name:
        for broker in _brokers(Path(name), options.broker):
            with _running(broker):
                results[broker.name] = measure(broker, options.partitions)
    print(f"{options.partitions:,} partitions")
    print(_table(results))
    if options.json is not None:
        figures = {name: asdict(costs) for name, costs in results.items()}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


def measure(broker: BrokerProcess, partitions: int) -> Costs:
    """
    Give a running, empty broker so many partitions, and restart it twice.
    """
    sizes = {
        f"many-{first // PER_TOPIC}": min(PER_TOPIC, partitions - first)
        for first in range(0, partitions, PER_TOPIC)
    }
    created = sorted(_create(broker, topic, size) for topic, size in sizes.items())
    _say(broker, f"created {partitions} partitions in {sum(created):.2f} s")
    written = dict(list(sizes.items())[::WRITTEN_EACH])
    _write(broker, written)
    broker.stop(LONGEST_S)
    clean_s, clean_cpu_s, memory = _start(broker)
    _say(broker, f"started after a clean stop in {clean_s:.2f} s, holds {memory:.0f} MiB")
    _write(broker, written)
    broker.kill()
    kill_s, kill_cpu_s, memory_after_kill = _start(broker)
    _say(broker, f"started after a kill in {kill_s:.2f} s, holds {memory_after_kill:.0f} MiB")
    return Costs(
        create_s=created[len(created) // 2],
        clean_start_s=clean_s,
        clean_start_cpu_s=clean_cpu_s,
        memory_mib=memory,
        start_after_kill_s=kill_s,
        start_after_kill_cpu_s=kill_cpu_s,
        memory_after_kill_mib=memory_after_kill,
    )


def _create(broker: BrokerProcess, topic: str, partitions: int) -> float:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **PATIENT})
    began = time.monotonic()
    admin.create_topics([NewTopic(topic, partitions, 1)], request_timeout=LONGEST_S)[topic].result()
    return time.monotonic() - began


def _write(broker: BrokerProcess, sizes: Mapping[str, int]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 100, **PATIENT})
    for topic, partitions in sizes.items():
        for partition in range(partitions):
            for _ in range(RECORDS):
                producer.produce(topic, b"x" * 100, partition=partition)
        left = producer.flush(LONGEST_S)
        assert left == 0, f"{left} records were not acknowledged"


def _start(broker: BrokerProcess) -> tuple[float, float, float]:
    """
    Start it; seconds until a record is acknowledged, seconds of processor time, MiB held then.
    """
    began = time.monotonic()
    broker.launch()
    produce_when_possible(broker)
    seconds = time.monotonic() - began
    cpu = cpu_seconds(broker.pid)
    time.sleep(SETTLED_S)
    return seconds, cpu, resident_bytes(broker.pid) / 2**20


def _say(broker: BrokerProcess, what: str) -> None:
    print(f"{broker.name}: {what}", file=sys.stderr)


def _brokers(directory: Path, which: str) -> Iterator[BrokerProcess]:
    if which in ("both", "apache"):
        try:
            class_path()
        except PrerequisiteMissing as missing:
            sys.exit(f"Apache Kafka cannot be measured: {missing}")
        yield BusyKafka(directory / "apache", heap="1g", bounded=False)
    if which in ("both", "barnabas"):
        yield Barnabas(directory / "barnabas", bounded=False)


@contextmanager
def _running(broker: BrokerProcess) -> Iterator[None]:
    broker.start_timeout = 4 * LONGEST_S
    try:
        broker.launch()
        produce_when_possible(broker)
        yield
    finally:
        broker.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--broker", choices=("both", "barnabas", "apache"), default="both")
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--directory", type=Path, help="where the brokers write")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    return parser


def _table(results: Mapping[str, Costs]) -> str:
    kafka, barnabas = results.get(ApacheKafka.name), results.get(Barnabas.name)
    lines = [f"{'':40}{ApacheKafka.name:>18}{Barnabas.name:>18}{'ratio':>9}  goal"]
    for figure in FIGURES:
        theirs, ours = (costs and getattr(costs, figure.name) for costs in (kafka, barnabas))
        cells = "".join(
            f"{'-' if value is None else f'{value:,.2f} {figure.unit}':>18}"
            for value in (theirs, ours)
        )
        ratio = f"{ours / theirs:.3f}" if theirs and ours else "-"
        goal = "" if figure.goal is None else f"  <= {figure.goal:.3f}"
        lines.append(f"{figure.title:40}{cells}{ratio:>9}{goal}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
