"""
kafka-python, and what aiokafka has in common with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import kafka  # type: ignore[import-untyped]  # the library ships no type hints
import kafka.admin as python_admin  # type: ignore[import-untyped]  # the same
import kafka.errors as python_errors  # type: ignore[import-untyped]  # the same
from kafka.structs import OffsetAndMetadata  # type: ignore[import-untyped]  # the same

from tests.interop.clients.base import (
    PATIENCE,
    READER,
    Client,
    Cluster,
    NewRecord,
    Reader,
    Seen,
    Sent,
    Session,
    Writer,
)


class KafkaPythonSession(Session):
    """
    The pure Python client.
    """

    name = "kafka-python"
    errors = python_errors.KafkaError
    small_batches = {"batch_size": 2000}  # noqa: RUF012  # nobody changes it
    no_offset = python_errors.NoOffsetForPartitionError
    out_of_range = python_errors.OffsetOutOfRangeError

    @cached_property
    def _admin(self) -> Any:
        admin = python_admin.KafkaAdminClient(bootstrap_servers=self.bootstrap)
        self.callback(admin.close)
        return admin

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
        configs: Mapping[str, str] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        new = python_admin.NewTopic(topic, partitions, replicas, topic_configs=dict(configs or {}))
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

    def configs(self, name: str, *, of_broker: bool = False) -> Mapping[str, str]:
        kind = "broker" if of_broker else "topic"
        resource = python_admin.ConfigResource(kind, name)
        found = self._admin.describe_configs([resource], config_filter="all")
        return {name: entry["value"] for name, entry in found[kind][name].items()}

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = python_admin.ConfigResource("topic", topic)
        modified = self._admin.describe_configs([resource])["topic"][topic]
        others = dict.fromkeys(modified.keys() - configs.keys())
        self._admin.reset_configs([python_admin.ConfigResource("topic", topic, others)])
        self._admin.alter_configs([python_admin.ConfigResource("topic", topic, dict(configs))])

    def cluster(self) -> Cluster:
        return described(self._admin.describe_cluster(), "broker_id")

    def groups(self) -> set[str]:
        return {found["group_id"] for found in self._admin.list_groups()}

    def group(self, group: str) -> tuple[str, list[str]]:
        found = self._admin.describe_groups([group])[group]
        return found["group_state"], [member["client_id"] for member in found["members"]]

    def offsets(self, group: str) -> dict[int, int]:
        found = self._admin.list_group_offsets(group)[group]
        return {part.partition: each.offset for part, each in found.items()}

    def delete_group(self, group: str) -> None:
        self._admin.delete_groups([group])

    def writer(self, **options: Any) -> PythonWriter:
        chosen = spelled({"acks": "all"} | options)
        chosen["enable_idempotence"] = chosen["acks"] == "all"
        producer = kafka.KafkaProducer(bootstrap_servers=self.bootstrap, **chosen)
        self.callback(producer.close, timeout=1)
        if "transactional_id" in options:
            producer.init_transactions()
        return PythonWriter(producer)

    def reader(self, topic: str, *partitions: int, **options: Any) -> PythonReader:
        consumer = kafka.KafkaConsumer(bootstrap_servers=self.bootstrap, **{**READER, **options})
        _finish_joins(consumer)
        reader = PythonReader(consumer, topic, options.get("group_id"))
        self.callback(reader.close)
        reader.begin(partitions)
        return reader


def _finish_joins(consumer: Any) -> None:
    """
    Make a member take the answer to its join in a later poll than the one that sent it.

    A leader joins again when it learns of a topic's partitions. If its poll ends before that join
    does, kafka-python 3.0.12 sees no reason to join any more, and never takes the answer: the
    member has no partitions and sends no heartbeats, with Apache Kafka as well.
    """
    coordinator = consumer._coordinator
    need_rejoin = coordinator.need_rejoin
    coordinator.need_rejoin = lambda: coordinator._join_task is not None or need_rejoin()


def described(cluster: Mapping[str, Any], node_id: str) -> Cluster:
    [node] = cluster["brokers"]
    ids = (cluster["cluster_id"], cluster["controller_id"], node[node_id])
    return Cluster(*ids, node["host"], node["port"])


def spelled(options: Mapping[str, Any]) -> dict[str, Any]:
    """
    Options of a producer, with no codec in place of "none".
    """
    return {name: None if value == "none" else value for name, value in options.items()}


class PythonWriter(Writer):
    """
    A producer of kafka-python; that of aiokafka waits for coroutines.
    """

    def __init__(self, producer: Any) -> None:
        self.producer = producer

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        return function(*arguments, **options)

    def send_records(self, topic: str, records: Sequence[NewRecord]) -> list[Sent]:
        return [
            Sent(each.partition, each.offset, each.timestamp)
            for each in self.answers(topic, [_facts(record) for record in records])
            if each
        ]

    def answers(self, topic: str, records: Sequence[Mapping[str, Any]]) -> list[Any]:
        futures = [self.producer.send(topic, **record) for record in records]
        return [future.get(PATIENCE) for future in futures]

    def begin(self) -> None:
        self.call(self.producer.begin_transaction)

    def commit(self) -> None:
        self.call(self.producer.commit_transaction)

    def abort(self) -> None:
        self.call(self.producer.abort_transaction)

    def send_offsets(self, reader: Any, offsets: Mapping[int, int]) -> None:
        wanted = reader.with_parts(offsets)
        self.call(self.producer.send_offsets_to_transaction, wanted, reader.group)


def _facts(record: NewRecord) -> dict[str, Any]:
    return record._asdict() | {"headers": list(record.headers)}


class PythonReader(Reader):
    """
    A consumer of kafka-python; that of aiokafka waits for coroutines.
    """

    poll_ms = 200
    listener: type = kafka.ConsumerRebalanceListener

    def __init__(self, consumer: Any, topic: str, group: str | None) -> None:
        self.consumer, self._topic, self.group = consumer, topic, group
        self.changes = []
        self._closed = False

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        return function(*arguments, **options)

    def part(self, partition: int) -> Any:
        return kafka.TopicPartition(self._topic, partition)

    def meta(self, offset: int) -> Any:
        return OffsetAndMetadata(offset, "", -1)

    def with_parts(self, offsets: Mapping[int, int]) -> dict[Any, Any]:
        return {self.part(each): self.meta(offset) for each, offset in offsets.items()}

    def begin(self, partitions: Sequence[int]) -> None:
        if partitions:
            self.call(self.consumer.assign, [self.part(each) for each in partitions])
        else:
            told = {
                "on_partitions_assigned": lambda _, parts: self.note("+", parts),
                "on_partitions_revoked": lambda _, parts: self.note("-", parts),
            }
            listener = type("Listener", (self.listener,), told)()
            is_pattern = self._topic.startswith("^")
            chosen = {"pattern": self._topic} if is_pattern else {"topics": [self._topic]}
            self.call(self.consumer.subscribe, **chosen, listener=listener)

    def poll(self) -> list[Seen]:
        return [
            Seen(r.partition, r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
            for batch in self.batches().values()
            for r in batch
        ]

    def batches(self) -> Mapping[Any, Sequence[Any]]:
        found: Mapping[Any, Sequence[Any]] = self.consumer.poll(timeout_ms=self.poll_ms)
        return found

    def assigned(self) -> set[int]:
        return {part.partition for part in self.consumer.assignment()}

    def position(self, partition: int) -> int:
        return int(self.call(self.consumer.position, self.part(partition)))

    def seek(self, partition: int, offset: int) -> None:
        self.call(self.consumer.seek, self.part(partition), offset)

    def seek_to_beginning(self, partition: int) -> None:
        self.call(self.consumer.seek_to_beginning, self.part(partition))

    def seek_to_end(self, partition: int) -> None:
        self.call(self.consumer.seek_to_end, self.part(partition))

    def pause(self, partition: int) -> None:
        self.call(self.consumer.pause, self.part(partition))

    def resume(self, partition: int) -> None:
        self.call(self.consumer.resume, self.part(partition))

    def committed(self, partition: int) -> int | None:
        found = self.call(self.consumer.committed, self.part(partition))
        return None if found is None else int(found)

    def commit(self, offsets: Mapping[int, int]) -> None:
        self.call(self.consumer.commit, self.with_parts(offsets))

    def at_time(self, partition: int, timestamp_ms: int) -> int | None:
        part = self.part(partition)
        found = self.call(self.consumer.offsets_for_times, {part: timestamp_ms})[part]
        return None if found is None else int(found.offset)

    def bounds(self, partition: int) -> tuple[int, int]:
        part = self.part(partition)
        first = self.call(self.consumer.beginning_offsets, [part])[part]
        return int(first), int(self.call(self.consumer.end_offsets, [part])[part])

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.stop()

    def stop(self) -> None:
        self.consumer.close()


class KafkaPython(Client):
    """
    kafka-python with a client for each call.
    """

    session = KafkaPythonSession
    name = KafkaPythonSession.name
    sends_null_headers = False
