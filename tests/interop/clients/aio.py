"""
aiokafka.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import aiokafka  # type: ignore[import-untyped]  # the library ships no type hints
import aiokafka.admin as aio_admin  # type: ignore[import-untyped]  # the same
import aiokafka.errors as aio_errors  # type: ignore[import-untyped]  # the same
from aiokafka.admin.config_resource import (  # type: ignore[import-untyped]  # the same
    ConfigResource,
    ConfigResourceType,
)

from tests.interop.clients.base import PATIENCE, READER, Client, Cluster, Session
from tests.interop.clients.kafka_python import PythonReader, PythonWriter, described, spelled


class AioKafkaSession(Session):
    """
    The asyncio client; its event loop runs in a thread, so that members keep up their heartbeats.
    """

    name = "aiokafka"
    errors = aio_errors.KafkaError
    small_batches = {"max_batch_size": 2000}  # noqa: RUF012  # nobody changes it
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

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """
        The result of a call in the loop, awaited if it is a coroutine.
        """

        async def run() -> Any:
            found = function(*arguments, **options)
            return await found if asyncio.iscoroutine(found) else found

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(PATIENCE)

    def is_fenced(self, error: Exception) -> bool:
        return isinstance(error, aio_errors.ProducerFenced)

    def _started(self, make: Callable[..., Any], stop: str, *topics: str, **options: Any) -> Any:
        """
        A started client; its constructor wants a running loop.
        """

        async def start() -> Any:
            made = make(*topics, bootstrap_servers=self.bootstrap, **options)
            try:
                await made.start()
            except BaseException:
                await getattr(made, stop)()
                raise
            return made

        return self.call(start)

    def _administer(self, method: str, *arguments: Any, **options: Any) -> Any:
        admin = self._started(aio_admin.AIOKafkaAdminClient, "close")
        try:
            answer = self.call(getattr(admin, method), *arguments, **options)
        finally:
            self.call(admin.close)
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
        configs: Mapping[str, str] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        new = aio_admin.NewTopic(topic, partitions, replicas, topic_configs=dict(configs or {}))
        self._administer("create_topics", [new], validate_only=validate_only)

    def delete(self, topic: str) -> None:
        self._administer("delete_topics", [topic])

    def topics(self) -> set[str]:
        return set(self._administer("list_topics"))

    def partitions(self, topic: str) -> int:
        [found] = self._administer("describe_topics", [topic])
        return len(found["partitions"])

    def add_partitions(self, topic: str, total: int) -> None:
        self._administer("create_partitions", {topic: aio_admin.NewPartitions(total)})

    def delete_records(self, topic: str, before: int) -> None:
        below = aio_admin.RecordsToDelete(before_offset=before)
        self._administer("delete_records", {aiokafka.TopicPartition(topic, 0): below})

    def configs(self, name: str, *, of_broker: bool = False) -> Mapping[str, str]:
        kind = ConfigResourceType.BROKER if of_broker else ConfigResourceType.TOPIC
        [answer] = self._administer("describe_configs", [ConfigResource(kind, name)])
        [(code, _, *found, entries)] = [resource[:5] for resource in answer.resources]
        assert [0, kind, name] == [code, *found]
        return {name: value for name, value, *_ in entries}

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(configs))
        self._administer("alter_configs", [resource])

    def cluster(self) -> Cluster:
        return described(self._administer("describe_cluster"), "node_id")

    def groups(self) -> set[str]:
        return {name for name, *_ in self._administer("list_consumer_groups")}

    def group(self, group: str) -> tuple[str, list[str]]:
        [answer] = self._administer("describe_consumer_groups", [group])
        [(code, name, state, _, _, members, *_)] = answer.groups
        assert (0, group) == (code, name)
        return state, [client_id for _, client_id, *_ in members]

    def offsets(self, group: str) -> dict[int, int]:
        found = self._administer("list_consumer_group_offsets", group)
        return {part.partition: each.offset for part, each in found.items()}

    def writer(self, **options: Any) -> AioWriter:
        chosen = spelled({"acks": "all"} | options)
        producer = self._started(aiokafka.AIOKafkaProducer, "stop", **chosen)
        self.callback(self.call, producer.stop)
        return AioWriter(self, producer)

    def reader(self, topic: str, *partitions: int, **options: Any) -> AioReader:
        chosen = {**READER, "fetch_max_wait_ms": 50, **options}

        async def start() -> AioReader:
            consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=self.bootstrap, **chosen)
            return AioReader(self, consumer, topic, chosen.get("group_id"))

        reader: AioReader = self.call(start)
        self.callback(reader.close)
        if not partitions:
            reader.begin(())
        self.call(reader.consumer.start)
        if partitions:
            reader.begin(partitions)
        return reader


class AioWriter(PythonWriter):
    def __init__(self, session: AioKafkaSession, producer: Any) -> None:
        super().__init__(producer)
        self._session = session

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        return self._session.call(function, *arguments, **options)

    def answers(self, topic: str, records: Sequence[Mapping[str, Any]]) -> list[Any]:
        async def send() -> list[Any]:
            futures = [await self.producer.send(topic, **record) for record in records]
            return [await future for future in futures]

        found: list[Any] = self.call(send)
        return found


class AioReader(PythonReader):
    poll_ms = 100
    listener = aiokafka.ConsumerRebalanceListener

    def __init__(
        self, session: AioKafkaSession, consumer: Any, topic: str, group: str | None
    ) -> None:
        self._session = session
        super().__init__(consumer, topic, group)

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        return self._session.call(function, *arguments, **options)

    def part(self, partition: int) -> Any:
        return aiokafka.TopicPartition(self._topic, partition)

    def meta(self, offset: int) -> Any:
        return offset

    def batches(self) -> Mapping[Any, Sequence[Any]]:
        found: Mapping[Any, Sequence[Any]] = self.call(
            self.consumer.getmany, timeout_ms=self.poll_ms
        )
        return found

    def stop(self) -> None:
        self.call(self.consumer.stop)


class AioKafka(Client):
    """
    aiokafka with a client for each call.
    """

    session = AioKafkaSession
    name = AioKafkaSession.name
