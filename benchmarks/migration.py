"""
How long records wait while a live group changes its protocol, beside Apache Kafka.

::

    python -m benchmarks.migration --passes 3

Six members of librdkafka, processes of their own, read six partitions. Each of them is closed and
another one of the other protocol is started, one after the other: from classic to consumer, and
back. Meanwhile a record is produced to each partition every 20 ms. The figure is the longest time
that a record has waited until a member had read it: the pause of the partition that was worst off.
The brokers take turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from confluent_kafka import Message, Producer

from benchmarks.contender import Contender, apache_kafka, barnabas
from benchmarks.topics import new_topic
from benchmarks.turns import turns
from tests.interop.live_group import MemberProcess

MEMBERS: Final = 6
PERIOD_S: Final = 0.02
PATIENCE_S: Final = 120.0
SETTLED_S: Final = 1.0
"""Seconds between two members that are replaced, once all partitions have an owner."""
PROTOCOLS: Final = ("consumer", "classic")


class Waits:
    """
    When records were produced and read, by partition and offset.
    """

    def __init__(self) -> None:
        self._produced: dict[tuple[int, int], float] = {}
        self._read: dict[tuple[int, int], float] = {}

    def produced(self, partition: int, offset: int) -> None:
        self._produced[partition, offset] = time.monotonic()

    def read(self, partition: int, offset: int) -> None:
        self._read.setdefault((partition, offset), time.monotonic())

    def missing(self) -> int:
        """
        The number of records that nobody has read.
        """
        return len(self._produced.keys() - self._read.keys())

    def longest(self) -> float:
        """
        Seconds that a record has waited.
        """
        return max(self._read[place] - at for place, at in [*self._produced.items()])


class Member(MemberProcess):
    """
    A member of librdkafka, which tells *waits* what it reads.
    """

    def __init__(self, bootstrap: str, topic: str, protocol: str, waits: Waits) -> None:
        self.assigned: Sequence[str] = ()
        self._waits = waits
        arguments = (bootstrap, f"group-of-{topic}", protocol, topic, "-")
        super().__init__([sys.executable, "-m", "tests.interop.consumer_member", *arguments])

    def hear(self, words: Sequence[str]) -> None:
        match words:
            case ["assigned", listed]:
                self.assigned = () if listed == "-" else listed.split(",")
            case ["read", _, partition, offset]:
                self._waits.read(int(partition), int(offset))


@contextmanager
def _producing(bootstrap: str, topic: str, waits: Waits) -> Iterator[None]:
    stopped = threading.Event()

    def delivered(error: Any, message: Message) -> None:
        assert error is None, error
        waits.produced(message.partition() or 0, message.offset() or 0)

    def produce() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        while not stopped.wait(PERIOD_S):
            for partition in range(MEMBERS):
                producer.produce(topic, b"x", partition=partition, on_delivery=delivered)
            producer.poll(0)
        producer.flush()

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _wait_for_shares(members: Sequence[Member]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not all(len(member.assigned) == 1 for member in members):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no stable assignment: {[each.assigned for each in members]}")
        time.sleep(0.01)


def measure(contender: Contender) -> float:
    """
    Migrate a group there and back; return the longest wait of a record, in seconds.
    """
    broker, waits = contender.broker, Waits()
    with new_topic(broker, MEMBERS) as topic, ExitStack() as stack:

        def join(protocol: str) -> Member:
            member = Member(broker.bootstrap, topic, protocol, waits)
            stack.callback(member.kill)
            return member

        members = [join("classic") for _ in range(MEMBERS)]
        _wait_for_shares(members)
        with _producing(broker.bootstrap, topic, waits):
            for protocol in PROTOCOLS:
                for at, old in enumerate(members):
                    old.close()
                    members[at] = join(protocol)
                    _wait_for_shares(members)
                    time.sleep(SETTLED_S)
        deadline = time.monotonic() + PATIENCE_S
        while waits.missing() and time.monotonic() < deadline:
            time.sleep(0.05)
        if waits.missing():
            raise RuntimeError(f"{waits.missing()} records were lost")
        return waits.longest()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0] if __doc__ else None)
    parser.add_argument("--passes", type=int, default=3, help="migrations on each broker")
    options = parser.parse_args(arguments)
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        contenders = [apache_kafka(Path(name)), barnabas(Path(name))]
        for contender in contenders:
            stack.callback(contender.close)
        for at in range(options.passes):
            for contender in turns(contenders, at):
                waited = measure(contender)
                found.setdefault(contender.name, []).append(waited)
                print(f"{contender.name}: {waited:.2f} s", file=sys.stderr, flush=True)
    for broker, waits in found.items():
        print(f"{broker:<14} longest wait of a record: median {median(waits):.2f} s")


if __name__ == "__main__":
    main()
