"""
Writes records to a topic, idempotently: a retry never writes a record twice (KIP-98).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from barnabas.client.batches import BatchBuilder
from barnabas.client.cluster import Cluster
from barnabas.client.connection import Connection
from barnabas.client.errors import BrokerError, Disconnected
from barnabas.client.partitioner import partition_of_key
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records.batch.view import read_batch
from barnabas.protocol.records.record import increment_sequence
from barnabas.storage.clock import Clock, SystemClock
from barnabas.storage.topic_partition import TopicPartition

BATCH_BYTES: Final = 256 << 10
"""Largest batch. Brokers accept 1 MiB by default (``message.max.bytes``)."""

_ALL: Final = -1
_NO_TIMEOUT: Final = 0
_FLUSH_BYTES: Final = 4 << 20
_RECORD_OVERHEAD: Final = 16


@dataclass
class Written:
    """
    The offsets that a partition's records have.
    """

    records: int = 0
    first_offset: int = -1
    last_offset: int = -1


@dataclass
class _Pending:
    builder: BatchBuilder
    records: int = 0
    batches: list[bytes] = field(default_factory=list)


class Producer:
    """
    Collects records and writes them in batches.

    Args:
        compression: of each batch.
    """

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        *,
        compression: CompressionType = CompressionType.NONE,
        clock: Clock | None = None,
    ) -> None:
        """
        Raises:
            BrokerError: the topic does not exist, or this client may not write to it.
        """
        self._cluster = cluster
        self._topic = topic
        self._count = cluster.partition_count(topic)
        self._compression = compression
        self._clock = clock or SystemClock()
        self._sequences: dict[int, int] = {}
        self._pending: dict[int, _Pending] = {}
        self._bytes = 0
        self._sticky = random.randrange(self._count)
        self._producer_id, self._epoch = cluster.retried(self._new_identity)
        self.written: dict[int, Written] = {}
        """By partition."""

    def _new_identity(self) -> tuple[int, int]:
        answer = self._cluster.any().ask(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT)
        )
        if answer.error_code:
            raise BrokerError.of(answer.error_code, f"topic {self._topic} cannot be written to")
        return answer.producer_id, answer.producer_epoch

    def send(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        *,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> None:
        """
        Add a record. Without a partition, records with equal keys go to the same one, which is the
        one that Kafka's Java producer chooses.

        Args:
            timestamp: in ms since 1970; None for now.

        Raises:
            BrokerError: the partition does not exist, or an earlier record is refused.
            Disconnected: the leader stays unreachable for the client's timeout.
        """
        if partition is None:
            partition = self._sticky if key is None else partition_of_key(key, self._count)
        elif not 0 <= partition < self._count:
            raise BrokerError.of(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"partition {partition} does not exist; topic {self._topic} has {self._count}:"
                " leave out the partition, or add partitions with barnabas topics alter",
            )
        pending = self._pending.get(partition)
        if pending is None:
            pending = self._pending[partition] = _Pending(self._builder(partition))
        at = self._clock.now_ms() if timestamp is None else timestamp
        pending.builder.add(at, key, value, headers)
        pending.records += 1
        self._bytes += len(key or b"") + len(value or b"") + _RECORD_OVERHEAD
        if self._bytes >= _FLUSH_BYTES:
            self.flush()

    def _builder(self, partition: int) -> BatchBuilder:
        return BatchBuilder(
            BATCH_BYTES,
            compression=self._compression,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequences.get(partition, 0),
        )

    def flush(self) -> None:
        """
        Write the records that were added, and wait until all in-sync replicas have them.

        Raises:
            BrokerError: a broker refuses a batch. Earlier batches of its partition are written.
            Disconnected: the leader stays unreachable for the client's timeout.
        """
        for partition, pending in self._pending.items():
            pending.batches = pending.builder.batches()
            self._sequences[partition] = increment_sequence(
                self._sequences.get(partition, 0), pending.records
            )
        while self._pending:
            # One batch of each partition at a time keeps their order over retries.
            self._write({each: pending.batches[0] for each, pending in self._pending.items()})
            for partition, pending in [*self._pending.items()]:
                del pending.batches[0]
                if not pending.batches:
                    del self._pending[partition]
        self._bytes = 0
        self._sticky = random.randrange(self._count)

    def _write(self, batches: dict[int, bytes]) -> None:
        patience = self._cluster.patience()
        left = dict(batches)
        while left:
            try:
                self._attempt(left)
            except (BrokerError, Disconnected) as error:
                patience.after(error)
                self._cluster.forget()

    def _attempt(self, left: dict[int, bytes]) -> None:
        """
        Send each batch to its leader and remove the written ones from *left*.
        """
        by_leader: dict[Connection, list[int]] = {}
        for partition in left:
            leader = self._cluster.leader(TopicPartition(self._topic, partition))
            by_leader.setdefault(leader, []).append(partition)
        failed: BrokerError | None = None
        for leader, partitions in by_leader.items():
            request = ProduceRequest(
                transactional_id=None,
                acks=_ALL,
                timeout_ms=self._cluster.settings.timeout_ms,
                topic_data=[
                    TopicProduceData(
                        name=self._topic,
                        partition_data=[
                            PartitionProduceData(index=each, records=left[each])
                            for each in partitions
                        ],
                    )
                ],
            )
            for topic in leader.ask(request).responses:
                for result in topic.partition_responses:
                    failed = self._answered(left, result) or failed
        if failed is not None:
            raise failed

    def _answered(
        self, left: dict[int, bytes], result: PartitionProduceResponse
    ) -> BrokerError | None:
        # A retry finds a batch that the first attempt had written.
        if result.error_code not in (0, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            what = f"{self._topic}-{result.index} refuses records"
            message = result.error_message
            if result.record_errors:
                message = result.record_errors[0].batch_index_error_message or message
            return BrokerError.of(result.error_code, what, message)
        count = read_batch(memoryview(left.pop(result.index))).record_count
        written = self.written.setdefault(result.index, Written())
        if result.base_offset >= 0:
            if written.first_offset < 0:
                written.first_offset = result.base_offset
            written.last_offset = result.base_offset + count - 1
        written.records += count
        return None
