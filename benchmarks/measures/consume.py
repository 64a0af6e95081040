"""
Consuming through librdkafka: what the page cache has, and what only the disk has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks import page_cache
from benchmarks.bench import Bench
from benchmarks.contender import Contender
from benchmarks.loader import BIG_BATCHES, FAR_AHEAD
from benchmarks.measure import Measure, Run, Values, broker_cpu, megabytes, rate, throughput
from benchmarks.procfs import spent_by
from benchmarks.topics import new_topic


@dataclass(frozen=True, slots=True)
class Shape:
    """
    What is read.
    """

    name: str
    title: str
    count: int
    size: int
    cold: bool = False
    at_least: float | None = None
    cpu_at_most: float | None = None


SHAPES: Final = (
    Shape("consume-1k", "consume 1 KB", 1_500_000, 1024, False, 1.1, 1.0),
    Shape("consume-100", "consume 100 B", 6_000_000, 100, False, 1.0, 1.0),
    Shape("consume-cold", "consume 1 KB from a cold disk", 500_000, 1024, True),
)


def measures(bench: Bench) -> list[Measure]:
    """
    One for each shape, and producing and consuming at the same time.
    """
    reading = [
        Measure(
            shape.name,
            bench.loader.name,
            partial(_consuming, bench, shape),
            (
                rate(shape.title, at_least=shape.at_least),
                megabytes(),
                broker_cpu(shape.cpu_at_most),
            ),
        )
        for shape in SHAPES
    ]
    both = (rate("produce and consume 1 KB at once"), megabytes(), broker_cpu())
    return [*reading, Measure("mixed", bench.loader.name, partial(_mixed, bench), both)]


@contextmanager
def _consuming(bench: Bench, shape: Shape, contender: Contender) -> Iterator[Run]:
    broker, count = contender.broker, bench.count(shape.count)
    with new_topic(broker) as topic:
        bench.loader.produce(broker.bootstrap, topic, count, shape.size, BIG_BATCHES)

        def run() -> Values:
            if shape.cold:
                page_cache.drop((broker.data / f"{topic}-0").glob("*.log"))
            with spent_by(broker.pid) as spent:
                seconds = bench.loader.consume(broker.bootstrap, topic, count, FAR_AHEAD)
            return throughput(count, shape.size, seconds, spent.cpu)

        yield run


@contextmanager
def _mixed(bench: Bench, contender: Contender) -> Iterator[Run]:
    """
    One producer and one consumer of the same partition; a record counts when it has gone both ways.
    """
    broker, count, size = contender.broker, bench.count(600_000), 1024

    def run() -> Values:
        with new_topic(broker) as topic:
            wanted = (broker.bootstrap, topic, count, FAR_AHEAD)
            with spent_by(broker.pid) as spent, bench.loader.consuming(*wanted) as consumed:
                bench.loader.produce(broker.bootstrap, topic, count, size, BIG_BATCHES)
                consumed()
            return throughput(count, size, spent.seconds, spent.cpu)

    yield run
