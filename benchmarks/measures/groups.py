"""
The group protocols: members that join and stay, and consumers that share a partition.
"""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from benchmarks import java_tools, wire
from benchmarks.bench import Bench
from benchmarks.contender import Contender
from benchmarks.loader import BIG_BATCHES
from benchmarks.measure import Figure, Goal, Measure, Run, Values, broker_cpu, rate
from benchmarks.members import Members, connections
from benchmarks.procfs import spent_by
from benchmarks.topics import LOCAL, PATIENCE, new_topic
from tests.support.wire_client import request_frame

PER_SECOND: Final = 2000
"""Heartbeats of 10,000 members, of which each sends one in five seconds."""
SIZE: Final = 100
GROUP_RESOURCE: Final = 32
SET: Final = 0

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Shape:
    """
    How many members there are, in how many groups.
    """

    name: str
    title: str
    groups: int
    members: int
    partitions: int


SHAPES: Final = (
    Shape("group-members", "1,000 members in a group", 1, 1000, 1000),
    Shape("group-count", "10,000 groups of one member", 10_000, 1, 1),
)


def measures(bench: Bench) -> list[Measure]:
    """
    One for each shape, and one for each number of share consumers.
    """
    return [
        *(
            Measure(
                shape.name,
                "own frames",
                partial(_staying, bench, shape),
                (
                    Figure(
                        "settled",
                        f"{shape.title}: until all are stable",
                        "s",
                        less_is_better=True,
                        goal=Goal.RATIO_AT_MOST,
                        limit=1.0,
                    ),
                    broker_cpu(0.6, of="heartbeats"),
                ),
                most_passes=3,
            )
            for shape in SHAPES
        ),
        *(
            Measure(
                f"java-share-{consumers}",
                java_tools.NAME,
                partial(_sharing, bench, consumers),
                (
                    rate(
                        f"kafka-share-consumer-perf-test, {consumers} of a partition", at_least=1.0
                    ),
                    broker_cpu(),
                ),
                most_passes=3,
            )
            for consumers in (1, 8)
        ),
    ]


@contextmanager
def _staying(bench: Bench, shape: Shape, contender: Contender) -> Iterator[Run]:
    """
    Members join, and send heartbeats that change nothing.
    """
    broker, seconds = contender.broker, 5 * bench.scale
    # It creates the topic of the groups.
    _ask(broker.port, FindCoordinatorRequest(key="first"), 1)
    partitions = bench.count(shape.partitions)

    def run() -> Values:
        run_number = next(_numbers)
        names = [f"members-{run_number}-{at}" for at in range(bench.count(shape.groups))]
        each = bench.count(shape.members)
        with new_topic(broker, partitions) as topic, connections(broker.port) as opened:
            members = Members(
                opened, [name for name in names for _ in range(each)], topic, partitions
            )
            began = time.perf_counter()
            members.join()
            members.settle()
            settled = time.perf_counter() - began
            with spent_by(broker.pid) as spent:
                beats = members.beat(PER_SECOND, seconds)
            members.leave()
            _ask(broker.port, DeleteGroupsRequest(groups_names=names), 2)
        return {"settled": settled, "cpu_per_million": spent.cpu / beats * 1e6}

    yield run


def _ask(port: int, request: Message, version: int) -> None:
    with socket.create_connection((LOCAL, port), timeout=PATIENCE) as connection:
        wire.ask(connection, request_frame(request, version, 1, "bench"))


@contextmanager
def _sharing(bench: Bench, consumers: int, contender: Contender) -> Iterator[Run]:
    """
    Share consumers read one partition, from its first record on. The time to join counts.
    """
    broker, count = contender.broker, bench.count(2_000_000)
    with new_topic(broker) as topic:
        bench.loader.produce(broker.bootstrap, topic, count, SIZE, BIG_BATCHES)

        def run() -> Values:
            group = f"shared-{next(_numbers)}"
            _read_from_the_start(broker.port, group)
            with spent_by(broker.pid) as spent:
                found = java_tools.share(
                    broker.bootstrap, topic, count, group=group, consumers=consumers
                )
            return {
                "per_second": found["records"] / found["seconds"],
                "cpu_per_million": spent.cpu / found["records"] * 1e6,
            }

        yield run


def _read_from_the_start(port: int, group: str) -> None:
    config = AlterableConfig(name="share.auto.offset.reset", config_operation=SET, value="earliest")
    resource = AlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name=group, configs=[config]
    )
    _ask(port, IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
