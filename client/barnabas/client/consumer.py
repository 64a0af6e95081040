"""
Reads records of partitions from their leaders, outside of any group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop
from typing import Any, Final, NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.connection import Connection
from barnabas.client.errors import BrokerError, ClientError, Disconnected
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.records.batch.sequence import batches
from barnabas.protocol.records.control import ControlRecordType
from barnabas.protocol.records.record import Record
from barnabas.storage.topic_partition import TopicPartition
from barnabas.storage.units import MiB

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
BEGINNING, END = -2, -1
"""Timestamps of ListOffsets that stand for the log start offset and the end."""

_FETCH_BYTES: Final = 50 * MiB
_PARTITION_BYTES: Final = MiB
_WAIT_MS: Final = 500


class ConsumedRecord(NamedTuple):
    partition: TopicPartition
    record: Record
    is_log_append_time: bool
    """The broker set the timestamp when it appended the record."""


class Consumer:
    """
    Reads partitions from given offsets, each up to an end offset or for ever.

    Args:
        positions: the offset to begin at, by partition.
        ends: the offset to stop before, by partition; a partition without one is followed.
        isolation: ``READ_COMMITTED`` skips records of aborted transactions and stops at the first
            open transaction.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        isolation: int = READ_UNCOMMITTED,
    ) -> None:
        self._cluster = cluster
        self._positions = dict(positions)
        self._ends = ends
        self._isolation = isolation
        self._patience = cluster.patience()
        self.lost: list[tuple[TopicPartition, int, int]] = []
        """Ranges that were deleted before they were read: partition, first offset, next offset."""

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """
        The next offset of each partition.
        """
        return self._positions

    def records(self) -> Iterator[ConsumedRecord]:
        """
        The records, in the order of their offsets within each partition.

        Raises:
            BrokerError: a broker refuses, or an error outlasts the client's timeout.
            Disconnected: a leader stays unreachable for the client's timeout.
            CorruptMessage: a batch cannot be decoded.
        """
        while wanted := [each for each in self._positions if not self._is_done(each)]:
            try:
                for answer in self._fetched(wanted):
                    yield from self._records_in(answer)
            except (BrokerError, Disconnected) as error:
                self._patience.after(error)
                self._cluster.forget()
            else:
                self._patience.restart()

    def _is_done(self, partition: TopicPartition) -> bool:
        return self._positions[partition] >= self._ends.get(partition, 1 << 63)

    def _fetched(self, wanted: list[TopicPartition]) -> Iterator[Any]:
        by_leader: dict[Connection, dict[str, list[FetchPartition]]] = {}
        for partition in wanted:
            topics = by_leader.setdefault(self._cluster.leader(partition), {})
            topics.setdefault(partition.topic, []).append(
                FetchPartition(
                    partition=partition.partition,
                    fetch_offset=self._positions[partition],
                    partition_max_bytes=_PARTITION_BYTES,
                )
            )
        for leader, topics in by_leader.items():
            leader.send(
                FetchRequest(
                    max_wait_ms=_WAIT_MS,
                    min_bytes=1,
                    max_bytes=_FETCH_BYTES,
                    isolation_level=self._isolation,
                    topics=[
                        FetchTopic(topic=topic, partitions=partitions)
                        for topic, partitions in topics.items()
                    ],
                )
            )
        failed: ClientError | None = None
        for leader in by_leader:
            try:
                answer = leader.receive()[0]
            except Disconnected as error:
                failed = error
                continue
            if answer.error_code:
                failed = BrokerError.of(answer.error_code, leader.address)
                continue
            yield answer
        if failed is not None:
            raise failed

    def _records_in(self, answer: Any) -> Iterator[ConsumedRecord]:
        failed: BrokerError | None = None
        for topic in answer.responses:
            for data in topic.partitions:
                partition = TopicPartition(topic.topic, data.partition_index)
                if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    self._skip_deleted(partition)
                elif data.error_code:
                    failed = BrokerError.of(data.error_code, str(partition))
                else:
                    yield from self._records_of(partition, data)
        if failed is not None:
            raise failed

    def _skip_deleted(self, partition: TopicPartition) -> None:
        """
        Continue at the log start offset, after retention has deleted records.

        Raises:
            BrokerError: the position is beyond the end of the log.
        """
        start = self._cluster.offsets({partition: BEGINNING})[partition]
        position = self._positions[partition]
        if start <= position:
            raise BrokerError.of(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition} has no offset {position}"
            )
        self.lost.append((partition, position, start))
        self._positions[partition] = start

    def _records_of(self, partition: TopicPartition, data: Any) -> Iterator[ConsumedRecord]:
        position = self._positions[partition]
        end = self._ends.get(partition, 1 << 63)
        aborted = _AbortedRanges(data.aborted_transactions or ())
        before = position
        for batch in batches(data.records or b""):
            if batch.is_control:
                aborted.end(batch)
            elif self._isolation == READ_UNCOMMITTED or not aborted.contains(batch):
                batch.ensure_valid()
                is_append_time = bool(batch.timestamp_type)
                for record in batch.records():
                    if before <= record.offset < end:
                        self._positions[partition] = record.offset + 1
                        yield ConsumedRecord(partition, record, is_append_time)
            position = batch.next_offset
            self._positions[partition] = max(self._positions[partition], position)
        visible = data.last_stable_offset if self._isolation else data.high_watermark
        if position == before and visible >= end:
            # Compaction may leave no batch between here and the end.
            self._positions[partition] = end


class _AbortedRanges:
    """
    The aborted transactions of one response (Kafka's ``CompletedFetch``).
    """

    def __init__(self, transactions: Any) -> None:
        self._coming = [(each.first_offset, each.producer_id) for each in transactions]
        heapify(self._coming)
        self._producers: set[int] = set()

    def contains(self, batch: Any) -> bool:
        """
        Return whether an aborted transaction wrote the batch. Callers ask in offset order.
        """
        while self._coming and self._coming[0][0] <= batch.last_offset:
            self._producers.add(heappop(self._coming)[1])
        return batch.is_transactional and batch.producer_id in self._producers

    def end(self, batch: Any) -> None:
        """
        Take note of a control batch: an abort marker ends its producer's transaction.
        """
        for record in batch.records():
            if ControlRecordType.of(record.key) is ControlRecordType.ABORT:
                self._producers.discard(batch.producer_id)
