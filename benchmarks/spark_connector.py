"""
The same queries through Apache Spark's Kafka connector, against Apache Kafka and against Barnabas,
and through the source ``barnabas`` from the files.

    python -m benchmarks.spark_connector                  on all cores
    python -m benchmarks.spark_connector --cores 1        Spark and brokers share one core
    python -m benchmarks.spark_connector --only small --passes 5
    python -m benchmarks.spark_connector --limit          beside a broker with all answers at hand

All brokers run at once, and the ways to read take turns. The files are those that Apache Kafka has
written. The first pass of each query warms up and is not counted; of the others the median counts.
A query gives all its rows to Spark's ``noop`` sink; its cost is the processor time of Spark with
its workers and of the broker together. What of the broker's its own code took is given apart: the
rest is the system's, for whichever broker, and mostly the network's.
"""

from __future__ import annotations

import argparse
import json
import operator
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from pyspark.sql import DataFrame, SparkSession

from benchmarks.contender import BusyKafka
from benchmarks.loader import BIG_BATCHES, Loader
from benchmarks.measure import Unavailable
from benchmarks.process_tree import ProcessTree
from benchmarks.procfs import adopt_orphans, user_seconds
from benchmarks.remembering import Remembering
from benchmarks.turns import turns
from tests.interop.clients.base import NewRecord
from tests.interop.clients.confluent import Confluent
from tests.support.apache_kafka import PrerequisiteMissing
from tests.support.broker_process import Barnabas, BrokerProcess
from tests.support.spark import start_session

LARGER_POLLS: Final = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": str(4 << 20),
    "kafka.fetch.max.wait.ms": "20",
}
"""
The connector asks for two offsets for each poll, whatever comes of it.
"""

TUNED: Final = {**LARGER_POLLS, "kafka.receive.buffer.bytes": "-1"}
"""
What makes the connector cheapest. With the 64 KB that the consumer gives its socket, it and the
broker wait for each other for each 64 KB.
"""

SMALL_PARTITIONS: Final = 50
_NOTED_WITHIN_S: Final = 60


@dataclass(frozen=True, slots=True)
class Query:
    """
    A topic, what is in it, and how it is read.
    """

    name: str
    title: str
    partitions: int
    count: int
    size: int
    options: Mapping[str, str]
    from_files: bool = False
    goal_seconds: float | None = None


