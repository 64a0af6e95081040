"""
What an answer may promise, and what each promise costs; transactions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from confluent_kafka import Producer

from benchmarks import wire
from benchmarks.bench import Bench
from benchmarks.contender import Contender
from benchmarks.exchange import Exchanger
from benchmarks.measure import Figure, Measure, Run, Values, broker_cpu, megabytes, rate, throughput
from benchmarks.procfs import spent_by
from benchmarks.topics import new_topic, now_ms

RECORDS: Final = 16
SIZE: Final = 1024
ALL: Final = -1


@dataclass(frozen=True, slots=True)
class Setting:
    """
    A position of the dial: batches of 16 records of 1 KB, each sent when the one before it is
    acknowledged.
    """

    name: str
    title: str
    batches: int
    connections: int = 1
    acks: int = ALL
    config: Mapping[str, str] = field(default_factory=dict)


DIAL: Final = (
    Setting("dial-acks-1", "16 KiB batches, acks=1", 10_000, acks=1),
    Setting("dial-acks-all", "16 KiB batches, acks=all", 10_000),
    Setting("dial-ms-1000", "- flush.ms=1000", 10_000, config={"flush.ms": "1000"}),
    Setting(
        "dial-messages-10000", "- flush.messages=10000", 10_000, config={"flush.messages": "10000"}
    ),
    Setting(
        "dial-messages-1000", "- flush.messages=1000", 5_000, config={"flush.messages": "1000"}
    ),
    Setting("dial-messages-1", "- flush.messages=1", 1_000, config={"flush.messages": "1"}),
    Setting(
        "dial-messages-1-of-32",
        "- flush.messages=1, 32 producers",
        6_000,
        32,
        config={"flush.messages": "1"},
    ),
)


def measures(bench: Bench) -> list[Measure]:
    """
    One for each position of the dial, and transactions.
    """
    dial = [
        Measure(
            setting.name,
            Exchanger.name,
            partial(_flushing, bench, setting),
            (rate(setting.title), megabytes(), *_answers(), broker_cpu()),
            most_passes=3,
        )
        for setting in DIAL
    ]
    commits = (rate("transactions of one record", "/s"), broker_cpu(of="commits"))
    return [*dial, Measure("transactions", "librdkafka", partial(_committing, bench), commits)]


def _answers() -> tuple[Figure, ...]:
    return (
        Figure("p50", "- answer, p50", "ms", True, "latency"),
        Figure("p99", "- answer, p99", "ms", True, "latency"),
    )


@contextmanager
def _flushing(bench: Bench, setting: Setting, contender: Contender) -> Iterator[Run]:
    broker, count = contender.broker, bench.count(setting.batches, setting.connections)
    with new_topic(broker, config=setting.config) as topic:
        batch = wire.batch([b"x" * SIZE] * RECORDS, now_ms())
        request = wire.produce_batch_request(topic, batch, acks=setting.acks)

        def run() -> Values:
            with spent_by(broker.pid) as spent:
                done = bench.exchanger.exchange(
                    broker.port,
                    request,
                    count,
                    error_at=wire.produce_error_at(topic),
                    connections=setting.connections,
                )
            values = throughput(count * RECORDS, SIZE, done.seconds, spent.cpu)
            return {**values, **done.acknowledged}

        yield run


@contextmanager
def _committing(bench: Bench, contender: Contender) -> Iterator[Run]:
    """
    One producer that commits after every record.
    """
    broker, count = contender.broker, bench.count(1_000)
    with new_topic(broker) as topic:

        def run() -> Values:
            producer = Producer(
                {
                    "bootstrap.servers": broker.bootstrap,
                    "transactional.id": topic,
                    "linger.ms": 0,
                    "log_level": 0,
                }
            )
            producer.init_transactions(60)
            with spent_by(broker.pid) as spent:
                began = time.perf_counter()
                for _ in range(count):
                    producer.begin_transaction()
                    producer.produce(topic, b"x" * 100, partition=0)
                    producer.commit_transaction(60)
                seconds = time.perf_counter() - began
            return throughput(count, 100, seconds, spent.cpu)

        yield run
