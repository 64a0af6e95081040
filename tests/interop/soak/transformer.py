"""
A process that consumes, transforms and produces in transactions, until it is done or killed.

``python -m tests.interop.soak.transformer LIBRARY ARGUMENT...``: see `Task` for the arguments. What
any library raises ends the process; whoever started it starts the next one.
"""

from __future__ import annotations

import faulthandler
import os
import random
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from aiokafka.errors import IllegalOperation  # type: ignore[import-untyped]  # no type hints
from confluent_kafka import KafkaException
from kafka.errors import (  # type: ignore[import-untyped]  # the same
    IllegalStateError,
    KafkaConnectionError,
    KafkaError,
)
from kafka.net.compat import KafkaNetClient  # type: ignore[import-untyped]  # the same

from tests.interop.clients.sessions import SESSIONS
from tests.interop.soak.task import END, MOST_RECORDS, PARTITIONS, PATIENCE, Ledger, Task
from tests.support.broker_process import wait_for

ONE_ABORT_IN = 4
"""
One of so many transactions is aborted, and chance says which.
"""

TRIES = 6


class Library:
    """
    A client library's consumer and transactional producer, each method one step.
    """

    name: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}
    of_producer: ClassVar[Mapping[str, Any]] = {}
    """
    Further options of the producer.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self.session: Any = SESSIONS[self.name](task.bootstrap)
        self.reader: Any = None
        self.writer: Any = None

    def start(self) -> int:
        """
        Fence the producer before, and return where it has come to in the source.
        """
        task = self._task
        group = {"group_id": task.group, "max_poll_records": MOST_RECORDS}
        self.reader = self.session.reader(task.topic_in, task.source, **group, **self.options)
        name = {"transactional_id": task.transactional_id}
        self.writer = self.session.writer(**name, **self.options, **self.of_producer)
        return self.reader.committed(task.source) or 0

    def take(self, first: int, count: int) -> list[bytes]:
        """
        The values of the *count* records of the source from offset *first*, or fewer if one of them
        is the end.
        """
        self.seek(first)
        values: list[bytes] = []
        while len(values) < count and END not in values:
            values += [record.value or b"" for record in self.reader.poll()]
        return values[:count]

    def seek(self, offset: int) -> None:
        self.reader.seek(self._task.source, offset)

    def begin(self) -> None:
        self.step(self.writer.begin)

    def send(self, partition: int, value: bytes) -> None:
        """
        Send in the transaction, and do not wait.
        """
        send = self.writer.producer.send
        self.step(self.writer.call, send, self._task.topic_out, value, partition=partition)

    def send_offset(self, offset: int) -> None:
        """
        The group has come to *offset*, if the transaction is committed.
        """
        self.step(self.writer.send_offsets, self.reader, {self._task.source: offset})

    def commit(self) -> None:
        self.step(self.writer.commit)

    def abort(self) -> None:
        self.step(self.writer.abort)

    def step(self, function: Callable[..., object], *arguments: Any, **options: Any) -> None:
        """
        Take a step, whose error says why the transaction is over.
        """
        function(*arguments, **options)


class Librdkafka(Library):
    name = "confluent-kafka"
    options: ClassVar[Mapping[str, Any]] = {
        "reconnect_backoff_max_ms": 200,
        # By default it forgets a broker that is away for some seconds, but goes on sending the
        # offsets of transactions to the handle that it had of it, for ever (librdkafka 2.16).
        "metadata_recovery_strategy": "none",
    }

    def seek(self, offset: int) -> None:
        self.reader.consumer.assign([self.reader.part(self._task.source, offset)])

    def send(self, partition: int, value: bytes) -> None:
        self.writer.producer.produce(self._task.topic_out, value, partition=partition)

    def commit(self) -> None:
        self._patiently(self.writer.producer.commit_transaction)

    def abort(self) -> None:
        # It forgets what has no answer yet, and gives the sequence numbers to the next records. If
        # a broker that was killed meanwhile has written the batch, these are taken for the same
        # ones (and lost) or for others out of order, by Apache Kafka too (librdkafka 2.16).
        self.writer.producer.flush(PATIENCE)
        self._patiently(self.writer.producer.abort_transaction)

    def _patiently(self, step: Callable[[float], None]) -> None:
        # A step that ran out of time goes on when it is taken again.
        for tries_left in reversed(range(TRIES)):
            try:
                step(PATIENCE / TRIES)
            except KafkaException as error:
                if not (tries_left and error.args[0].retriable()):
                    raise
            else:
                return


class PatientClient(KafkaNetClient):  # type: ignore[misc]  # no type hints
    """
    Says that a coordinator is not ready where the library raises that it cannot be reached.

    After the exception its sender looks the coordinator up, but has forgotten the request for which
    it wanted it, whose caller then waits for ever (kafka-python 3.0.12). A node that is not ready
    in time is looked up, and the request is sent later, as Kafka's client does.
    """

    def await_ready(self, node_id: object, timeout_ms: float = 30_000) -> bool:
        try:
            return bool(super().await_ready(node_id, timeout_ms=timeout_ms))
        except KafkaConnectionError:
            return False


class KafkaPython(Library):
    name = "kafka-python"
    of_producer: ClassVar[Mapping[str, Any]] = {"kafka_client": PatientClient}

    def step(self, function: Callable[..., object], *arguments: Any, **options: Any) -> None:
        try:
            function(*arguments, **options)
        except KafkaError as error:
            # Between two steps the library was told why the transaction is over, and now says only
            # that it cannot go on. After a refused record it first asks for the next epoch, and
            # has no reason before that is answered.
            manager = self.writer.producer._transaction_manager
            wait_for(lambda: not manager.is_bumping_epoch(), "the next epoch", PATIENCE)
            if type(error) in (KafkaError, IllegalStateError) and manager.last_error is not None:
                raise manager.last_error from error
            raise


class AioKafka(Library):
    name = "aiokafka"

    def step(self, function: Callable[..., object], *arguments: Any, **options: Any) -> None:
        try:
            function(*arguments, **options)
        except (AssertionError, IllegalOperation):
            # Between two steps the library was told why the transaction is over, and now says only
            # that it is. The reason is kept with the end of the transaction.
            end = self.writer.producer._txn_manager.wait_for_transaction_end()
            if end.done():
                end.result()
            raise


LIBRARIES: dict[str, Callable[[Task], Library]] = {
    "librdkafka": Librdkafka,
    "kafka-python": KafkaPython,
    "aiokafka": AioKafka,
}


def transform(library: Library, ledger: Ledger, task: Task) -> None:
    """
    Bring each record of the source to partition value modulo PARTITIONS, under the names of the
    process and the transaction.
    """
    chance = random.Random(task.seed)
    position, number, aborted = library.start(), 0, 0
    ledger.write("started")
    while True:
        if number % ONE_ABORT_IN == 0:
            aborted = number + chance.randrange(ONE_ABORT_IN)
        values = library.take(position, chance.randint(1, MOST_RECORDS))
        end = position + len(values) - (END in values)
        if end == position:
            break
        ledger.write("begin", number, position, end)
        library.begin()
        for value in values[: end - position]:
            text = f"{task.source} {task.name} {number} {int(value)}"
            library.send(int(value) % PARTITIONS, text.encode())
        library.send_offset(end)
        if number == aborted:
            ledger.write("abort", number)
            library.abort()
            ledger.write("aborted", number)
        else:
            ledger.write("commit", number)
            library.commit()
            ledger.write("committed", number)
            position = end
        number += 1
    ledger.write("done")


def reason(error: Exception) -> str:
    """
    The name that the library has for what happened.
    """
    if isinstance(error, KafkaException):
        return str(error.args[0].name())
    return type(error).__name__


if __name__ == "__main__":
    its_task = Task.parse(sys.argv[2:])
    its_ledger = Ledger(its_task.ledger)
    # One that waits for ever says where, before the run loses its patience.
    faulthandler.dump_traceback_later(3 * PATIENCE)
    try:
        transform(LIBRARIES[sys.argv[1]](its_task), its_ledger, its_task)
    except Exception as error:
        # Whatever it was: what is left open now is for the next process to end.
        its_ledger.write("failed", reason(error))
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)
