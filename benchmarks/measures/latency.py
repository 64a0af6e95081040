"""
How long a record takes at 20,000 in a second, and who else can make it take longer.

The load comes at a fixed rate, whatever the broker does, and a latency counts from when a request
was due. End to end is until another connection has read the record.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Event
from typing import Final

from benchmarks import page_cache, wire
from benchmarks.bench import Bench
from benchmarks.contender import Contender
from benchmarks.exchange import Exchanged, Exchanger
from benchmarks.loader import BIG_BATCHES, FAR_AHEAD
from benchmarks.measure import Figure, Measure, Run, Values, broker_cpu, latencies
from benchmarks.procfs import spent_by
from benchmarks.topics import LOCAL, new_topic, now_ms
from tests.support.broker_process import BrokerProcess

PER_SECOND: Final = 20_000
RECORDS: Final = 10
"""
In a request: what a producer has gathered in half a millisecond.
"""
SIZE: Final = 100
SECONDS: Final = 5
WARM: Final = 0.2
"""
The part of the requests that comes first and does not count.
"""
SLOW: Final = 10
"""
How many connections ask for megabytes and never read an answer.
"""


def measures(bench: Bench) -> list[Measure]:
    """
    Alone, and beside a consumer of cold data and connections that do not read their answers.
    """
    alone = (
        *latencies("20,000 rec/s, end to end", "end_to_end_", p99_at_most=1.0),
        *latencies("20,000 rec/s, acknowledged"),
        broker_cpu(),
    )
    beside = (
        Figure("alone_p99", "20,000 rec/s, p99 alone", "ms", True, "isolation"),
        Figure("beside_p99", "- beside a cold and ten slow readers", "ms", True, "isolation"),
        Figure("times", "- as a multiple", "x", True, "isolation"),
    )
    return [
        Measure("latency", Exchanger.name, partial(_paced, bench), alone),
        Measure("isolation", Exchanger.name, partial(_beside, bench), beside, most_passes=3),
    ]


@contextmanager
def _paced(bench: Bench, contender: Contender) -> Iterator[Run]:
    broker = contender.broker

    def run() -> Values:
        with new_topic(broker) as topic, spent_by(broker.pid) as spent:
            done, records = _produce(bench, broker, topic, follow=True)
        end_to_end = {f"end_to_end_{name}": value for name, value in done.consumed.items()}
        return {
            **done.acknowledged,
            **end_to_end,
            "cpu_per_million": spent.cpu / records * 1e6,
        }

    yield run


def _produce(
    bench: Bench, broker: BrokerProcess, topic: str, *, follow: bool
) -> tuple[Exchanged, int]:
    """
    Produce at the fixed rate to a topic with one record; what came of it, and how many records.
    """
    batch = wire.batch([b"x" * SIZE] * RECORDS, now_ms())
    rate = PER_SECOND // RECORDS
    count = bench.count(rate * SECONDS, at_least=100)
    done = bench.exchanger.exchange(
        broker.port,
        wire.produce_batch_request(topic, batch),
        count,
        error_at=wire.produce_error_at(topic),
        rate=rate,
        skip=int(count * WARM),
        follow=wire.following_fetch(topic, 1) if follow else None,
        records=RECORDS,
    )
    return done, count * RECORDS


@contextmanager
def _beside(bench: Bench, contender: Contender) -> Iterator[Run]:
    broker, count = contender.broker, bench.count(500_000)
    with new_topic(broker) as cold:
        bench.loader.produce(broker.bootstrap, cold, count, 1024, BIG_BATCHES)

        def read() -> None:
            page_cache.drop((broker.data / f"{cold}-0").glob("*.log"))
            bench.loader.consume(broker.bootstrap, cold, count, FAR_AHEAD)

        def run() -> Values:
            with new_topic(broker) as topic:
                alone, _ = _produce(bench, broker, topic, follow=False)
                with _repeating(read), _never_reading(broker, cold):
                    beside, _ = _produce(bench, broker, topic, follow=False)
            values = {"alone_p99": alone.acknowledged["p99"]}
            values |= {"beside_p99": beside.acknowledged["p99"]}
            return {**values, "times": values["beside_p99"] / values["alone_p99"]}

        yield run


@contextmanager
def _repeating(work: Callable[[], None]) -> Iterator[None]:
    """
    Another thread does that over and over during the body, at least once.
    """
    over = Event()

    def repeat() -> None:
        work()
        while not over.is_set():
            work()

    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(repeat)
        try:
            yield
        finally:
            over.set()
        done.result()


@contextmanager
def _never_reading(broker: BrokerProcess, topic: str) -> Iterator[None]:
    """
    Connections that have asked for much more than the sockets hold.
    """
    with ExitStack() as connections:
        for _ in range(SLOW):
            connection = socket.create_connection((LOCAL, broker.port), timeout=10)
            connections.enter_context(connection)
            request = wire.fetch_request(topic, 0, max_bytes=10 << 20)
            connection.sendall(request * 20)
        yield
