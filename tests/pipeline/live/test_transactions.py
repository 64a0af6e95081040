from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from barnabas.pipeline.errors import ClientError, DataLoss, TransactionsLost
from barnabas.pipeline.spark import stream_sink
from barnabas.pipeline.spark.stream_sink import Prepared
from barnabas.pipeline.writing import transactions as module
from barnabas.pipeline.writing.identity import Identity, initialized
from barnabas.pipeline.writing.transactions import (
    MicroBatch,
    abort,
    commit,
    read_decision,
)
from barnabas.storage.topic_partition import TopicPartition
from tests.interop.clients.base import NewRecord
from tests.pipeline.live.sink_world import SOON_S, World
from tests.pipeline.topics import Topic
from tests.support.broker_process import BrokerProcess, wait_for

pytestmark = [pytest.mark.interop, pytest.mark.spark]


@pytest.fixture
def world(broker: BrokerProcess, request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(broker, request.node.name.replace("[", "-").rstrip("]"))
    yield world
    world.cluster.close()


def test_decided_transaction_can_be_committed_repeatedly(world: World) -> None:
    decision = world.decide(world.transactions(1, 2))
    assert [] == world.seen()

    for _ in range(3):
        commit(world.cluster, world.batch.group, decision)

    assert [b"0.1", b"1.2"] == world.seen()


@pytest.mark.parametrize("count", [0, 1, 80, 81, 350])
def test_decision_survives_a_round_trip(world: World, count: int) -> None:
    assert read_decision(world.cluster, world.batch) is None

    decision = world.decide(world.some(count))

    assert decision == read_decision(world.cluster, world.batch)
    assert decision.is_about(world.batch)
    other = MicroBatch("other", 5, world.batch.prefix)
    assert read_decision(world.cluster, other) is None
    assert not decision.is_about(world.batch_of(6))


@pytest.mark.parametrize("same_place", [True, False])
@pytest.mark.parametrize("noted", [0, 1, 2])
@pytest.mark.parametrize("earlier", [None, 1, 200])
def test_crash_between_two_parts_of_a_decision_loses_nothing(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    earlier: int | None,
    noted: int,
    same_place: bool,
) -> None:
    """
    Until the last part is noted the decision before holds, and then the new one, whatever the
    attempts before have left.
    """
    world.topic.grow(2)
    before = None if earlier is None else world.decide(world.some(earlier))
    after = world.batch_of(6)
    with monkeypatch.context() as patch:
        once_more, calls = module._commit, itertools.count()

        def failing(*arguments: object) -> None:
            if next(calls) == noted:
                raise ClientError("the driver dies")
            once_more(*arguments)  # type: ignore[arg-type]

        patch.setattr(module, "_commit", failing)
        with pytest.raises(ClientError, match="dies"):
            world.decide(world.some(201), 6)

    assert before == read_decision(world.cluster, world.batch)
    left = read_decision(world.cluster, after)
    assert left is None or not left.is_about(after)
    place = world.place if same_place else TopicPartition(world.topic.name, 1)
    decision = world.decide(world.some(190), 6, place)
    assert decision == read_decision(world.cluster, after)


def test_decision_is_withdrawn_if_all_of_it_was_aborted(world: World) -> None:
    transactions = world.transactions(1, 2)
    decision = world.decide(transactions)
    abort(world.cluster, transactions)

    with pytest.raises(TransactionsLost, match=r"none of its rows was committed, and it is writ"):
        commit(world.cluster, world.batch.group, decision)

    now = read_decision(world.cluster, world.batch)
    assert now is not None
    assert not now.is_about(world.batch)


def test_partially_written_micro_batch_is_reported(world: World) -> None:
    transactions = world.transactions(1, 2)
    decision = world.decide(transactions)
    abort(world.cluster, transactions[1:])

    with pytest.raises(TransactionsLost, match=r"written in part only.* 1 of its 2 transactions"):
        commit(world.cluster, world.batch.group, decision)

    assert [b"0.1"] == world.seen()


# Attempts.


@pytest.mark.parametrize("seed", range(6))
def test_only_the_attempts_that_spark_takes_are_written(world: World, seed: int) -> None:
    """
    Spark runs a task again when it fails, is slow, or its stage is submitted again, where attempts
    count from 0 again. It takes one of its attempts, which need not be the last.
    """
    chance = random.Random(seed)
    tasks = [0, 1, 2, *chance.choices(range(3), k=4)]
    chance.shuffle(tasks)
    prepared = [world.prepare(task, attempt) for attempt, task in enumerate(tasks, 10)]
    taken = [
        chance.choice([n for n, each in enumerate(tasks) if each == task]) for task in (0, 1, 2)
    ]

    world.writer.commit([prepared[number] for number in taken], 5)

    expected = [b"%d.%d" % (tasks[number], number + 10) for number in taken]
    assert sorted(expected) == sorted(world.seen_and_after())


def test_attempt_that_is_too_late_leaves_nothing_open(world: World) -> None:
    taken = world.prepare(0, 1)

    def rows() -> Iterator[pa.RecordBatch]:
        world.writer.commit([taken], 5)
        yield pa.record_batch({"value": [b"late"]})

    world.prepare(0, 2, rows=rows())

    assert [b"0.1"] == world.seen_and_after()


def test_attempt_that_begins_too_late_aborts_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    It stalls behind its look for a decision, for a whole micro-batch.
    """
    taken, after = world.prepare(0, 10), world.batch_of(6)
    behind: list[Prepared] = []

    def late(*given: Any) -> Identity:
        monkeypatch.setattr(stream_sink, "initialized", initialized)
        world.writer.commit([taken], 5)
        behind.append(world.prepare(0, 21, after))
        return initialized(*given)

    monkeypatch.setattr(stream_sink, "initialized", late)
    world.prepare(0, 11)
    world.writer.commit([*behind], 6)

    assert [b"0.10", b"0.21"] == world.seen_and_after()


def test_transactions_of_a_run_that_died_are_aborted(world: World) -> None:
    for attempt in range(3):
        world.prepare(attempt, 100 + attempt, world.batch_of(5, "old"))
    other = Topic(world.topic.broker, f"{world.topic.name}-1")
    other.transaction([NewRecord(b"other", timestamp_ms=1)], end="leave")

    world.writer.commit([world.prepare(0, 1), world.prepare(1, 2)], 5)

    assert [b"0.1", b"1.2"] == world.seen_and_after()


def test_failed_micro_batch_leaves_nothing_open(world: World) -> None:
    prepared = [world.prepare(0, 1), world.prepare(0, 2), world.prepare(1, 3)]

    world.writer.abort([prepared[0], None], 5)

    assert [] == world.seen_and_after()


def test_topic_created_again_is_noticed_before_the_decision(broker: BrokerProcess) -> None:
    world = World(broker, "recreated-target", timeout_ms=1000)
    prepared = [world.prepare(0, 1)]
    world.topic.recreate()
    prepared.append(world.prepare(1, 2))

    with pytest.raises(DataLoss, match="deleted and created again while micro-batch 5"):
        world.writer.commit([*prepared], 5)
    world.writer.abort([*prepared], 5)
    world.writer.commit([world.prepare(0, 3), world.prepare(1, 4)], 5)

    assert [b"0.3", b"1.4"] == world.seen_and_after()
    world.cluster.close()


def test_micro_batch_is_written_again_if_its_decision_is_gone(world: World) -> None:
    """
    With a topic the broker deletes the offsets committed for it, and so the decision. A task that
    has still read it has written nothing.
    """
    world.decide(world.transactions(1, 2))
    batch = world.batch_of(5, "next run")
    prepared = [world.prepare(0, 3, batch)]
    world.topic.recreate()
    wait_for(lambda: read_decision(world.cluster, batch) is None, "its deletion", SOON_S)
    prepared.append(world.prepare(1, 4, batch))

    with pytest.raises(TransactionsLost, match="that micro-batch 5 is to be committed is gone"):
        world.writer.commit([*prepared], 5)
    world.writer.abort([*prepared], 5)
    world.writer.commit([world.prepare(0, 5, batch), world.prepare(1, 6, batch)], 5)

    assert [b"0.5", b"1.6"] == world.seen_and_after()


def test_attempts_of_different_micro_batches_share_names(world: World) -> None:
    names = []
    for number in range(4):
        batch = world.batch_of(number)
        prepared = [world.prepare(task, 1000 + 3 * number + task, batch) for task in range(3)]
        names.append({each.transaction.transactional_id for each in prepared if each.transaction})
        world.writer.commit([*prepared], number)

    assert [3, 3, 3, 3] == [len(each) for each in names]
    assert names[1] == names[3]
    assert not names[1] & names[2], "an attempt that begins late aborts nothing of the next one"
    assert 12 == len(world.seen_and_after())
