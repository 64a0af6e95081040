"""
A program that copies numbered records from one topic to another, and the records that have arrived.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.interop.numbered import PARTITIONS, number_in, read_whole
from tests.support.broker_process import BrokerProcess

SOURCE: Final = "numbers"
TARGET: Final = "copies"
PATIENCE_S: Final = 60.0


class Copier(BrokerProcess):
    """
    A process that copies. It is given the address of the broker and the names of both topics.
    """

    name = "the copying program"

    def __init__(
        self, directory: Path, broker: BrokerProcess, program: Sequence[str], *, may_end: bool
    ) -> None:
        """
        Args:
            may_end: whether it is started again when it has ended, as a supervisor does.
        """
        super().__init__(directory, environment={"PYTHONPATH": "", "PYTHONUNBUFFERED": "1"})
        self._broker = broker
        self._program = program
        self._may_end = may_end

    def command(self) -> list[str]:
        return [*self._program, self._broker.bootstrap, SOURCE, TARGET]

    def is_ready(self) -> bool:
        return True

    def supervise(self) -> None:
        """
        Start it again if it has ended.

        Raises:
            AssertionError: it may not end.
        """
        if not self.is_running:
            assert self._may_end, f"{self.name} has ended by itself"
            self.start()


class Copies:
    """
    The records of the second topic, as a reader of committed records sees them.
    """

    def __init__(self, bootstrap: str, copier: Copier) -> None:
        self.counts: Counter[int] = Counter()
        self._bootstrap = bootstrap
        self._copier = copier
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(TARGET, number, 0) for number in range(PARTITIONS)])

    def close(self) -> None:
        self._consumer.close()

    def wait_for_more(self, count: int) -> None:
        """
        Wait until that many numbers have arrived that had not yet.
        """
        goal = len(self.counts) + count
        self._wait(lambda: len(self.counts) >= goal)
        assert len(self.counts) >= goal, f"no more than {len(self.counts)} copies of {goal}"

    def wait_for_all(self, numbers: set[int]) -> None:
        self._wait(lambda: numbers <= self.counts.keys())
        missing = sorted(numbers - self.counts.keys())
        if missing:
            in_source = set(read_whole(self._bootstrap, SOURCE))
            in_target = set(read_whole(self._bootstrap, TARGET))
            raise AssertionError(
                f"{len(missing)} are not copied, the first of them {missing[:20]}; "
                f"the source lacks {sorted(set(missing) - in_source)[:20]}, "
                f"and the reader missed {sorted(set(missing) & in_target)[:20]}"
            )

    def _wait(self, is_reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_reached() and time.monotonic() < deadline:
            self._copier.supervise()
            for message in self._consumer.consume(1000, 0.05):
                error = message.error()
                if error is None:
                    self.counts[number_in(message)] += 1
                assert error is None or error.code() != KafkaError._AUTO_OFFSET_RESET, error
