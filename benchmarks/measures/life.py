"""
A broker's life: start, idle, recovery after a kill; each on a broker of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from benchmarks.bench import Bench
from benchmarks.contender import Contender
from benchmarks.loader import BIG_BATCHES
from benchmarks.measure import Figure, Goal, Measure, Run, Values, megabytes
from benchmarks.procfs import peak_bytes, resident_bytes, spent_by
from benchmarks.topics import create_topic, produce_when_possible
from tests.support.broker_process import BrokerProcess

IDLE_SECONDS: Final = 3.0
MIB: Final = 2**20
TOPIC: Final = "many"


def first_measures(bench: Bench) -> list[Measure]:
    """
    What is measured before the brokers of the other measures run.
    """
    idle = (
        Figure("memory", "memory, idle", "MiB", True, "memory", Goal.AT_MOST, 40),
        Figure("percent", "- CPU, idle", "%", True, "idle"),
    )
    return [
        Measure("start-0", "one record", partial(_starting, 0), (_start(0, 1 / 15),), 0),
        Measure(
            "start-1000",
            "one record",
            partial(_starting, bench.count(1_000)),
            (_start(1_000),),
            warm_ups=0,
            most_passes=3,
        ),
        Measure("idle", "none", partial(_idling, bench), idle, warm_ups=0, most_passes=3),
    ]


def last_measures(bench: Bench) -> list[Measure]:
    """
    What needs the disk for itself.
    """
    size = bench.recovery_bytes / 2**30
    seconds = Figure(
        "seconds",
        f"recovery of {size:.3g} GiB after a kill",
        "s",
        True,
        "start",
        Goal.RATIO_AT_MOST,
        1.0,
    )
    rate = megabytes()
    recovery = (seconds, rate)
    return [
        Measure("recovery", "one record", partial(_recovering, bench), recovery, 0, most_passes=3)
    ]


def peak_memory(bench: Bench) -> list[Measure]:
    """
    The most that the broker of the measures before this one ever held.
    """
    peak = (
        Figure("memory", "memory, peak of the above", "MiB", True, "memory", Goal.AT_MOST, 100),
    )
    return [Measure("peak-memory", "none", _peak, peak, warm_ups=0, most_passes=1)]


def _start(partitions: int, at_most: float | None = None) -> Figure:
    title = f"start to first record, {partitions:,} partitions"
    goal = None if at_most is None else Goal.RATIO_AT_MOST
    return Figure("seconds", title, "s", True, "start", goal, at_most or 0.0)


@contextmanager
def _starting(partitions: int, contender: Contender) -> Iterator[Run]:
    """
    From starting the process, after a clean stop, to its first acknowledged record.
    """
    with contender.another(f"start-{partitions}") as broker:
        broker.launch()
        produce_when_possible(broker)
        if partitions > 0:
            create_topic(broker, TOPIC, partitions)

        def run() -> Values:
            broker.stop()
            return {"seconds": _time_to_first_record(broker, "first")}

        yield run


def _time_to_first_record(broker: BrokerProcess, topic: str) -> float:
    began = time.perf_counter()
    broker.launch()
    produce_when_possible(broker, topic)
    return time.perf_counter() - began


@contextmanager
def _idling(bench: Bench, contender: Contender) -> Iterator[Run]:
    """
    A broker that has taken one record and has nothing more to do.
    """
    with contender.another("idle") as broker:
        broker.launch()
        produce_when_possible(broker)

        def run() -> Values:
            with spent_by(broker.pid) as spent:
                time.sleep(max(0.2, IDLE_SECONDS * bench.scale))
            memory = resident_bytes(broker.pid) / MIB
            return {"memory": memory, "percent": 100 * spent.cpu / spent.seconds}

        yield run


@contextmanager
def _recovering(bench: Bench, contender: Contender) -> Iterator[Run]:
    """
    A broker that was killed and knows nothing of what it had flushed: all its segments are read.
    """
    record = 1024
    with contender.another("recovery") as broker:
        broker.launch()
        create_topic(broker, TOPIC)
        count = max(1, bench.recovery_bytes // record)
        bench.loader.produce(broker.bootstrap, TOPIC, count, record, BIG_BATCHES)

        def run() -> Values:
            broker.kill()
            for checkpoint in broker.data.glob("recovery-point-offset-checkpoint"):
                checkpoint.unlink()
            seconds = _time_to_first_record(broker, TOPIC)
            return {"seconds": seconds, "megabytes_per_second": count * record / seconds / 1e6}

        yield run


@contextmanager
def _peak(contender: Contender) -> Iterator[Run]:
    broker = contender.broker
    yield lambda: {"memory": peak_bytes(broker.pid) / MIB}
