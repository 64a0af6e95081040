"""
The sink of a stream under random faults: each row is committed exactly once, and no transaction
stays open.

A history plays Spark: it runs the tasks of micro-batches in attempts that fail, are repeated and
overlap, takes one attempt of each task, and lets the driver die between any two requests. What is
written must be the rows of all micro-batches, which a list knows. The broker is a real one.

``BARNABAS_HISTORIES=200`` plays more of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from barnabas.client.connection import Connection
from barnabas.client.errors import ClientError, Disconnected
from barnabas.pipeline.spark.stream_sink import Prepared
from barnabas.pipeline.writing import transactions
from barnabas.pipeline.writing.transactions import MicroBatch
from tests.interop.conftest import new_broker
from tests.pipeline.live.sink_world import World
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.spark]

HISTORIES: Final = int(os.environ.get("BARNABAS_HISTORIES", "20"))
SHORT: Final = 4
"""How many of them play in every run of the tests."""
_LOST: Final = {
    "AddPartitionsToTxnRequest",
    "EndTxnRequest",
    "InitProducerIdRequest",
    "ListTransactionsRequest",
    "OffsetCommitRequest",
    "OffsetFetchRequest",
    "ProduceRequest",
}
"""Requests before or behind which a process may die, and whose answers may be lost."""


class Killed(BaseException):
    """
    A process dies, and nothing of it is tidied up.
    """


class Faults:
    """
    The faults of requests of this process.
    """

    def __init__(self, patch: pytest.MonkeyPatch, chance: random.Random) -> None:
        self._chance = chance
        self._left: int | None = None
        self.before: Callable[[], None] = lambda: None
        """Called before each request; it may raise."""
        self.lost = 0.0
        """How many answers of a hundred do not arrive: the connection is closed behind them."""
        self._send, self._receive = Connection.send, Connection.receive
        faults = self

        def send(connection: Connection, request: Any) -> None:
            faults._sent(connection, request)

        def receive(connection: Connection) -> Any:
            return faults._received(connection)

        patch.setattr(Connection, "send", send)
        patch.setattr(Connection, "receive", receive)

    @contextmanager
    def kill(self, share: float, requests: int) -> Iterator[None]:
        """
        The process dies in a *share* of the cases, at one of so many *requests*.
        """
        before = self._left
        dies = self._chance.random() < share
        self._left = self._chance.randrange(requests) if dies else None
        try:
            yield
        finally:
            self._left = before

    def _sent(self, connection: Connection, request: Any) -> None:
        self.before()
        dies = False
        if self._left is not None and type(request).__name__ in _LOST:
            self._left -= 1
            dies = self._left < 0
        if dies and self._chance.random() < 0.5:
            raise Killed
        self._send(connection, request)
        if dies:
            if type(request).__name__ != "ProduceRequest":
                self._receive(connection)
            raise Killed

    def _received(self, connection: Connection) -> Any:
        answer, request = self._receive(connection)
        if type(request).__name__ in _LOST and self._chance.random() < self.lost / 100:
            connection.close()
            raise Disconnected("The answer is lost.")
        return answer, request


class Spark:
    """
    The driver and the tasks of one query.
    """

    def __init__(self, world: World, chance: random.Random, faults: Faults) -> None:
        self._world = world
        self._chance = chance
        self._faults = faults
        self._attempts = 0
        self._runs = 0
        self.sent: list[bytes] = []

    def micro_batch(self, number: int, tasks: int, faulty: bool = True) -> None:
        """
        Run a micro-batch until it is noted in the checkpoint.
        """
        rows = [b"%d.%d" % (number, row) for row in range(self._chance.randint(1, 3 * tasks))]
        self.sent += rows
        while True:
            batch = self._world.batch_of(number, f"run {self._runs}")
            shares: list[list[bytes]] = [[] for _ in range(tasks)]
            for row in rows:
                self._chance.choice(shares).append(row)
            try:
                self._run(batch, shares, 1.0 if faulty else 0.0)
            except Killed:
                self._restart()
            else:
                return

    def _restart(self) -> None:
        self._runs += 1
        if self._chance.random() < 0.5:
            # Another application counts from 0 again.
            self._attempts = 0

    def _happens(self, share: float) -> bool:
        return self._chance.random() < share

    def _tasks(self, batch: MicroBatch, shares: list[list[bytes]], faulty: float) -> list[Prepared]:
        """
        Run all tasks, and take an attempt of each.
        """
        finished: list[list[Prepared]] = [[] for _ in shares]
        todo = [*range(len(shares))]
        # Some tasks are run more often: their stage was submitted again, or they are slow.
        todo += [task for task in todo if self._happens(0.4 * faulty)]
        self._chance.shuffle(todo)
        while todo:
            task = todo.pop()
            try:
                with self._faults.kill(0.2 * faulty, 8):
                    finished[task].append(self._attempt(batch, task, shares[task]))
            except Killed:
                if not finished[task] and task not in todo:
                    todo.append(task)
            if self._happens(0.02 * faulty):
                raise Killed
        return [self._chance.choice(each) for each in finished]

    def _run(self, batch: MicroBatch, shares: list[list[bytes]], faulty: float) -> None:
        taken = self._tasks(batch, shares, faulty)
        if self._happens(0.1 * faulty):
            self._world.writer.abort([*taken[1:], None], batch.batch_id)
            raise Killed
        ended = False

        def end() -> None:
            nonlocal ended
            ended = True
            with self._faults.kill(0.3 * faulty, 4 * len(shares)):
                try:
                    self._world.writer.commit([*taken], batch.batch_id)
                except ClientError as error:
                    raise AssertionError("the driver fails") from error

        if self._happens(0.3 * faulty):
            # An attempt that is not taken writes when the driver is done. It may be fenced.
            with suppress(ClientError):
                self._attempt(batch, 0, [b"late"], end)
        if not ended:
            end()
        if self._happens(0.1 * faulty):
            # Before the checkpoint has the commit.
            raise Killed

    def _attempt(
        self,
        batch: MicroBatch,
        task: int,
        values: list[bytes],
        meanwhile: Callable[[], None] = lambda: None,
    ) -> Prepared:
        self._attempts += self._chance.choice((1, 1, 3))

        def rows() -> Iterator[pa.RecordBatch]:
            meanwhile()
            yield pa.record_batch({"value": pa.array(values, pa.binary())})

        return self._world.prepare(task, self._attempts, batch, rows())


def play(
    world: World, chance: random.Random, faults: Faults, *, micro_batches: int, tasks: int
) -> None:
    spark = Spark(world, chance, faults)
    for number in range(micro_batches):
        faults.lost = chance.choice((0.0, 0.0, 3.0))
        spark.micro_batch(number, chance.randint(1 + tasks // 2, tasks))
        faults.lost = 0.0
        if chance.random() < 0.3:
            assert sorted(spark.sent) == sorted(world.seen_and_after())
            spark.sent.append(b"after")
    spark.micro_batch(micro_batches, 1, faulty=False)

    assert sorted(spark.sent) == sorted(world.seen_and_after())
    world.cluster.close()


@pytest.mark.parametrize(
    "seed",
    [pytest.param(seed, marks=[pytest.mark.prove] * (seed >= SHORT)) for seed in range(HISTORIES)],
)
def test_each_row_is_committed_once_whatever_fails(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    # Three transactions make two parts of a decision, as else 81 would.
    monkeypatch.setattr(transactions, "_ENTRIES", 2)
    world = World(broker, f"history-{seed}")
    play(world, chance, Faults(monkeypatch, chance), micro_batches=5, tasks=5)


@pytest.mark.prove
def test_each_row_of_many_tasks_is_committed_once(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random("many")
    world = World(broker, "history-many")
    play(world, chance, Faults(monkeypatch, chance), micro_batches=2, tasks=164)


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(2))
def test_each_row_is_committed_once_by_a_broker_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(transactions, "_ENTRIES", 2)
    with new_broker(tmp_path) as broker:

        def kill_sometimes() -> None:
            if chance.random() < 0.01:
                broker.kill()
                broker.start()

        world = World(broker, f"history-{seed}")
        faults = Faults(monkeypatch, chance)
        faults.before = kill_sometimes
        play(world, chance, faults, micro_batches=4, tasks=4)
