"""
confluent-kafka, the Python client on librdkafka.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic

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

ANY_PARTITION: Final = -1
NOW: Final = 0
BY_KIP_848: Final[Mapping[str, Any]] = {
    "group_protocol": "consumer",
    "session_timeout_ms": None,
    "heartbeat_interval_ms": None,
}
"""
Options of a member of a consumer group whose timeouts are the broker's.
"""
OTHER_NAMES: Final = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "metadata.max.age.ms": "topic.metadata.refresh.interval.ms",
}


class ConfluentSession(Session):
    """
    The client on which those of most languages but Java build.
    """

    name = "confluent-kafka"
    errors = KafkaException
    many = 10_000
    small_batches = {"batch_num_messages": 100}  # noqa: RUF012  # nobody changes it
    no_offset = out_of_range = KafkaError._AUTO_OFFSET_RESET

    def conf(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """
        Options as librdkafka spells them; callbacks keep their names.
        """
        known = {"bootstrap.servers": self.bootstrap, "log_level": 0}
        callbacks = {name: value for name, value in options.items() if callable(value)}
        rest = {
            name.replace("_", "."): value
            for name, value in options.items()
            if name not in callbacks and value is not None
        }
        return known | callbacks | {OTHER_NAMES.get(n, n): v for n, v in rest.items()}

    @cached_property
    def admin(self) -> AdminClient:
        # Its futures fail once nobody refers to it.
        return AdminClient(self.conf({}))

    def code(self, error: Exception) -> int:
        return int(error.args[0].code())

    def is_fenced(self, error: Exception) -> bool:
        return self.code(error) == KafkaError._FENCED and bool(error.args[0].fatal())

    def create(
        self,
        topic: str,
        partitions: int = 1,
        replicas: int = 1,
        configs: Mapping[str, str] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        new = NewTopic(topic, partitions, replicas, config=dict(configs or {}))
        self.admin.create_topics([new], validate_only=validate_only)[topic].result(PATIENCE)

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(PATIENCE)

    def topics(self) -> set[str]:
        return set(self.admin.list_topics(timeout=PATIENCE).topics)

    def partitions(self, topic: str) -> int:
        return len(self.admin.list_topics(topic, timeout=PATIENCE).topics[topic].partitions)

    def add_partitions(self, topic: str, total: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, total)])[topic].result(PATIENCE)

    def delete_records(self, topic: str, before: int) -> None:
        part = TopicPartition(topic, 0, before)
        self.admin.delete_records([part])[part].result(PATIENCE)

    def configs(self, name: str, *, of_broker: bool = False) -> Mapping[str, str]:
        kinds = ConfigResource.Type
        resource = ConfigResource(kinds.BROKER if of_broker else kinds.TOPIC, name)
        found = self.admin.describe_configs([resource])[resource].result(PATIENCE)
        return {name: entry.value for name, entry in found.items()}

    def replace_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, set_config=dict(configs or {}))
        self.admin.alter_configs([resource])[resource].result(PATIENCE)

    def cluster(self) -> Cluster:
        found = self.admin.list_topics(timeout=PATIENCE)
        [node] = found.brokers.values()
        cluster_id, host = str(found.cluster_id), str(node.host)
        return Cluster(cluster_id, found.controller_id, node.id, host, node.port)

    def groups(self) -> set[str]:
        found = self.admin.list_consumer_groups().result(PATIENCE)
        assert not found.errors
        return {group.group_id for group in found.valid}

    def group(self, group: str) -> tuple[str, list[str]]:
        found = self.admin.describe_consumer_groups([group])[group].result(PATIENCE)
        return found.state.name.capitalize(), [member.client_id for member in found.members]

    def offsets(self, group: str) -> dict[int, int]:
        wanted = ConsumerGroupTopicPartitions(group)
        found = self.admin.list_consumer_group_offsets([wanted])[group].result(PATIENCE)
        return {part.partition: part.offset for part in found.topic_partitions}

    def writer(self, **options: Any) -> ConfluentWriter:
        defaults: dict[str, Any] = {"acks": "all"}
        defaults["enable_idempotence"] = options.get("acks", "all") == "all"
        if "transaction_timeout_ms" in options:
            defaults["message_timeout_ms"] = options["transaction_timeout_ms"]
        producer = Producer(self.conf(defaults | options))
        if "transactional_id" in options:
            producer.init_transactions(PATIENCE)
        return ConfluentWriter(producer)

    def consumer(self, group: str | None, **options: Any) -> Consumer:
        chosen = {**READER, **options, "group_id": group or "unused"}
        if "fetch_max_bytes" in chosen:
            chosen["message_max_bytes"] = chosen["fetch_max_bytes"]
        if chosen["auto_offset_reset"] == "none":
            chosen["auto_offset_reset"] = "error"
        chosen.setdefault("max_poll_interval_ms", max(300_000, chosen["session_timeout_ms"] or 0))
        del chosen["max_poll_records"]
        consumer = Consumer(self.conf(chosen))
        self.callback(consumer.close)
        return consumer

    def reader(self, topic: str, *partitions: int, **options: Any) -> ConfluentReader:
        group = options.pop("group_id", None)
        consumer = self.consumer(group, **options)
        reader = ConfluentReader(consumer, topic, options.get("max_poll_records", 1))
        # Without one it asks for the group's, and never again if the coordinator is not ready.
        reader.begin(partitions, OFFSET_INVALID if group else OFFSET_BEGINNING)
        return reader


class ConfluentWriter(Writer):
    def __init__(self, producer: Producer) -> None:
        self.producer = producer

    def send_records(self, topic: str, records: Sequence[NewRecord]) -> list[Sent]:
        sent: dict[int, Sent] = {}
        failed: list[KafkaError] = []

        for number, record in enumerate(records):

            def delivered(error: KafkaError | None, message: Message, number: int = number) -> None:
                if error is not None:
                    failed.append(error)
                    return
                place = message.partition() or 0, message.offset() or 0
                sent[number] = Sent(*place, message.timestamp()[1])

            self._send(topic, record, delivered)
        try:
            left = self.producer.flush(PATIENCE)
        except SystemError as error:
            # The library raises a fatal error while it hands over a delivery report.
            if isinstance(error.__cause__, KafkaException):
                raise error.__cause__ from None
            raise
        assert left == 0, f"{left} of {len(records)} records are not acknowledged"
        if failed:
            raise KafkaException(failed[0])
        return [sent[number] for number in range(len(records))]

    def _send(self, topic: str, record: NewRecord, delivered: Any) -> None:
        """
        Hand a record over, waiting for room in the library's queue as its documentation says.
        """
        while True:
            try:
                self.producer.produce(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    on_delivery=delivered,
                    partition=ANY_PARTITION if record.partition is None else record.partition,
                    timestamp=NOW if record.timestamp_ms is None else record.timestamp_ms,
                )
            except BufferError:
                self.producer.poll(0.1)
            else:
                return

    def begin(self) -> None:
        self.producer.begin_transaction()

    def commit(self) -> None:
        self.producer.commit_transaction(PATIENCE)

    def abort(self) -> None:
        self.producer.abort_transaction(PATIENCE)

    def send_offsets(self, reader: Any, offsets: Mapping[int, int]) -> None:
        group = reader.consumer.consumer_group_metadata()
        parts = [reader.part(*each) for each in offsets.items()]
        self.producer.send_offsets_to_transaction(parts, group, PATIENCE)


class ConfluentReader(Reader):
    def __init__(self, consumer: Consumer, topic: str, at_once: int) -> None:
        self.consumer, self._topic, self._at_once = consumer, topic, at_once
        self.changes = []

    def begin(self, partitions: Sequence[int], offset: int) -> None:
        if partitions:
            self.consumer.assign([self.part(each, offset) for each in partitions])
        else:
            self.subscribe([self._topic])

    def subscribe(self, topics: Sequence[str]) -> None:
        """
        Join; with callbacks, the group waits until this thread gives up its partitions.
        """
        self.consumer.subscribe(
            list(topics),
            on_assign=lambda _, parts: self.note("+", parts),
            on_revoke=lambda _, parts: self.note("-", parts),
            on_lost=lambda _, parts: self.note("!", parts),
        )

    def part(self, partition: int, offset: int = OFFSET_INVALID) -> TopicPartition:
        return TopicPartition(self._topic, partition, offset)

    def poll(self) -> list[Seen]:
        return [_seen(message) for message in self.consumer.consume(self._at_once, 0.1)]

    def assigned(self) -> set[int]:
        return {part.partition for part in self.consumer.assignment()}

    def position(self, partition: int) -> int:
        return self.consumer.position([self.part(partition)])[0].offset

    def seek(self, partition: int, offset: int) -> None:
        self.consumer.seek(self.part(partition, offset))

    def seek_to_beginning(self, partition: int) -> None:
        self.seek(partition, OFFSET_BEGINNING)

    def seek_to_end(self, partition: int) -> None:
        self.seek(partition, OFFSET_END)

    def pause(self, partition: int) -> None:
        self.consumer.pause([self.part(partition)])

    def resume(self, partition: int) -> None:
        self.consumer.resume([self.part(partition)])

    def committed(self, partition: int) -> int | None:
        found = self.consumer.committed([self.part(partition)], PATIENCE)[0].offset
        return None if found < 0 else found

    def commit(self, offsets: Mapping[int, int]) -> None:
        parts = [self.part(*each) for each in offsets.items()]
        self.consumer.commit(offsets=parts, asynchronous=False)

    def at_time(self, partition: int, timestamp_ms: int) -> int | None:
        wanted = [self.part(partition, timestamp_ms)]
        found = self.consumer.offsets_for_times(wanted, PATIENCE)[0].offset
        return None if found < 0 else found

    def bounds(self, partition: int) -> tuple[int, int]:
        first, end = self.consumer.get_watermark_offsets(self.part(partition), PATIENCE) or (0, 0)
        return first, end

    def close(self) -> None:
        self.consumer.close()


def _seen(message: Message) -> Seen:
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    headers = message.headers() or []
    assert not isinstance(headers, dict), "a consumer gets a list: names may come twice"
    return Seen(
        message.partition() or 0,
        message.offset() or 0,
        message.timestamp()[1],
        _bytes(message.key()),
        _bytes(message.value()),
        tuple((name, _bytes(value)) for name, value in headers),
    )


def _bytes(value: str | bytes | None) -> bytes | None:
    assert not isinstance(value, str), "only a deserializer makes text of it"
    return value


class Confluent(Client):
    """
    confluent-kafka with a client for each call.
    """

    session = ConfluentSession
    name = ConfluentSession.name
