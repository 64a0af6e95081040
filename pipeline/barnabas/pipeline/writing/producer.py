"""
Batches become requests to the leaders of their partitions.

Requests are sent ahead, as many as a broker keeps the sequence numbers of. After an error that may
pass, all that was sent ahead is waited for, and what is not written yet is sent again, one batch of
a partition at a time: a broker that has it already knows it by its sequence number.

A broker that was stopped and started remembers only the last batch of a producer, and says of those
before it that they are out of order. It says the same of batches behind a gap. So what is out of
order is put aside until it says of a later batch that it is the last one, or the next: it has all
before that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from barnabas.client.cluster import Cluster
from barnabas.client.connection import Connection
from barnabas.client.retries import MAY_PASS, Patience
from barnabas.pipeline.errors import BrokerError, Disconnected, RowError
from barnabas.pipeline.topic_ids import topic_ids_of
from barnabas.pipeline.writing.encode import RecordSet, halves
from barnabas.pipeline.writing.identity import NOBODY, Identity, join_transaction
from barnabas.pipeline.writing.options import WriteOptions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records.batch import seal_batch
from barnabas.protocol.records.record import NO_SEQUENCE, increment_sequence
from barnabas.storage.topic_partition import TopicPartition

_AHEAD: Final = 5
"""A broker remembers so many batches of a producer (``ProducerStateEntry``)."""
_REQUEST_BYTES: Final = 8 << 20
_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
_THERE: Final = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})


@dataclass
class _Waiting:
    """
    A batch that no broker has confirmed yet.
    """

    records: RecordSet
    sequence: int
    is_sent: bool = False


class TaskProducer:
    """
    Writes batches, those of a partition in their order.

    Args:
        task: its number, which errors name.
    """

    def __init__(
        self, cluster: Cluster, options: WriteOptions, identity: Identity, task: int
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._identity = identity
        self._task = task
        self._waiting: dict[TopicPartition, deque[_Waiting]] = {}
        self._next_sequence: dict[TopicPartition, int] = {}
        self._connections: dict[Connection, None] = {}
        self._failed: BrokerError | Disconnected | None = None
        self._broken: set[TopicPartition] = set()
        """Those of which a batch failed that is to be sent again."""
        self._is_recovering = False
        self._aside: dict[TopicPartition, int] = {}
        """How many of its first batches a partition may have already."""
        self.topic_ids: dict[str, UUID] = {}
        """The topics of a transaction, as they were before its first record, if that is known."""
        self.written = 0
        """Rows that a broker has confirmed."""

    @property
    def partitions(self) -> list[TopicPartition]:
        """
        Those that something was sent to.
        """
        return list(self._next_sequence)

    def send(self, sets: Sequence[RecordSet]) -> None:
        """
        Send batches, and not wait for all of the answers.

        Raises:
            RowError: a row of these or of those before cannot be written.
            Disconnected, BrokerError: a broker is gone for too long.
        """
        new = {records.partition for records in sets} - self._next_sequence.keys()
        if self._identity.transactional_id is not None and new:
            topics = {partition.topic for partition in new} - self.topic_ids.keys()
            self.topic_ids |= topic_ids_of(self._cluster, topics)
            join_transaction(self._cluster, self._identity, new)
        self._note_lost()
        for records in sets:
            self._queue(records)
        try:
            while requests := self._next_requests():
                for connection, request in requests:
                    while connection.unanswered >= _AHEAD and self._failed is None:
                        self._receive(connection)
                    if self._failed is None:
                        connection.send(request)
        except RowError:
            raise
        except (Disconnected, BrokerError) as error:
            self._note(error)
        if self._failed is not None:
            self._recover()

    def flush(self) -> None:
        """
        Wait for all answers.

        Raises: as ``send``.
        """
        self._drain()
        if self._failed is not None:
            self._recover()
        assert not any(self._waiting.values()), "each batch was confirmed"

    def _queue(self, records: RecordSet) -> None:
        limit = self._options.most_record_bytes
        if limit is not None and len(records.payload) > limit and len(records) == 1:
            size = len(records.payload)
            reason = f"its record has {size} bytes, more than kafka.max.request.size, {limit}."
            raise self._row_error(records, 0, reason)
        sequence = NO_SEQUENCE
        if self._identity is not NOBODY:
            sequence = self._next_sequence.get(records.partition, 0)
        self._next_sequence[records.partition] = increment_sequence(max(sequence, 0), len(records))
        queue = self._waiting.setdefault(records.partition, deque())
        queue.append(_Waiting(records, sequence))

    def _next_requests(self) -> list[tuple[Connection, ProduceRequest]]:
        """
        The next batch of each partition that has one, by leader.
        """
        by_leader: dict[Connection, list[list[_Waiting]]] = {}
        sizes: dict[Connection, int] = {}
        for partition, queue in self._waiting.items():
            waiting = next((each for each in queue if not each.is_sent), None)
            if waiting is None:
                continue
            leader = self._cluster.leader(partition)
            size = len(waiting.records.payload)
            if leader not in by_leader or sizes[leader] + size > _REQUEST_BYTES:
                by_leader.setdefault(leader, []).append([])
                sizes[leader] = 0
            by_leader[leader][-1].append(waiting)
            sizes[leader] += size
            waiting.is_sent = True
        self._connections.update(dict.fromkeys(by_leader))
        return [
            (leader, self._request(some)) for leader, all_of in by_leader.items() for some in all_of
        ]

    def _request(self, waiting: Iterable[_Waiting]) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = {}
        for each in waiting:
            partition = each.records.partition
            data = PartitionProduceData(index=partition.partition, records=self._sealed(each))
            topics.setdefault(partition.topic, []).append(data)
        return ProduceRequest(
            transactional_id=self._identity.transactional_id,
            acks=self._options.acks,
            timeout_ms=int(1000 * self._options.client.timeout_s),
            topic_data=[
                TopicProduceData(name=name, partition_data=data) for name, data in topics.items()
            ],
        )

    def _sealed(self, waiting: _Waiting) -> bytearray:
        records = waiting.records
        timestamps = records.rows.timestamps
        return seal_batch(
            records.payload,
            len(records),
            base_offset=0,
            last_offset_delta=len(records) - 1,
            base_timestamp=int(timestamps[0]),
            max_timestamp=int(timestamps.max()),
            compression=self._options.compression,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.epoch,
            base_sequence=waiting.sequence,
            is_transactional=self._identity.transactional_id is not None,
        )

    # Answers.

    def _receive(self, connection: Connection) -> None:
        answer, _ = connection.receive()
        for topic in answer.responses:
            for told in topic.partition_responses:
                self._answered(TopicPartition(topic.name, told.index), told)

    def _answered(self, partition: TopicPartition, told: PartitionProduceResponse) -> None:
        """
        Answers of a partition come in the order of its batches. What was sent behind a batch that
        failed is sent again with it, whatever became of it.
        """
        if partition in self._broken:
            return
        queue = self._waiting[partition]
        if told.error_code in _THERE:
            for _ in range(self._aside.pop(partition, 0) + 1):
                self.written += len(queue.popleft().records)
            return
        self._broken.add(partition)
        if self._is_recovering and told.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self._aside[partition] = self._aside.get(partition, 0) + 1
            if self._aside[partition] < len(queue):
                return
        if told.error_code in _TOO_LARGE and len(queue[0].records) > 1:
            self._split(queue)
        elif told.error_code not in MAY_PASS:
            raise self._refused(queue[0].records, told)
        self._note(BrokerError.of(told.error_code, f"{partition} takes no records"))

    @staticmethod
    def _split(queue: deque[_Waiting]) -> None:
        first = queue.popleft()
        sequence = first.sequence
        made = []
        for half in halves(first.records):
            made.append(_Waiting(half, sequence))
            if sequence != NO_SEQUENCE:
                sequence = increment_sequence(sequence, len(half))
        queue.extendleft(reversed(made))

    def _note(self, error: BrokerError | Disconnected) -> None:
        if self._failed is None:
            self._failed = error

    def _drain(self) -> None:
        """
        Wait for the answers to all that was sent.
        """
        for connection in self._connections:
            try:
                while connection.unanswered and not connection.is_closed:
                    self._receive(connection)
            except Disconnected as error:
                self._note(error)
        self._note_lost()
        self._connections.clear()

    def _note_lost(self) -> None:
        """
        A question that was tried again, over new connections, has closed the old ones.
        """
        for connection in self._connections:
            if connection.is_closed and connection.unanswered:
                self._note(Disconnected(f"The connection to {connection.address} is lost."))

    def _recover(self) -> None:
        """
        Send what is waiting, a batch of each partition at a time.
        """
        patience = self._cluster.patience()
        self._drain()
        self._is_recovering = True
        try:
            self._send_again(patience)
        finally:
            self._is_recovering = False

    def _send_again(self, patience: Patience) -> None:
        while True:
            failed, self._failed = self._failed, None
            if failed is not None:
                self._wait(failed, patience)
            self._broken.clear()
            if failed is not None:
                self._aside.clear()
            for partition, queue in self._waiting.items():
                for number, each in enumerate(queue):
                    each.is_sent = number < self._aside.get(partition, 0)
            if not any(self._waiting.values()):
                return
            before = self.written
            try:
                for connection, request in self._next_requests():
                    connection.send(request)
            except (Disconnected, BrokerError) as error:
                self._note(error)
            self._drain()
            if self.written > before:
                patience.restart()

    def _wait(self, failed: BrokerError | Disconnected, patience: Patience) -> None:
        if isinstance(failed, BrokerError) and failed.code in _TOO_LARGE:
            # There are smaller batches now.
            return
        try:
            patience.after(failed)
        except (BrokerError, Disconnected) as error:
            queue = next(filter(None, self._waiting.values()), None)
            if queue is None:
                raise
            code = error.code if isinstance(error, BrokerError) else ErrorCode.NETWORK_EXCEPTION
            raise self._row_error(queue[0].records, 0, str(error), code=code) from error
        self._cluster.forget()

    def _refused(self, records: RecordSet, told: PartitionProduceResponse) -> RowError:
        named = [each for each in told.record_errors or () if each.batch_index < len(records)]
        index = named[0].batch_index if named else 0
        why = (named[0].batch_index_error_message if named else None) or told.error_message
        error = BrokerError.of(told.error_code, "")
        reason = f"{error.sentence.removeprefix(': ')}{f' {why}' if why else ''}"
        return self._row_error(
            records, index, reason, whole=not named and len(records) > 1, code=told.error_code
        )

    def _row_error(
        self,
        records: RecordSet,
        index: int,
        reason: str,
        *,
        whole: bool = False,
        code: int = ErrorCode.MESSAGE_TOO_LARGE,
    ) -> RowError:
        name = records.rows.name(index, self._task)
        if whole:
            last = records.rows.numbers[-1]
            name = f"{name}, or another row up to row {last}"
        return RowError(code, f"{records.partition} does not take {name}: {reason}")
