"""
Requests as such: one record in each, a thousand partitions in each, a thousand connections.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks import wire
from benchmarks.bench import Bench
from benchmarks.contender import Contender
from benchmarks.exchange import Exchanger
from benchmarks.measure import Measure, Run, Values, broker_cpu, megabytes, rate, throughput
from benchmarks.procfs import spent_by
from benchmarks.topics import LOCAL, PATIENCE, new_topic, now_ms
from tests.support.broker_process import BrokerProcess, wait_for

SIZE: Final = 100


@dataclass(frozen=True, slots=True)
class Shape:
    """
    How requests of one record of 100 bytes for each partition are sent.
    """

    name: str
    title: str
    count: int
    under_way: int = 1
    connections: int = 1
    partitions: int = 1
    at_least: float | None = None
    cpu_at_most: float | None = None


SHAPES: Final = (
    Shape("requests-pipelined", "one-record requests, pipelined", 40_000, 500, 1, 1, 4.0, 0.25),
    Shape("requests-single", "one-record requests, one at a time", 20_000, 1, 1, 1, 1.3, 0.25),
    Shape("connections-1000", "one-record requests, 1,000 connections", 40_000, 1, 1000),
    Shape("partitions-1000", "requests with 1,000 partitions", 200, 2, 1, 1000),
)


def measures(bench: Bench) -> list[Measure]:
    """
    One for each shape.
    """
    return [
        Measure(
            shape.name,
            Exchanger.name,
            partial(_asking, bench, shape),
            (
                rate(shape.title, at_least=shape.at_least),
                megabytes(),
                broker_cpu(shape.cpu_at_most),
            ),
        )
        for shape in SHAPES
    ]


@contextmanager
def _asking(bench: Bench, shape: Shape, contender: Contender) -> Iterator[Run]:
    broker, count = contender.broker, bench.count(shape.count)
    partitions = bench.count(shape.partitions)
    with new_topic(broker, partitions) as topic:
        batch = wire.batch([b"x" * SIZE], now_ms())
        request = wire.produce_batches_request(topic, dict.fromkeys(range(partitions), batch))
        wait_for(lambda: _is_taken(broker, topic, request, partitions), topic, PATIENCE)

        def run() -> Values:
            with spent_by(broker.pid) as spent:
                done = bench.exchanger.exchange(
                    broker.port,
                    request,
                    count,
                    error_at=wire.produce_error_at(topic),
                    connections=bench.count(shape.connections),
                    under_way=shape.under_way,
                )
            return throughput(count * partitions, SIZE, done.seconds, spent.cpu)

        yield run


def _is_taken(broker: BrokerProcess, topic: str, request: bytes, partitions: int) -> bool:
    """
    Whether every partition takes its record, as each does a moment after it was created.
    """
    with socket.create_connection((LOCAL, broker.port), timeout=PATIENCE) as connection:
        answer = wire.ask(connection, request)
    return all(wire.produce_error(topic, answer, place) == 0 for place in range(partitions))
