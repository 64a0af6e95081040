"""
Sending one partition of an archive to the partition of a topic that has its number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as ConsumerPartition

from barnabas.pipeline.decoding.arrow import milliseconds
from barnabas.pipeline.decoding.decode import OffsetRange
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.jobs.archive.files import batches_in_order
from barnabas.pipeline.jobs.archive.store import DataStore
from barnabas.pipeline.jobs.archive.table import ArchivedFile
from barnabas.pipeline.jobs.parquet_files import COLUMNS
from barnabas.storage.topic_partition import TopicPartition

_LARGEST_RECORD: Final = 1_000_000_000
"""The most that librdkafka allows; its default is below that of a topic. The topic decides."""
BATCH_BYTES: Final = 1_000_000
_AROUND_RECORDS: Final = 200
"""Bytes of a batch that are no records, and some more."""
PATIENCE: Final = 60.0
"""Seconds for an answer of a broker."""


class ReplayError(PipelineError):
    """
    An archive cannot be sent to a topic.
    """


@dataclass(frozen=True)
class ReplayTarget:
    """
    Where records go.
    """

    bootstrap: str
    topic: str
    records_per_transaction: int
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Other options of librdkafka, passwords among them."""
    largest_batch: int = BATCH_BYTES
    """Bytes that the topic takes."""

    @property
    def config(self) -> dict[str, Any]:
        return {**self.client, "bootstrap.servers": self.bootstrap}

    @property
    def producer_config(self) -> dict[str, Any]:
        return {
            "linger.ms": 20,
            "message.max.bytes": _LARGEST_RECORD,
            "batch.size": max(1, min(BATCH_BYTES, self.largest_batch - _AROUND_RECORDS)),
            # A record may be in the archive that only fits into a batch if it is compressed.
            "compression.type": "zstd",
            **self.config,
            "acks": "all",
        }


@dataclass(frozen=True)
class PartitionToSend:
    """
    What an archive has of a partition. A worker gets one of these, pickled.
    """

    topic_partition: TopicPartition
    identity: str
    """Of the archive, so that another archive is not taken for this one."""
    offsets: OffsetRange
    files: tuple[ArchivedFile, ...]
    store: DataStore

    def group(self, target: ReplayTarget) -> str:
        """
        The consumer group in which it is noted how far it was sent.
        """
        archive = hashlib.sha256(self.identity.encode()).hexdigest()[:16]
        return f"barnabas-replay-{archive}-{target.topic}-{self.topic_partition.partition}"


def replay_partition(archived: PartitionToSend, target: ReplayTarget) -> int:
    """
    Send what was not sent yet; the number of records.

    Raises:
        ArchiveError: a file of the archive is not as it was written.
        ReplayError: the topic has other records already, or a broker refuses these.
    """
    try:
        with _Sender(archived, target) as sender:
            start = sender.next_offset()
            return sum(map(sender.send, _batches(archived, start, target)))
    except KafkaException as error:
        raise ReplayError(
            f"{archived.topic_partition} cannot be sent to {target.topic}: {error}."
        ) from error


class _Sender:
    """
    The producer of one partition.
    """

    def __init__(self, archived: PartitionToSend, target: ReplayTarget) -> None:
        self._start_offset = archived.offsets.start
        self._partition = archived.topic_partition
        self._target = target
        name = archived.group(target)
        self._producer = Producer({**target.producer_config, "transactional.id": name})
        self._consumer = _consumer(name, target)

    def __enter__(self) -> _Sender:
        # This fences an earlier sender for this partition, and aborts the transaction it left open.
        self._producer.init_transactions(PATIENCE)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            # Else others would have to wait until it times out.
            with suppress(KafkaException):
                self._producer.abort_transaction(PATIENCE)
        self._producer.close()
        self._consumer.close()

    def next_offset(self) -> int:
        """
        Of the archive, the first that was not sent.

        Raises:
            ReplayError: nothing was sent, but the partition has records.
        """
        place = ConsumerPartition(self._target.topic, self._partition.partition)
        committed = _committed(self._consumer, place)
        if committed is not None:
            return committed
        low, high = self._consumer.get_watermark_offsets(place, PATIENCE) or (0, 0)
        if low != high:
            raise ReplayError(
                f"{self._target.topic}-{self._partition.partition} has offsets {low} to {high - 1}"
                " that are not of this archive: replay goes to an empty topic, or on where it was."
            )
        # From now on, what is there was sent by us.
        self._producer.begin_transaction()
        self._commit(self._start_offset)
        return self._start_offset

    def send(self, batch: pa.RecordBatch) -> int:
        """
        One transaction.
        """
        self._producer.begin_transaction()
        for row in _rows(batch):
            self._produce(row)
        self._commit(batch.column("offset")[-1].as_py() + 1)
        return int(batch.num_rows)

    def _produce(self, row: dict[str, Any]) -> None:
        if row["timestamp"] == 0:
            raise ReplayError(
                f"Offset {row['offset']} of {self._partition} has the timestamp 0, which the"
                " client takes for the time of sending."
            )
        headers = [(header["key"], header["value"]) for header in row["headers"] or ()]
        while True:
            try:
                self._producer.produce(
                    self._target.topic,
                    value=row["value"],
                    key=row["key"],
                    partition=self._partition.partition,
                    timestamp=row["timestamp"],
                    headers=headers,
                )
            except BufferError:
                self._producer.poll(1)
            else:
                return

    def _commit(self, next_offset: int) -> None:
        place = ConsumerPartition(self._target.topic, self._partition.partition, next_offset)
        group = self._consumer.consumer_group_metadata()
        self._producer.send_offsets_to_transaction([place], group, PATIENCE)
        self._producer.commit_transaction(PATIENCE)


def consumer_of(archived: PartitionToSend, target: ReplayTarget) -> Consumer:
    """
    A consumer of the group in which it is noted how far a partition was sent. It reads nothing; the
    caller closes it.
    """
    return _consumer(archived.group(target), target)


def sent_before(consumer: Consumer, archived: PartitionToSend, target: ReplayTarget) -> int | None:
    """
    Of a partition in an archive, the first offset that was not sent yet; None if none was.

    Args:
        consumer: that of ``consumer_of``. An AdminClient of librdkafka 2 that asks Apache Kafka for
            the offsets of a group that is not there ends the process.

    Raises:
        ReplayError: a broker does not say.
    """
    place = ConsumerPartition(target.topic, archived.topic_partition.partition)
    try:
        return _committed(consumer, place)
    except KafkaException as error:
        raise ReplayError(f"{target.topic}-{place.partition} cannot be asked: {error}.") from error


def _consumer(name: str, target: ReplayTarget) -> Consumer:
    return Consumer({**target.config, "group.id": name, "enable.auto.commit": False})


def _committed(consumer: Consumer, place: ConsumerPartition) -> int | None:
    (committed,) = consumer.committed([place], PATIENCE)
    return int(committed.offset) if committed.offset >= 0 else None


def _batches(
    archived: PartitionToSend, start: int, target: ReplayTarget
) -> Iterator[pa.RecordBatch]:
    """
    What an archive has from the offset *start* on.
    """
    files = [file for file in archived.files if file.offsets.end > start]
    rows = target.records_per_transaction
    for batch in batches_in_order(archived.store, files, COLUMNS, rows):
        rest = batch.filter(pc.greater_equal(batch.column("offset"), start))
        if rest.num_rows:
            yield rest


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """
    Timestamps in ms.
    """
    index = batch.schema.get_field_index("timestamp")
    batch = batch.set_column(index, "timestamp", milliseconds(batch))
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows
