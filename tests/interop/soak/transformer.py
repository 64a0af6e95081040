"""
A process that consumes, transforms and produces in transactions, until it is done or killed.

``python -m tests.interop.soak.transformer LIBRARY ARGUMENT...``: see `Task` for the arguments. What
any library raises ends the process; whoever started it starts the next one.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import random
import sys
import traceback
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.interop.soak.task import END, MOST_RECORDS, PARTITIONS, PATIENCE, Ledger, Task

ONE_ABORT_IN = 4
"""
One of so many transactions is aborted, and chance says which.
"""

TRIES = 6

T = TypeVar("T")


class Library(Protocol):
    """
    A client library's consumer and transactional producer, each method one step.
    """

    def start(self) -> int:
        """
        Fence the producer before, and return where it has come to in the source.
        """

    def take(self, first: int, count: int) -> list[bytes]:
        """
        The values of the *count* records of the source from offset *first*, or fewer if one of them
        is the end.
        """

    def begin(self) -> None:
        """
        Begin a transaction.
        """

    def send(self, partition: int, value: bytes) -> None:
        """
        Send in the transaction, and do not wait.
        """

    def send_offset(self, offset: int) -> None:
        """
        The group has come to *offset*, if the transaction is committed.
        """

    def commit(self) -> None:
        """
        Commit what was sent.
        """

    def abort(self) -> None:
        """
        Forget what was sent.
        """


class Librdkafka:
    """
    confluent-kafka.
    """

    def __init__(self, task: Task) -> None:
        common = {
            "bootstrap.servers": task.bootstrap,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
            # By default it forgets a broker that is away for some seconds, but goes on sending the
            # offsets of transactions to the handle that it had of it, for ever (librdkafka 2.16).
            "metadata.recovery.strategy": "none",
        }
        self._topic = task.topic_out
        self._source = TopicPartition(task.topic_in, task.source)
        self._consumer = Consumer(common | {"group.id": task.group, "enable.auto.commit": False})
        self._producer = Producer(
            common | {"transactional.id": task.transactional_id, "linger.ms": 1}
        )

    def start(self) -> int:
        self._producer.init_transactions(PATIENCE)
        [position] = self._consumer.committed([self._source], PATIENCE)
        return max(int(position.offset), 0)

    def take(self, first: int, count: int) -> list[bytes]:
        wanted = TopicPartition(self._source.topic, self._source.partition, first)
        self._consumer.assign([wanted])
        values: list[bytes] = []
        while len(values) < count and END not in values:
            message = self._consumer.poll(PATIENCE)
            if message is not None and message.error() is None:
                values.append(message.value() or b"")
        return values

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, partition: int, value: bytes) -> None:
        self._producer.produce(self._topic, value, partition=partition)

    def send_offset(self, offset: int) -> None:
        position = TopicPartition(self._source.topic, self._source.partition, offset)
        group = self._consumer.consumer_group_metadata()
        self._producer.send_offsets_to_transaction([position], group, PATIENCE)

    def commit(self) -> None:
        self._patiently(self._producer.commit_transaction)

    def abort(self) -> None:
        # It forgets what has no answer yet, and gives the sequence numbers to the next records. If
        # a broker that was killed meanwhile has written the batch, these are taken for the same
        # ones (and lost) or for others out of order, by Apache Kafka too (librdkafka 2.16).
        self._producer.flush(PATIENCE)
        self._patiently(self._producer.abort_transaction)

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


class KafkaPython:
    """
    kafka-python.
    """

    def __init__(self, task: Task) -> None:
        # No type hints, and not needed by the processes of the other libraries.
        from kafka import KafkaConsumer, KafkaProducer  # type: ignore[import-untyped]  # noqa: PLC0415
        from kafka import TopicPartition as Partition  # noqa: PLC0415  # a name that is taken

        self._topic, self._group = task.topic_out, task.group
        self._source = Partition(task.topic_in, task.source)
        self._consumer = KafkaConsumer(
            bootstrap_servers=task.bootstrap, group_id=task.group, enable_auto_commit=False
        )
        self._consumer.assign([self._source])
        self._producer = KafkaProducer(
            bootstrap_servers=task.bootstrap, transactional_id=task.transactional_id
        )
        self._never_forget_a_request()

    def _never_forget_a_request(self) -> None:
        """
        Say that a coordinator is not ready where the library raises that it cannot be reached.

        After the exception its sender looks the coordinator up, but has forgotten the request for
        which it wanted it, whose caller then waits for ever (kafka-python 3.0.12). A node that is
        not ready in time is looked up, and the request is sent later, as Kafka's client does.
        """
        from kafka.errors import KafkaConnectionError  # type: ignore[import-untyped]  # noqa: PLC0415  # as above

        network = self._producer._sender._client
        await_ready = network.await_ready

        def is_ready(node_id: object, timeout_ms: float) -> bool:
            try:
                return bool(await_ready(node_id, timeout_ms=timeout_ms))
            except KafkaConnectionError:
                return False

        network.await_ready = is_ready

    def start(self) -> int:
        self._producer.init_transactions()
        return self._consumer.committed(self._source) or 0

    def take(self, first: int, count: int) -> list[bytes]:
        self._consumer.seek(self._source, first)
        values: list[bytes] = []
        while len(values) < count and END not in values:
            found = self._consumer.poll(1000 * PATIENCE, max_records=count - len(values))
            values.extend(record.value for record in found.get(self._source, ()))
        return values

    def begin(self) -> None:
        self._with_reason(self._producer.begin_transaction)

    def send(self, partition: int, value: bytes) -> None:
        self._with_reason(self._producer.send, self._topic, value, partition=partition)

    def send_offset(self, offset: int) -> None:
        from kafka.structs import OffsetAndMetadata  # type: ignore[import-untyped]  # noqa: PLC0415  # as above

        position = {self._source: OffsetAndMetadata(offset, "", -1)}
        self._with_reason(self._producer.send_offsets_to_transaction, position, self._group)

    def commit(self) -> None:
        self._with_reason(self._producer.commit_transaction)

    def abort(self) -> None:
        self._with_reason(self._producer.abort_transaction)

    def _with_reason(self, step: Callable[..., object], *arguments: Any, **options: Any) -> None:
        from kafka.errors import KafkaError  # noqa: PLC0415  # as above

        try:
            step(*arguments, **options)
        except KafkaError as error:
            # Between two steps the library was told why the transaction is over, and now says only
            # that it cannot go on.
            reason = self._producer._transaction_manager.last_error
            if type(error) is KafkaError and reason is not None:
                raise reason from error
            raise


class AioKafka:
    """
    aiokafka, whose event loop runs during each step.
    """

    def __init__(self, task: Task) -> None:
        # As above.
        from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]  # noqa: PLC0415
        from aiokafka import TopicPartition as Partition  # noqa: PLC0415  # a name that is taken
        from aiokafka.errors import IllegalOperation  # type: ignore[import-untyped]  # noqa: PLC0415

        self._illegal = IllegalOperation
        self._loop = asyncio.new_event_loop()
        self._topic, self._group = task.topic_out, task.group
        self._source = Partition(task.topic_in, task.source)

        async def make() -> None:
            self._consumer = AIOKafkaConsumer(
                bootstrap_servers=task.bootstrap, group_id=task.group, enable_auto_commit=False
            )
            self._producer = AIOKafkaProducer(
                bootstrap_servers=task.bootstrap, transactional_id=task.transactional_id
            )
            await self._producer.start()
            await self._consumer.start()
            self._consumer.assign([self._source])

        self._make = make

    def start(self) -> int:
        self._run(self._make())
        return self._run(self._consumer.committed(self._source)) or 0

    def take(self, first: int, count: int) -> list[bytes]:
        async def take() -> list[bytes]:
            self._consumer.seek(self._source, first)
            values: list[bytes] = []
            while len(values) < count and END not in values:
                values.append((await self._consumer.getone(self._source)).value)
            return values

        return self._loop.run_until_complete(take())

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def send(self, partition: int, value: bytes) -> None:
        self._run(self._producer.send(self._topic, value, partition=partition))

    def send_offset(self, offset: int) -> None:
        position = {self._source: offset}
        self._run(self._producer.send_offsets_to_transaction(position, self._group))

    def commit(self) -> None:
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())

    def _run(self, step: Coroutine[Any, Any, T]) -> T:
        try:
            return self._loop.run_until_complete(asyncio.wait_for(step, PATIENCE))
        except (AssertionError, self._illegal):
            # Between two steps the library was told why the transaction is over, and now says only
            # that it is. The reason is kept with the end of the transaction.
            end = self._producer._txn_manager.wait_for_transaction_end()
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