class Broker(Protocol):
    """
    What the queries go through.
    """

    @property
    def name(self) -> str: ...

    @property
    def bootstrap(self) -> str: ...

    @property
    def pid(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Brokers:
    """
    All that run, each with its own directory.
    """

    kafka: BrokerProcess
    ours: BrokerProcess
    ready: Remembering | None
    """With all answers at hand, which shows what is left to a broker to be better at."""


@dataclass(frozen=True, slots=True)
class Way:
    """
    A way to read a topic, and the broker that it goes through, if so.
    """

    name: str
    read: Callable[[], DataFrame]
    broker: Broker | None = None
    goal: float | None = None
    """How many times as fast as the first way it is meant to be."""


@dataclass(frozen=True, slots=True)
class Cost:
    """
    What one run took: seconds by the clock, and of processor time.
    """

    wall: float
    spark: float
    broker: float
    own: float
    """Of the broker's, that of its own code: what the system does for it is not in it."""

    @property
    def cpu(self) -> float:
        """
        Of Spark and the broker together.
        """
        return self.spark + self.broker


def queries(scale: float) -> list[Query]:
    """
    In the order of the table.
    """
    big, little = int(1_000_000 * scale), int(4_000_000 * scale)
    few = 10 * SMALL_PARTITIONS
    return [
        Query("1k", "1 KB, tuned", 2, big, 1024, TUNED, from_files=True),
        Query("1k-polls", "1 KB, larger polls", 2, big, 1024, LARGER_POLLS),
        Query("1k-defaults", "1 KB, defaults", 2, big, 1024, {}),
        Query("100", "100 B, tuned", 2, little, 100, TUNED, from_files=True),
        Query("100-polls", "100 B, larger polls", 2, little, 100, LARGER_POLLS),
        Query("100-defaults", "100 B, defaults", 2, little, 100, {}),
        Query(
            "small",
            f"{SMALL_PARTITIONS} partitions of 10",
            SMALL_PARTITIONS,
            few,
            100,
            {},
            goal_seconds=3.0,
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run what the command line asks for, print the table, and return the exit status.
    """
    options = _parser().parse_args(arguments)
    cores = _pin(options.cores)
    adopt_orphans()
    chosen = [query for query in queries(options.scale) if options.only in ("", query.name)]
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-bench-", dir=options.directory) as name,
        _running(Path(name), cores, limit=options.limit) as (spark, brokers),
    ):
        loader = Loader(Path(name))
        results = {query.name: _cost(query, spark, brokers, loader, options) for query in chosen}
    machine = f"{platform.machine()}, {cores} of {os.cpu_count()} cores"
    print(f"{machine}, PySpark {spark.version}, median of {options.passes} passes after the first")
    print(_table(results, chosen))
    if options.json is not None:
        costs = {
            query: {way.name: asdict(cost) for way, cost in ways} for query, ways in results.items()
        }
        options.json.write_text(json.dumps(costs, indent=2) + "\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="NAME", help="one query")
    parser.add_argument("--cores", type=int, help="for Spark and the brokers together")
    parser.add_argument("--scale", type=float, default=1.0, help="a factor on all numbers")
    parser.add_argument(
        "--limit", action="store_true", help="also through a broker that has all answers at hand"
    )
    parser.add_argument("--passes", type=int, default=3, help="of each query, after the first")
    parser.add_argument("--directory", type=Path, help="where the brokers write")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    return parser


def _pin(cores: int | None) -> int:
    """
    Keep this process and all that it starts on that many cores.
    """
    available = sorted(os.sched_getaffinity(0))
    if cores is not None:
        os.sched_setaffinity(0, available[:cores])
    return len(os.sched_getaffinity(0))


@contextmanager
def _running(directory: Path, cores: int, *, limit: bool) -> Iterator[tuple[SparkSession, Brokers]]:
    kafka = BusyKafka(directory / "apache", bounded=False)
    ours = Barnabas(directory / "barnabas", bounded=False)
    ready = Remembering(directory) if limit else None
    with ExitStack() as running:
        try:
            for broker in (kafka, ours, ready):
                if broker is not None:
                    running.callback(broker.close)
                    broker.start()
            spark = start_session(directory / "spark", cores=cores, memory="2g", java_options="")
        except (PrerequisiteMissing, Unavailable) as missing:
            sys.exit(f"this cannot be measured: {missing}")
        running.callback(spark.stop)
        yield spark, Brokers(kafka, ours, ready)


def _ways(query: Query, spark: SparkSession, brokers: Brokers) -> list[Way]:
    """
    The first is what the others are compared with.
    """

    def connector(broker: Broker) -> DataFrame:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
        return reader.options(subscribe=query.name, includeHeaders="true", **query.options).load()

    kafka, ours, ready = brokers.kafka, brokers.ours, brokers.ready
    ways = [
        Way(f"connector, {kafka.name}", partial(connector, kafka), kafka),
        Way(f"connector, {ours.name}", partial(connector, ours), ours, goal=1.2),
    ]
    if ready is not None:
        ways.append(Way(f"connector, {ready.name}", partial(connector, ready), ready))
    if not query.from_files:
        return ways
    files = partial(_files, spark, kafka, query)
    return [
        *ways,
        Way("files", files, goal=1.0),
        Way("files, 2 columns", partial(files, "offset long, timestamp timestamp"), goal=5.0),
        Way("files, level=batches", partial(files, level="batches"), goal=5.0),
    ]


def _files(
    spark: SparkSession,
    broker: BrokerProcess,
    query: Query,
    schema: str | None = None,
    *,
    level: str = "records",
) -> DataFrame:
    reader = spark.read.format("barnabas")
    if schema is not None:
        reader = reader.schema(schema)
    options = {"path": str(broker.data), "subscribe": query.name, "includeHeaders": "true"}
    return reader.options(level=level, **options).load()


def _cost(
    query: Query,
    spark: SparkSession,
    brokers: Brokers,
    loader: Loader,
    options: argparse.Namespace,
) -> list[tuple[Way, Cost]]:
    """
    What *query* costs in each way.
    """
    ways = _ways(query, spark, brokers)
    for way in ways:
        if way.broker is not None:
            fill(query, way.broker, loader)
    if query.from_files:
        _await_files(query, spark, brokers.kafka)
    costs: dict[str, list[Cost]] = {way.name: [] for way in ways}
    meter = _Meter(ways, brokers)
    for number in range(options.passes + 1):
        # Spark may have to clear away what a query before has left.
        for way in turns(ways, number):
            cost = _run(way, meter)
            print(f"{query.name} {number}: {way.name}: {_words(cost)}", file=sys.stderr)
            if number > 0:
                costs[way.name].append(cost)
    return [(way, _median(costs[way.name])) for way in ways]


def _await_files(query: Query, spark: SparkSession, broker: BrokerProcess) -> None:
    """
    Until the broker has noted its high watermark: what is behind it is not read.
    """
    until = time.monotonic() + _NOTED_WITHIN_S
    while True:
        batches = _files(spark, broker, query, "records int", level="batches").collect()
        if sum(batch.records for batch in batches) == query.count:
            return
        if time.monotonic() > until:
            sys.exit(f"{broker.name} has not noted its high watermark within {_NOTED_WITHIN_S} s")
        time.sleep(0.5)


def fill(query: Query, broker: Broker, loader: Loader) -> None:
    """
    Make the topic of *query*, with as many records in each partition.
    """
    client = Confluent()
    client.create_topic(broker.bootstrap, query.name, query.partitions, {})
    if query.partitions < SMALL_PARTITIONS:
        # As much in each: Spark reads a partition of the topic in one task.
        each = query.count // query.partitions
        for partition in range(query.partitions):
            loader.produce(
                broker.bootstrap, query.name, each, query.size, BIG_BATCHES, partition=partition
            )
        return
    records = [
        NewRecord(b"x" * query.size, partition=number % query.partitions)
        for number in range(query.count)
    ]
    client.produce(broker.bootstrap, query.name, records, "none")


class _Meter:
    """
    The processor time of Spark, which is all that is no broker: this process, the driver, which
    runs the tasks, and the Python that it starts for them; and that of each broker.
    """

    def __init__(self, ways: Sequence[Way], brokers: Brokers) -> None:
        pids = [way.broker.pid for way in ways if way.broker is not None]
        others = [] if brokers.ready is None else [brokers.ready.pid_behind]
        self._spark = ProcessTree(os.getpid(), without=[*pids, *others])
        self._brokers = {pid: ProcessTree(pid) for pid in pids}

    def so_far(self, way: Way) -> tuple[float, float, float]:
        """
        What Spark has used, what the broker of *way*, and what of that its own code.
        """
        if way.broker is None:
            return self._spark.seconds(), 0.0, 0.0
        pid = way.broker.pid
        return self._spark.seconds(), self._brokers[pid].seconds(), user_seconds(pid)


def _run(way: Way, meter: _Meter) -> Cost:
    before = meter.so_far(way)
    began = time.monotonic()
    way.read().write.format("noop").mode("overwrite").save()
    wall = time.monotonic() - began
    spark, broker, own = map(operator.sub, meter.so_far(way), before)
    return Cost(wall, spark, broker, own)


def _median(costs: Sequence[Cost]) -> Cost:
    def median(of: Callable[[Cost], float]) -> float:
        return statistics.median(map(of, costs))

    return Cost(
        median(lambda cost: cost.wall),
        median(lambda cost: cost.spark),
        median(lambda cost: cost.broker),
        median(lambda cost: cost.own),
    )


def _words(cost: Cost) -> str:
    return f"{cost.wall:.2f} s, CPU {cost.spark:.2f} + {cost.broker:.2f} s, own {cost.own:.2f} s"


def _table(results: Mapping[str, Sequence[tuple[Way, Cost]]], chosen: Sequence[Query]) -> str:
    lines = []
    for query in chosen:
        lines.append(f"\n{query.title}, {query.count:,} records")
        base = results[query.name][0][1]
        for way, cost in results[query.name]:
            line = f"  {way.name:26}{_words(cost):>40}"
            if way.broker is None or cost is not base:
                line += f"{base.wall / cost.wall:>9.2f}x as fast, CPU {cost.cpu / base.cpu:.2f}x"
            if way.goal is not None:
                line += f"  (goal {way.goal:g}x)"
            if query.goal_seconds is not None and cost is not base:
                line += f"  goal <= {query.goal_seconds:g} s"
            lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
