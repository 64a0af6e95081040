"""
The same queries through Apache Spark's Kafka connector, against Barnabas and against Apache Kafka.

    python -m benchmarks.spark_connector                  on all cores
    python -m benchmarks.spark_connector --cores 1        Spark and brokers share one core
    python -m benchmarks.spark_connector --only small --passes 5

Both brokers run at once and take turns. The first pass of each query warms up and is not counted;
of the others the median counts. A query gives all its rows to Spark's ``noop`` sink; its cost is
the processor time of Spark and of the broker together.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from benchmarks.loader import BIG_BATCHES, Loader
from tests.interop.clients.base import NewRecord
from tests.interop.clients.confluent import Confluent
from tests.support.apache_kafka import ApacheKafka, PrerequisiteMissing
from tests.support.broker_process import Barnabas, BrokerProcess, cpu_seconds
from tests.support.spark import start_session

TUNED: Final = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": str(4 << 20),
    "kafka.fetch.max.wait.ms": "20",
}
"""
What makes the connector cheapest: it asks for two offsets for each poll, whatever comes of it.
"""

SMALL_PARTITIONS: Final = 50


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
    goal_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """
    What one run took: seconds by the clock, and of processor time.
    """

    wall: float
    spark: float
    broker: float

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
        Query("1k", "1 KB, tuned", 2, big, 1024, TUNED),
        Query("1k-defaults", "1 KB, defaults", 2, big, 1024, {}),
        Query("100", "100 B, tuned", 2, little, 100, TUNED),
        Query("100-defaults", "100 B, defaults", 2, little, 100, {}),
        Query("small", f"{SMALL_PARTITIONS} partitions of 10", SMALL_PARTITIONS, few, 100, {}, 3.0),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run what the command line asks for, print the table, and return the exit status.
    """
    options = _parser().parse_args(arguments)
    cores = _pin(options.cores)
    chosen = [query for query in queries(options.scale) if options.only in ("", query.name)]
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-bench-", dir=options.directory) as name,
        _running(Path(name), cores) as (spark, brokers),
    ):
        loader = Loader(Path(name))
        results = {query.name: _cost(query, spark, brokers, loader, options) for query in chosen}
    machine = f"{platform.machine()}, {cores} of {os.cpu_count()} cores"
    print(f"{machine}, PySpark {spark.version}, median of {options.passes} passes after the first")
    print(_table(chosen, results))
    if options.json is not None:
        costs = {
            query: {broker: asdict(cost) for broker, cost in by_broker.items()}
            for query, by_broker in results.items()
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
def _running(directory: Path, cores: int) -> Iterator[tuple[SparkSession, list[BrokerProcess]]]:
    brokers: list[BrokerProcess] = [
        ApacheKafka(directory / "apache", bounded=False),
        Barnabas(directory / "barnabas", bounded=False),
    ]
    with ExitStack() as running:
        try:
            for broker in brokers:
                running.callback(broker.close)
                broker.start()
            spark = start_session(directory / "spark", cores=cores, memory="2g", java_options="")
        except PrerequisiteMissing as missing:
            sys.exit(f"this cannot be measured: {missing}")
        running.callback(spark.stop)
        yield spark, brokers


def _cost(
    query: Query,
    spark: SparkSession,
    brokers: Sequence[BrokerProcess],
    loader: Loader,
    options: argparse.Namespace,
) -> dict[str, Cost]:
    """
    What *query* costs with each broker.
    """
    for broker in brokers:
        _fill(query, broker, loader)
    costs: dict[str, list[Cost]] = {broker.name: [] for broker in brokers}
    for number in range(options.passes + 1):
        for broker in brokers:
            cost = _run(query, spark, broker)
            print(f"{query.name} {number}: {broker.name}: {_words(cost)}", file=sys.stderr)
            if number > 0:
                costs[broker.name].append(cost)
    return {name: _median(measured) for name, measured in costs.items()}


def _fill(query: Query, broker: BrokerProcess, loader: Loader) -> None:
    client = Confluent()
    client.create_topic(broker.bootstrap, query.name, query.partitions, {})
    if query.partitions < SMALL_PARTITIONS:
        loader.produce(broker.bootstrap, query.name, query.count, query.size, BIG_BATCHES)
        return
    records = [
        NewRecord(b"x" * query.size, partition=number % query.partitions)
        for number in range(query.count)
    ]
    client.produce(broker.bootstrap, query.name, records, "none")


def _run(query: Query, spark: SparkSession, broker: BrokerProcess) -> Cost:
    reader = spark.read.format("kafka").options(
        **{
            "kafka.bootstrap.servers": broker.bootstrap,
            "subscribe": query.name,
            "includeHeaders": "true",
            **query.options,
        }
    )
    before_spark, before_broker = _cpu_of_spark(spark), cpu_seconds(broker.pid)
    began = time.monotonic()
    reader.load().write.format("noop").mode("overwrite").save()
    wall = time.monotonic() - began
    return Cost(wall, _cpu_of_spark(spark) - before_spark, cpu_seconds(broker.pid) - before_broker)


def _cpu_of_spark(spark: SparkSession) -> float:
    """
    The driver is all of Spark here: it runs the tasks, and no query has Python in it.
    """
    context = spark.sparkContext
    jvm = context._jvm
    assert jvm is not None, "the session runs in this process"
    return cpu_seconds(int(jvm.java.lang.ProcessHandle.current().pid()))


def _median(costs: Sequence[Cost]) -> Cost:
    def median(of: Callable[[Cost], float]) -> float:
        return statistics.median(map(of, costs))

    return Cost(
        median(lambda cost: cost.wall),
        median(lambda cost: cost.spark),
        median(lambda cost: cost.broker),
    )


def _words(cost: Cost) -> str:
    return f"{cost.wall:.2f} s, CPU {cost.spark:.2f} + {cost.broker:.2f} s"


def _table(chosen: Sequence[Query], results: Mapping[str, Mapping[str, Cost]]) -> str:
    lines = [
        f"{'all columns':22}{'records':>11}{'Apache Kafka':>28}{'Barnabas':>28}   as fast  CPU"
    ]
    for query in chosen:
        kafka, ours = results[query.name][ApacheKafka.name], results[query.name][Barnabas.name]
        line = (
            f"{query.title:22}{query.count:>11,}{_words(kafka):>28}{_words(ours):>28}"
            f"{kafka.wall / ours.wall:>9.2f}x{ours.cpu / kafka.cpu:>5.2f}x"
        )
        if query.goal_seconds is not None:
            line += f"  goal <= {query.goal_seconds:g} s"
        lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
