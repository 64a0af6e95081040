"""
One run: three sources are transformed while producers, and the broker, are killed and fenced.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from tests.interop.clients.base import NewRecord
from tests.interop.clients.confluent import Confluent
from tests.interop.soak.task import (
    END,
    FENCED,
    GAVE_UP,
    MOST_RECORDS,
    PARTITIONS,
    Task,
    Transaction,
)
from tests.interop.soak.transforming import Transforming
from tests.support.broker_process import BrokerProcess, wait_for

LONGEST = 240
"""
Seconds that a run may take; it needs a tenth of them where nothing else runs.
"""

AHEAD = 4 * MOST_RECORDS
"""
Records that a source has before a producer at least, while something is about to happen to it.
"""

MOST_LINES = 12
"""
Steps that a producer takes at most before something happens to it.
"""

Command: TypeAlias = Callable[[Task], list[str]]


class Run:
    """
    What happens when is drawn from the seed, and counted in steps of the producers, not in seconds.

    Each of the events strikes a producer that has been stopped in the middle of a transaction, but
    for one, which comes at any time. Sources have an end only when all of this has happened.

    Args:
        commands: for each source, how its processes are started.
    """

    def __init__(
        self, broker: BrokerProcess, seed: int, commands: Sequence[Command], directory: Path
    ) -> None:
        self.topic_in, self.topic_out = f"{directory.name}-in", f"{directory.name}-out"
        self.records = [0] * PARTITIONS
        self.processes: list[list[Transforming]] = [[] for _ in range(PARTITIONS)]
        self.fenced: list[Transforming] = []
        self.gave_up: list[Transforming] = []
        self.broker_kills = 0
        self._broker = broker
        self._seed = seed
        self._commands = commands
        self._chance = random.Random(seed)
        self._directory = directory
        self._deadline = time.monotonic() + LONGEST

    def play(self) -> None:
        """
        Until all sources are transformed.

        Raises:
            AssertionError: they are not, in LONGEST seconds; it tells what each process did last.
        """
        client = Confluent()
        for topic in (self.topic_in, self.topic_out):
            client.create_topic(self._broker.bootstrap, topic, PARTITIONS, {})
        try:
            self._play()
        except TimeoutError as error:
            raise AssertionError(f"seed {self._seed}: {error}\n{self.story()}") from error
        finally:
            for process in self._all():
                process.kill()

    def _play(self) -> None:
        for source in range(PARTITIONS):
            self._feed(source)
            self._start(source)
        events = [self._kill, self._kill_in_transaction, self._kill_broker, self._take_over]
        for event in self._chance.sample(events, len(events)):
            # Over the seeds, the producer of each source is taken over in turn.
            chosen = self._seed if event == self._take_over else self._chance.randrange(PARTITIONS)
            event(chosen % PARTITIONS)
        for source in range(PARTITIONS):
            self._feed(source, least=AHEAD)
            self._send(source, [END])
        self._wait_for(self._is_done, "all to be done")

    # What happens to a source

    def _kill(self, source: int) -> None:
        self._wait_for_steps(source)
        self._newest(source).kill()

    def _kill_in_transaction(self, source: int) -> None:
        self._paused_in_transaction(source).kill()

    def _kill_broker(self, source: int) -> None:
        producer = self._paused_in_transaction(source)
        self._broker.kill()
        self.broker_kills += 1
        producer.resume()
        self._broker.start()

    def _take_over(self, source: int) -> None:
        """
        A producer that was away in the middle of a transaction finds that another one goes on.
        """
        before = self._paused_in_transaction(source)
        self._start(source)
        self._wait_for_steps(source, least=1)
        self._feed(source)
        self.fenced.append(before)
        before.resume()
        self._wait_for(lambda: not before.runs, f"{before.task.name} to be fenced")

    def _paused_in_transaction(self, source: int) -> Transforming:
        self._wait_for_steps(source)
        self._wait_for(lambda: self._paused(source), f"a transaction of source {source}")
        return self._newest(source)

    def _paused(self, source: int) -> bool:
        self._feed(source)
        producer = self._newest(source)
        if not producer.is_in_transaction:
            return False
        producer.pause()
        # It may have gone on between the look and the signal.
        if not producer.is_in_transaction:
            producer.resume()
        return producer.is_in_transaction

    # What they are given

    def _feed(self, source: int, least: int = 2 * MOST_RECORDS) -> None:
        """
        Give a source more records if less than *least* are before its producer.
        """
        begun = [one.end for process in self.processes[source] for one in process.transactions]
        position, first = max(begun, default=0), self.records[source]
        if first - position < least:
            self.records[source] = position + AHEAD
            self._send(source, [b"%d" % value for value in range(first, position + AHEAD)])

    def _send(self, source: int, values: list[bytes]) -> None:
        records = [NewRecord(value, partition=source) for value in values]
        Confluent().produce(self._broker.bootstrap, self.topic_in, records, "none")

    # Processes

    def _start(self, source: int) -> None:
        name = f"{source}-{len(self.processes[source])}"
        task = Task(
            self._broker.bootstrap,
            source,
            name,
            self.topic_in,
            self.topic_out,
            f"{self.topic_out}-group",
            self._chance.randrange(1 << 30),
            self._directory / f"{name}.ledger",
        )
        self.processes[source].append(Transforming(task, self._commands[source](task)))

    def _newest(self, source: int) -> Transforming:
        return self.processes[source][-1]

    def _all(self) -> list[Transforming]:
        return [process for processes in self.processes for process in processes]

    def _is_done(self) -> bool:
        return all(self._newest(source).is_done for source in range(PARTITIONS))

    # Waiting

    def _wait_for_steps(self, source: int, least: int = 0) -> None:
        more = self._chance.randint(least, MOST_LINES)
        wanted = self._steps(source) + more

        def taken() -> bool:
            self._feed(source)
            return self._steps(source) >= wanted

        self._wait_for(taken, f"{more} steps in source {source}")

    def _steps(self, source: int) -> int:
        return sum(len(process.lines) for process in self.processes[source])

    def _wait_for(self, condition: Callable[[], bool], what: str) -> None:
        def holds() -> bool:
            self._replace_ended()
            return condition()

        wait_for(holds, what, self._deadline - time.monotonic())

    def _replace_ended(self) -> None:
        """
        Give a process a successor that was killed, or found no broker to start with.

        So may be fenced the one that has taken over: kafka-python answers a refused record with an
        InitProducerId of the old epoch, which ends the transaction of whoever goes on before it is
        refused too (in Kafka's ``TransactionCoordinator.prepareInitProducerIdTransit`` as well).
        And one of librdkafka may, rarely, not find its way back to a broker that was killed, whose
        successor then has to end its transaction. Nothing else may end a process.
        """
        for source in range(PARTITIONS):
            newest = self._newest(source)
            if newest.runs or newest.is_done:
                continue
            was_taken_over = any(before.task.source == source for before in self.fenced)
            gave_up = newest.failure in GAVE_UP and self.broker_kills > len(self.gave_up)
            if gave_up:
                self.gave_up.append(newest)
            assert (
                newest.was_killed
                or not newest.has_started
                or gave_up
                or (was_taken_over and newest.failure in FENCED)
            ), f"seed {self._seed}: {newest.task.name} has ended\n{self.story()}"
            self._start(source)

    # What came of it

    def transactions(self, source: int) -> list[Transaction]:
        """
        All of all processes of a source, in order.
        """
        return [one for process in self.processes[source] for one in process.transactions]

    def story(self) -> str:
        """
        What each process did last, and what it said in the end.
        """
        return "\n".join(process.story for process in self._all())
