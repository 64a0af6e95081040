"""
Long-lived clients of each library behind one interface, so that one scenario runs with all of them.

``base.Client`` opens a client for each call; a `Session` keeps producers, consumers and the admin
client open, which transactions and positions need.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import aiokafka  # type: ignore[import-untyped]  # the library ships no type hints
import aiokafka.admin as aio_admin  # type: ignore[import-untyped]  # the same
import aiokafka.errors as aio_errors  # type: ignore[import-untyped]  # the same
import confluent_kafka as confluent
import kafka  # type: ignore[import-untyped]  # the same
import kafka.admin as python_admin  # type: ignore[import-untyped]  # the same
import kafka.errors as python_errors  # type: ignore[import-untyped]  # the same
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic
from kafka.structs import OffsetAndMetadata  # type: ignore[import-untyped]  # the same

PATIENCE = 60.0
"""
Seconds after which a client that still waits has failed.
"""
ANY_PARTITION = -1
QUIET = 0.3
"""
Seconds without a record after which a consumer is taken to be at the end.
"""
T = TypeVar("T")


class Sent(NamedTuple):
    """
    Where a record was stored, and the timestamp that the broker returned.
    """

    partition: int
    offset: int
    timestamp_ms: int


class Writer(Protocol):
    """
    A producer.
    """

    def send(
        self,
        topic: str,
        values: Sequence[bytes],
        *,
        key: bytes | None = None,
        partition: int | None = 0,
        timestamp_ms: int | None = None,
    ) -> list[Sent]:
        """
        Send *values* in order and wait for all acknowledgements.

        Args:
            partition: `None` leaves the choice to the library.
        """

    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def send_offset(self, reader: Reader, topic: str, offset: int) -> None:
        """
        Add the offset of partition 0 to the transaction, on behalf of the reader's group.
        """


class Reader(Protocol):
    """
    A consumer; a partition is given by its number in the one topic that it reads.
    """

    def poll(self) -> list[tuple[int, bytes]]:
        """
        Partition and value of the records that arrive within a short time.
        """

    def assigned(self) -> set[int]: ...
    def position(self, partition: int) -> int: ...
    def seek(self, partition: int, offset: int) -> None: ...
    def seek_to_beginning(self, partition: int) -> None: ...
    def pause(self, partition: int) -> None: ...
    def resume(self, partition: int) -> None: ...
    def committed(self, partition: int) -> int | None: ...
    def commit(self, partition: int, offset: int) -> None: ...
    def at_time(self, partition: int, timestamp_ms: int) -> int | None:
        """
        The first offset at or after a time, or `None`.
        """

    def bounds(self, partition: int) -> tuple[int, int]: ...
    def close(self) -> None: ...


class Session(ExitStack):
    """
    The clients of one library for one broker; as a context it closes all of them.
    """

    name: str
    errors: type[Exception]
    polls_as_member: ClassVar[bool] = True
    """
    Whether a member of a group may poll for a fraction of a second at a time.
    """
    many: ClassVar[int] = 1000
    """
    Records that the library sends and reads within a second or so.
    """
    no_offset: ClassVar[int | type[Exception]]
    """
    Code or type of the error for a group without a committed offset and a reset policy.
    """
    out_of_range: ClassVar[int | type[Exception]]
    """
    The same for an offset beyond the end.
    """

    def __init__(self, bootstrap: str) -> None:
        super().__init__()
        self.bootstrap = bootstrap

    def code(self, error: Exception) -> int:
        """
        The error code of the protocol.
        """
        return int(getattr(error, "errno"))  # noqa: B009  # untyped

    def is_fenced(self, error: Exception) -> bool:
        """
        Whether an error reports a later producer with the same transactional id, if the library
        has a separate error for it.
        """
        return isinstance(error, self.errors)

    def create(
        self,
        topic: str,
        partitions: int = 1,
        replicas: int = 1,
        *,
        validate_only: bool = False,
        **configs: str,
    ) -> None:
        """
        Create a topic; dots in names of configs are underscores.
        """
        raise NotImplementedError

    def delete(self, topic: str) -> None:
        raise NotImplementedError

    def topics(self) -> set[str]:
        raise NotImplementedError

    def partitions(self, topic: str) -> int:
        raise NotImplementedError

    def add_partitions(self, topic: str, total: int) -> None:
        raise NotImplementedError

    def delete_records(self, topic: str, before: int) -> None:
        """
        Delete the records of partition 0 below an offset.
        """
        raise NotImplementedError

    def writer(
        self, transactional_id: str | None = None, timeout_ms: int = 60_000, acks: int | str = "all"
    ) -> Writer:
        raise NotImplementedError

    def reader(
        self,
        topic: str,
        *partitions: int,
        group: str | None = None,
        committed: bool = False,
        auto_commit: bool = False,
        reset: str = "earliest",
        session_timeout_ms: int = 10_000,
    ) -> Reader:
        """
        A consumer with these partitions, or without *partitions* a member of *group*.
        """
        raise NotImplementedError

    @contextmanager
    def refuses(
        self, kind: int | type[Exception] | None = None
    ) -> Iterator[pytest.ExceptionInfo[Exception]]:
        """
        Expect an error of the library: with a code, of a type, or any.
        """
        with pytest.raises(kind if isinstance(kind, type) else self.errors) as refused:
            yield refused
        if isinstance(kind, int):
            assert kind == self.code(refused.value), repr(refused.value)


def values(reader: Reader, count: int, partition: int | None = None) -> list[bytes]:
    """
    The next *count* values, of one partition or of all; no more may come with them.
    """
    deadline = time.monotonic() + PATIENCE
    seen: list[bytes] = []
    while len(seen) < count:
        assert time.monotonic() < deadline, f"{len(seen)} of {count} records"
        seen += [value for at, value in reader.poll() if partition in (None, at)]
    return seen


def nothing_comes(reader: Reader) -> bool:
    deadline = time.monotonic() + QUIET
    while time.monotonic() < deadline:
        if reader.poll():
            return False
    return True


class Confluent(Session):
    """
    confluent-kafka, which is librdkafka in C.
    """

    name = "confluent-kafka"
    errors = confluent.KafkaException
    many = 10_000
    no_offset = out_of_range = confluent.KafkaError._AUTO_OFFSET_RESET

    @property
    def _conf(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.bootstrap, "log_level": 0}

    @cached_property
    def _admin(self) -> AdminClient:
        # Its futures fail once nobody refers to it.
        return AdminClient(self._conf)

    def code(self, error: Exception) -> int:
        return int(error.args[0].code())

    def is_fenced(self, error: Exception) -> bool:
        return self.code(error) == confluent.KafkaError._FENCED and bool(error.args[0].fatal())

    def create(
        self,
        topic: str,
        partitions: int = 1,
        replicas: int = 1,
        *,
        validate_only: bool = False,
        **configs: str,
    ) -> None:
        new = NewTopic(topic, partitions, replicas, config=_dotted(configs))
        done = self._admin.create_topics([new], validate_only=validate_only)
        done[topic].result(PATIENCE)

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(PATIENCE)

    def topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=PATIENCE).topics)

    def partitions(self, topic: str) -> int:
        return len(self._admin.list_topics(topic, timeout=PATIENCE).topics[topic].partitions)

    def add_partitions(self, topic: str, total: int) -> None:
        self._admin.create_partitions([NewPartitions(topic, total)])[topic].result(PATIENCE)

    def delete_records(self, topic: str, before: int) -> None:
        part = confluent.TopicPartition(topic, 0, before)
        self._admin.delete_records([part])[part].result(PATIENCE)

    def writer(
        self, transactional_id: str | None = None, timeout_ms: int = 60_000, acks: int | str = "all"
    ) -> Writer:
        # Small batches, so that several requests are in flight.
        options: dict[str, Any] = {"acks": acks, "batch.num.messages": 100}
        options["enable.idempotence"] = acks == "all"
        if transactional_id is not None:
            options |= {"transactional.id": transactional_id, "transaction.timeout.ms": timeout_ms}
            options |= {"message.timeout.ms": timeout_ms}
        producer = confluent.Producer(self._conf | options)
        if transactional_id is not None:
            producer.init_transactions(PATIENCE)
        return _ConfluentWriter(producer)

    def reader(
        self,
        topic: str,
        *partitions: int,
        group: str | None = None,
        committed: bool = False,
        auto_commit: bool = False,
        reset: str = "earliest",
        session_timeout_ms: int = 10_000,
    ) -> Reader:
        consumer = confluent.Consumer(
            self._conf
            | {
                "group.id": group or "unused",
                "auto.offset.reset": "error" if reset == "none" else reset,
                "enable.auto.commit": auto_commit,
                "auto.commit.interval.ms": 3_600_000,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "session.timeout.ms": session_timeout_ms,
                "max.poll.interval.ms": max(300_000, session_timeout_ms),
                "heartbeat.interval.ms": 50,
            }
        )
        reader = _ConfluentReader(consumer, topic)
        self.callback(reader.close)
        if partitions:
            consumer.assign([confluent.TopicPartition(topic, each) for each in partitions])
        else:
            consumer.subscribe([topic])
        return reader


class _ConfluentWriter:
    def __init__(self, producer: confluent.Producer) -> None:
        self._producer = producer

    def send(
        self,
        topic: str,
        values: Sequence[bytes],
        *,
        key: bytes | None = None,
        partition: int | None = 0,
        timestamp_ms: int | None = None,
    ) -> list[Sent]:
        sent: list[Sent] = []
        failed: list[confluent.KafkaError] = []

        def delivered(error: confluent.KafkaError | None, message: confluent.Message) -> None:
            if error is not None:
                failed.append(error)
                return
            place = message.partition() or 0, message.offset() or 0
            sent.append(Sent(*place, message.timestamp()[1]))

        at = ANY_PARTITION if partition is None else partition
        for value in values:
            when = 0 if timestamp_ms is None else timestamp_ms
            self._producer.produce(
                topic, value, key, on_delivery=delivered, timestamp=when, partition=at
            )
        assert 0 == self._producer.flush(PATIENCE)
        if failed:
            raise confluent.KafkaException(failed[0])
        return sent

    def begin(self) -> None:
        self._producer.begin_transaction()

    def commit(self) -> None:
        self._producer.commit_transaction(PATIENCE)

    def abort(self) -> None:
        self._producer.abort_transaction(PATIENCE)

    def send_offset(self, reader: Reader, topic: str, offset: int) -> None:
        assert isinstance(reader, _ConfluentReader)
        group = reader.consumer.consumer_group_metadata()
        part = confluent.TopicPartition(topic, 0, offset)
        self._producer.send_offsets_to_transaction([part], group, PATIENCE)


class _ConfluentReader:
    def __init__(self, consumer: confluent.Consumer, topic: str) -> None:
        self.consumer, self._topic = consumer, topic

    def _part(self, partition: int, offset: int = -1001) -> confluent.TopicPartition:
        return confluent.TopicPartition(self._topic, partition, offset)

    def poll(self) -> list[tuple[int, bytes]]:
        message = self.consumer.poll(0.1)
        if message is None:
            return []
        error = message.error()
        if error is not None:
            raise confluent.KafkaException(error)
        return [(message.partition() or 0, bytes(message.value() or b""))]

    def assigned(self) -> set[int]:
        return {part.partition for part in self.consumer.assignment()}

    def position(self, partition: int) -> int:
        return self.consumer.position([self._part(partition)])[0].offset

    def seek(self, partition: int, offset: int) -> None:
        self.consumer.seek(self._part(partition, offset))

    def seek_to_beginning(self, partition: int) -> None:
        self.seek(partition, confluent.OFFSET_BEGINNING)

    def pause(self, partition: int) -> None:
        self.consumer.pause([self._part(partition)])

    def resume(self, partition: int) -> None:
        self.consumer.resume([self._part(partition)])

    def committed(self, partition: int) -> int | None:
        found = self.consumer.committed([self._part(partition)], PATIENCE)[0].offset
        return None if found < 0 else found

    def commit(self, partition: int, offset: int) -> None:
        self.consumer.commit(offsets=[self._part(partition, offset)], asynchronous=False)

    def at_time(self, partition: int, timestamp_ms: int) -> int | None:
        wanted = [self._part(partition, timestamp_ms)]
        found = self.consumer.offsets_for_times(wanted, PATIENCE)[0].offset
        return None if found < 0 else found

    def bounds(self, partition: int) -> tuple[int, int]:
        first, end = self.consumer.get_watermark_offsets(self._part(partition), PATIENCE) or (0, 0)
        return first, end

    def close(self) -> None:
        self.consumer.close()


class KafkaPython(Session):
    """
    kafka-python.
    """

    name = "kafka-python"
    errors = python_errors.KafkaError
    no_offset = python_errors.NoOffsetForPartitionError
    out_of_range = python_errors.OffsetOutOfRangeError
    # kafka-python 3.0.12 sometimes never returns from it, with Apache Kafka as well.
    polls_as_member = False

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._admin = python_admin.KafkaAdminClient(bootstrap_servers=bootstrap)
        self.callback(self._admin.close)

    def code(self, error: Exception) -> int:
        """
        Of an error that the producer did not expect, its text has the code.
        """
        found = re.search(r"\[Error (\d+)\]", str(error))
        return int(found[1]) if found else super().code(error)

    def create(
        self,
        topic: str,
        partitions: int = 1,
        replicas: int = 1,
        *,
        validate_only: bool = False,
        **configs: str,
    ) -> None:
        new = python_admin.NewTopic(topic, partitions, replicas, topic_configs=_dotted(configs))
        self._admin.create_topics([new], validate_only=validate_only)

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])

    def topics(self) -> set[str]:
        return set(self._admin.list_topics())

    def partitions(self, topic: str) -> int:
        return len(self._admin.describe_topics([topic])[0]["partitions"])

    def add_partitions(self, topic: str, total: int) -> None:
        self._admin.create_partitions({topic: python_admin.NewPartitions(total)})

    def delete_records(self, topic: str, before: int) -> None:
        self._admin.delete_records({kafka.TopicPartition(topic, 0): before})

    def writer(
        self, transactional_id: str | None = None, timeout_ms: int = 60_000, acks: int | str = "all"
    ) -> Writer:
        options: dict[str, Any] = {"acks": acks, "enable_idempotence": acks == "all"}
        if transactional_id is not None:
            options["transactional_id"] = transactional_id
            options["transaction_timeout_ms"] = timeout_ms
        producer = kafka.KafkaProducer(bootstrap_servers=self.bootstrap, **options)
        self.callback(producer.close, timeout=1)
        if transactional_id is not None:
            producer.init_transactions()
        return _PythonWriter(producer, lambda call: call())

    def reader(
        self,
        topic: str,
        *partitions: int,
        group: str | None = None,
        committed: bool = False,
        auto_commit: bool = False,
        reset: str = "earliest",
        session_timeout_ms: int = 10_000,
    ) -> Reader:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            **_python_options(group, committed, auto_commit, reset, session_timeout_ms),
        )
        reader = _PythonReader(consumer, topic, kafka.TopicPartition, lambda call: call(), group)
        self.callback(reader.close)
        reader.begin(partitions)
        return reader


def _python_options(
    group: str | None, committed: bool, auto_commit: bool, reset: str, session_timeout_ms: int
) -> dict[str, Any]:
    """
    Options of a consumer that kafka-python and aiokafka spell alike.
    """
    return {
        "group_id": group,
        "auto_offset_reset": reset,
        "enable_auto_commit": auto_commit,
        "auto_commit_interval_ms": 3_600_000,
        "isolation_level": "read_committed" if committed else "read_uncommitted",
        "session_timeout_ms": session_timeout_ms,
        "heartbeat_interval_ms": 300,
        "max_poll_records": 1,
    }


class _PythonWriter:
    """
    A producer of kafka-python, and with *wait* for its coroutines one of aiokafka.
    """

    def __init__(self, producer: Any, wait: Callable[[Callable[[], Any]], Any]) -> None:
        self._producer, self._wait = producer, wait

    def send(
        self,
        topic: str,
        values: Sequence[bytes],
        *,
        key: bytes | None = None,
        partition: int | None = 0,
        timestamp_ms: int | None = None,
    ) -> list[Sent]:
        futures = [
            self._wait(
                partial(
                    self._producer.send,
                    topic,
                    value,
                    key=key,
                    partition=partition,
                    timestamp_ms=timestamp_ms,
                )
            )
            for value in values
        ]
        answers = [self._result(future) for future in futures]
        return [Sent(each.partition, each.offset, each.timestamp) for each in answers if each]

    def _result(self, future: Any) -> Any:
        return future.get(PATIENCE) if hasattr(future, "get") else self._wait(lambda: future)

    def begin(self) -> None:
        self._wait(self._producer.begin_transaction)

    def commit(self) -> None:
        self._wait(self._producer.commit_transaction)

    def abort(self) -> None:
        self._wait(self._producer.abort_transaction)

    def send_offset(self, reader: Reader, topic: str, offset: int) -> None:
        assert isinstance(reader, _PythonReader)
        offsets = {reader.part(0): reader.meta(offset)}
        self._wait(partial(self._producer.send_offsets_to_transaction, offsets, reader.group))


class _PythonReader:
    """
    A consumer of kafka-python, and with *wait* for its coroutines one of aiokafka.
    """

    def __init__(
        self,
        consumer: Any,
        topic: str,
        kind: Callable[[str, int], Any],
        wait: Callable[[Callable[[], Any]], Any],
        group: str | None = None,
    ) -> None:
        self.consumer, self._topic, self._kind, self._wait = consumer, topic, kind, wait
        self.group = group
        self._closed = False

    def part(self, partition: int) -> Any:
        return self._kind(self._topic, partition)

    def meta(self, offset: int) -> Any:
        return (
            offset if self._kind is aiokafka.TopicPartition else OffsetAndMetadata(offset, "", -1)
        )

    def begin(self, partitions: Sequence[int]) -> None:
        if partitions:
            self._wait(lambda: self.consumer.assign([self.part(each) for each in partitions]))
        else:
            self.consumer.subscribe([self._topic])

    def poll(self) -> list[tuple[int, bytes]]:
        poll = getattr(self.consumer, "poll", None) or self.consumer.getmany
        batches = self._wait(lambda: poll(timeout_ms=100))
        return [(each.partition, each.value) for batch in batches.values() for each in batch]

    def assigned(self) -> set[int]:
        return {part.partition for part in self.consumer.assignment()}

    def position(self, partition: int) -> int:
        return int(self._wait(lambda: self.consumer.position(self.part(partition))))

    def seek(self, partition: int, offset: int) -> None:
        self._wait(lambda: self.consumer.seek(self.part(partition), offset))

    def seek_to_beginning(self, partition: int) -> None:
        self._wait(lambda: self.consumer.seek_to_beginning(self.part(partition)))

    def pause(self, partition: int) -> None:
        self._wait(lambda: self.consumer.pause(self.part(partition)))

    def resume(self, partition: int) -> None:
        self._wait(lambda: self.consumer.resume(self.part(partition)))

    def committed(self, partition: int) -> int | None:
        found = self._wait(lambda: self.consumer.committed(self.part(partition)))
        return None if found is None else int(found)

    def commit(self, partition: int, offset: int) -> None:
        self._wait(lambda: self.consumer.commit({self.part(partition): self.meta(offset)}))

    def at_time(self, partition: int, timestamp_ms: int) -> int | None:
        part = self.part(partition)
        found = self._wait(lambda: self.consumer.offsets_for_times({part: timestamp_ms}))[part]
        return None if found is None else int(found.offset)

    def bounds(self, partition: int) -> tuple[int, int]:
        part = self.part(partition)
        first = self._wait(lambda: self.consumer.beginning_offsets([part]))[part]
        return int(first), int(self._wait(lambda: self.consumer.end_offsets([part]))[part])

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            stop = getattr(self.consumer, "stop", None) or self.consumer.close
            self._wait(stop)


class AioKafka(Session):
    """
    aiokafka; its event loop runs in a thread, so that members keep up their heartbeats.
    """

    name = "aiokafka"
    errors = aio_errors.KafkaError
    no_offset = aio_errors.NoOffsetForPartitionError
    out_of_range = aio_errors.OffsetOutOfRangeError

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()
        self.callback(self._loop.close)
        self.callback(thread.join)
        self.callback(self._loop.call_soon_threadsafe, self._loop.stop)

    def _wait(self, call: Callable[[], Any]) -> Any:
        """
        The result of a call in the loop, awaited if it is a coroutine.
        """

        async def run() -> Any:
            found = call()
            if asyncio.iscoroutine(found):
                # A future in a tuple: the caller awaits it later.
                return (await found,)
            return (await found,) if asyncio.isfuture(found) else (found,)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(PATIENCE)[0]

    def is_fenced(self, error: Exception) -> bool:
        return isinstance(error, aio_errors.ProducerFenced)

    def _made(self, make: Callable[[], T], stop: str) -> T:
        """
        A started client; its constructor wants a running loop.
        """

        async def start() -> T:
            made: Any = make()
            try:
                await made.start()
            except BaseException:
                await getattr(made, stop)()
                raise
            return made  # type: ignore[no-any-return]  # what *make* returns

        return self._wait(start)  # type: ignore[no-any-return]  # the same

    def _administer(self, ask: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        admin: Any = self._made(
            lambda: aio_admin.AIOKafkaAdminClient(bootstrap_servers=self.bootstrap), "close"
        )
        try:
            answer = self._wait(lambda: ask(admin))
        finally:
            self._wait(admin.close)
        errors: Any = getattr(answer, "topic_errors", None) or getattr(
            answer, "topic_error_codes", []
        )
        for _, code, *_ in errors:
            if code:
                raise aio_errors.for_code(code)
        return answer

    def create(
        self,
        topic: str,
        partitions: int = 1,
        replicas: int = 1,
        *,
        validate_only: bool = False,
        **configs: str,
    ) -> None:
        new = aio_admin.NewTopic(topic, partitions, replicas, topic_configs=_dotted(configs))
        self._administer(lambda admin: admin.create_topics([new], validate_only=validate_only))

    def delete(self, topic: str) -> None:
        self._administer(lambda admin: admin.delete_topics([topic]))

    def topics(self) -> set[str]:
        return set(self._administer(lambda admin: admin.list_topics()))

    def partitions(self, topic: str) -> int:
        [described] = self._administer(lambda admin: admin.describe_topics([topic]))
        return len(described["partitions"])

    def add_partitions(self, topic: str, total: int) -> None:
        wanted = {topic: aio_admin.NewPartitions(total)}
        self._administer(lambda admin: admin.create_partitions(wanted))

    def delete_records(self, topic: str, before: int) -> None:
        wanted = {
            aiokafka.TopicPartition(topic, 0): aio_admin.RecordsToDelete(before_offset=before)
        }
        self._administer(lambda admin: admin.delete_records(wanted))

    def writer(
        self, transactional_id: str | None = None, timeout_ms: int = 60_000, acks: int | str = "all"
    ) -> Writer:
        options: dict[str, Any] = {"acks": acks}
        if transactional_id is not None:
            options = {"transactional_id": transactional_id, "transaction_timeout_ms": timeout_ms}
        producer: Any = self._made(
            lambda: aiokafka.AIOKafkaProducer(bootstrap_servers=self.bootstrap, **options), "stop"
        )
        self.callback(lambda: self._wait(producer.stop))
        return _PythonWriter(producer, self._wait)

    def reader(
        self,
        topic: str,
        *partitions: int,
        group: str | None = None,
        committed: bool = False,
        auto_commit: bool = False,
        reset: str = "earliest",
        session_timeout_ms: int = 10_000,
    ) -> Reader:
        options = _python_options(group, committed, auto_commit, reset, session_timeout_ms)
        topics = () if partitions else (topic,)
        consumer: Any = self._made(
            lambda: aiokafka.AIOKafkaConsumer(
                *topics, bootstrap_servers=self.bootstrap, fetch_max_wait_ms=50, **options
            ),
            "stop",
        )
        reader = _PythonReader(consumer, topic, aiokafka.TopicPartition, self._wait, group)
        self.callback(reader.close)
        if partitions:
            reader.begin(partitions)
        return reader


def _dotted(configs: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in configs.items()}


SESSIONS: Mapping[str, type[Session]] = {
    kind.name: kind for kind in (KafkaPython, Confluent, AioKafka)
}
