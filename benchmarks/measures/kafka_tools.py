"""
Apache Kafka's own performance tools, as its users run them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from benchmarks import java_tools
from benchmarks.bench import Bench
from benchmarks.contender import Contender
from benchmarks.loader import BIG_BATCHES
from benchmarks.measure import (
    Figure,
    Measure,
    Opened,
    Run,
    Values,
    broker_cpu,
    latencies,
    megabytes,
    rate,
)
from benchmarks.procfs import spent_by
from benchmarks.topics import new_topic

SIZE: Final = 1024
PACED_PER_SECOND: Final = 20_000


def measures(bench: Bench) -> list[Measure]:
    """
    Producing as fast as it goes and at a fixed rate, consuming, and one record after the other.
    """
    produced = (rate("kafka-producer-perf-test, 1 KB"), broker_cpu())
    paced = (*latencies("20,000 rec/s, Java producer", p99_at_most=1.0), broker_cpu())
    consumed = (rate("kafka-consumer-perf-test, 1 KB"), megabytes(), broker_cpu())
    title = "Kafka's EndToEndLatency, one at a time, mean"
    alone = (Figure("average", title, "ms", True, "latency"),)
    return [
        _of_tools("java-produce", partial(_producing, bench), produced),
        _of_tools("java-latency", partial(_paced, bench), paced, most_passes=5),
        _of_tools("java-consume", partial(_consuming, bench), consumed),
        _of_tools("java-end-to-end", partial(_one_at_a_time, bench), alone),
    ]


def _of_tools(
    name: str, opened: Opened, figures: tuple[Figure, ...], most_passes: int = 3
) -> Measure:
    return Measure(name, java_tools.NAME, opened, figures, most_passes=most_passes)


@contextmanager
def _producing(bench: Bench, contender: Contender) -> Iterator[Run]:
    broker, count = contender.broker, bench.count(500_000)
    warm_up = count // 2

    def run() -> Values:
        with new_topic(broker) as topic, spent_by(broker.pid) as spent:
            found = java_tools.produce(broker.bootstrap, topic, count, warm_up=warm_up, size=SIZE)
        return {**found, "cpu_per_million": spent.cpu / (count + warm_up) * 1e6}

    yield run


@contextmanager
def _paced(bench: Bench, contender: Contender) -> Iterator[Run]:
    """
    The latency from ``send`` to the callback of a producer with its default settings, but linger.
    """
    broker = contender.broker
    count, warm_up = bench.count(PACED_PER_SECOND * 5), bench.count(PACED_PER_SECOND * 3)

    def run() -> Values:
        with new_topic(broker) as topic, spent_by(broker.pid) as spent:
            found = java_tools.produce_paced(
                broker.bootstrap,
                topic,
                count,
                warm_up=warm_up,
                size=100,
                per_second=PACED_PER_SECOND,
            )
        return {**found, "cpu_per_million": spent.cpu / (count + warm_up) * 1e6}

    yield run


@contextmanager
def _one_at_a_time(bench: Bench, contender: Contender) -> Iterator[Run]:
    broker, count = contender.broker, bench.count(5_000)

    def run() -> Values:
        with new_topic(broker) as topic:
            return java_tools.end_to_end(broker.bootstrap, topic, count, 100)

    yield run


@contextmanager
def _consuming(bench: Bench, contender: Contender) -> Iterator[Run]:
    broker, count = contender.broker, bench.count(1_500_000)
    with new_topic(broker) as topic:
        bench.loader.produce(broker.bootstrap, topic, count, SIZE, BIG_BATCHES)

        def run() -> Values:
            with spent_by(broker.pid) as spent:
                found = java_tools.consume(broker.bootstrap, topic, count)
            per_second = found["records"] / found["seconds"]
            return {
                "per_second": per_second,
                "megabytes_per_second": per_second * SIZE / 1e6,
                "cpu_per_million": spent.cpu / found["records"] * 1e6,
            }

        yield run
