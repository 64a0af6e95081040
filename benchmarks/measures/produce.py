"""
Producing through librdkafka, as fast as one producer and one partition go.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks.bench import Bench
from benchmarks.contender import Contender
from benchmarks.loader import BIG_BATCHES, Settings
from benchmarks.measure import Measure, Run, Values, broker_cpu, megabytes, rate, throughput
from benchmarks.procfs import spent_by
from benchmarks.topics import new_topic

IDEMPOTENT: Final[Settings] = {"enable.idempotence": True, "acks": "all"}


@dataclass(frozen=True, slots=True)
class Shape:
    """
    What is produced, and the ratios to reach.
    """

    name: str
    title: str
    count: int
    size: int
    settings: Settings
    at_least: float
    cpu_at_most: float = 0.6


SHAPES: Final = (
    Shape("produce-1k", "produce 1 KB, 1 MB batches", 1_000_000, 1024, {}, 1.6),
    Shape(
        "produce-16k",
        "produce 1 KB, 16 KiB batches",
        400_000,
        1024,
        {"batch.size": 16_384},
        2.0,
    ),
    Shape(
        "produce-idempotent",
        "produce 1 KB, idempotent, acks=all",
        600_000,
        1024,
        IDEMPOTENT,
        1.2,
    ),
    Shape("produce-lz4", "produce 1 KB, lz4", 2_000_000, 1024, {"compression.type": "lz4"}, 1.0),
    Shape("produce-100", "produce 100 B, 1 MB batches", 4_000_000, 100, {}, 1.0),
)


def measures(bench: Bench) -> list[Measure]:
    """
    One for each shape.
    """
    return [
        Measure(
            shape.name,
            bench.loader.name,
            partial(_producing, bench, shape),
            (
                rate(shape.title, at_least=shape.at_least),
                megabytes(),
                broker_cpu(shape.cpu_at_most),
            ),
        )
        for shape in SHAPES
    ]


@contextmanager
def _producing(bench: Bench, shape: Shape, contender: Contender) -> Iterator[Run]:
    """
    Produces to a new topic in each run.
    """
    broker, count = contender.broker, bench.count(shape.count)
    settings = {**BIG_BATCHES, **shape.settings}

    def run() -> Values:
        with new_topic(broker) as topic, spent_by(broker.pid) as spent:
            seconds = bench.loader.produce(broker.bootstrap, topic, count, shape.size, settings)
        return throughput(count, shape.size, seconds, spent.cpu)

    yield run
