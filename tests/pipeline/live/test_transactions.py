from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from barnabas.client.cluster import Cluster
from barnabas.client.settings import BOOTSTRAP
from barnabas.pipeline.errors import TransactionsLost
from barnabas.pipeline.writing.identity import Identity, initialized
from barnabas.pipeline.writing.options import WriteOptions, parse_write_options
from barnabas.pipeline.writing.producer import TaskProducer
from barnabas.pipeline.writing.task import write_rows
from barnabas.pipeline.writing.transactions import (
    CommitDecision,
    MicroBatch,
    abort,
    abort_earlier,
    commit,
    decide,
    read_decision,
)
from barnabas.storage.topic_partition import TopicPartition
from tests.pipeline.live.wire import values
from tests.pipeline.topics import Topic
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.spark]

COMMITTED = {"kafka.isolation.level": "read_committed"}


class World:
    """
    A topic, and the tasks of a query that write to it.
    """

    def __init__(self, broker: BrokerProcess, name: str) -> None:
        self.topic = Topic(broker, name)
        self.options: WriteOptions = parse_write_options(
            {BOOTSTRAP: broker.bootstrap, "topic": name, "kafka.request.timeout.ms": "20000"}
        )
        self.cluster = Cluster(self.options.client)
        self.batch = MicroBatch("query", 5, f"prefix-{name}")
        self.place = TopicPartition(name, 0)

    def prepare(self, task: int, attempt: int = 0) -> Identity:
        name = self.batch.transactional_id(task, attempt)
        identity = initialized(self.cluster, name, self.options)
        producer = TaskProducer(self.cluster, self.options, identity, task)
        rows = pa.record_batch({"value": [f"{task}.{attempt}"]})
        assert 1 == write_rows(self.cluster, self.options, producer, task, [rows])
        return identity

    def decide(self, *transactions: Identity) -> CommitDecision:
        decision = CommitDecision("query", 5, transactions, self.place)
        decide(self.cluster, self.batch.group, decision)
        return decision

    def seen(self) -> list[bytes | None]:
        return values(self.topic.broker.bootstrap, self.topic.name, **COMMITTED)


@pytest.fixture
def world(broker: BrokerProcess, request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(broker, request.node.name.replace("[", "-").rstrip("]"))
    yield world
    world.cluster.close()


def test_decided_transaction_can_be_committed_repeatedly(world: World) -> None:
    decision = world.decide(world.prepare(0), world.prepare(1))
    assert [] == world.seen()

    for _ in range(3):
        commit(world.cluster, world.batch.group, decision)

    assert [b"0.0", b"1.0"] == world.seen()


@pytest.mark.parametrize("count", [0, 1, 80, 81, 350])
def test_decision_survives_a_round_trip(world: World, count: int) -> None:
    assert read_decision(world.cluster, world.batch) is None
    largest = 2**63 - 1
    names = [world.batch.transactional_id(10**6 + number, 99) for number in range(count)]

    decision = world.decide(*(Identity(largest, 2**15 - 1, name) for name in names))

    assert decision == read_decision(world.cluster, world.batch)
    assert decision.is_about(world.batch)
    assert read_decision(world.cluster, MicroBatch("other", 5, world.batch.prefix)) is None
    assert not decision.is_about(MicroBatch("query", 6, world.batch.prefix))


def test_decision_is_withdrawn_if_all_of_it_was_aborted(world: World) -> None:
    transactions = world.prepare(0), world.prepare(1)
    decision = world.decide(*transactions)
    abort(world.cluster, transactions)
    world.prepare(0)
    world.prepare(1)

    with pytest.raises(TransactionsLost, match=r"none of its rows was committed, and it is writ"):
        commit(world.cluster, world.batch.group, decision)

    now = read_decision(world.cluster, world.batch)
    assert now is not None
    assert not now.is_about(world.batch)


def test_partially_written_micro_batch_is_reported(world: World) -> None:
    decision = world.decide(world.prepare(0), world.prepare(1))
    world.prepare(1)

    with pytest.raises(TransactionsLost, match=r"written in part only.* 1 of its 2 transactions"):
        commit(world.cluster, world.batch.group, decision)

    assert [b"0.0"] == world.seen()


def test_earlier_attempt_of_a_task_is_aborted(world: World) -> None:
    world.prepare(0, 0)
    world.prepare(0, 1)
    decision = world.decide(world.prepare(0, 2))
    commit(world.cluster, world.batch.group, decision)
    assert [] == world.seen()

    abort_earlier(world.cluster, world.batch, {0: 2}, world.options)

    assert [b"0.2"] == world.seen()
