"""
What the coordinator of transactions says of the partitions of one Produce request.

Partitions that have the transaction open take more of it without being asked about. For the others
the coordinator is asked, or told that they are part of the transaction from now on; what it has
against that is the answer for the partition (Kafka's ``ReplicaManager.handleProduceAppend``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.coordination.steps import checkpoint
from barnabas.coordination.transactions.errors import TransactionProtocol
from barnabas.protocol.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    NotCoordinator,
    NotEnoughReplicas,
    without_frames,
)
from barnabas.protocol.messages.produce import (
    FIRST_TOPIC_ID_VERSION,
    PartitionProduceData,
    TopicProduceData,
)
from barnabas.protocol.records.batch import RecordBatch, batches
from barnabas.server.partitions.partition import Partition
from barnabas.server.produce.validation import is_transactional
from barnabas.server.requests.context import RequestContext
from barnabas.server.transactions.participation import Participant, add, guard, verify
from barnabas.storage.producers.entry import SENTINEL, VerificationGuard
from barnabas.storage.topic_partition import TopicPartition

FIRST_ABORTABLE_VERSION: Final = 11
FIRST_ADDING_VERSION: Final = 12
"""The first version that adds partitions to a transaction by itself (KIP-890)."""
NOT_ADDED: Final = "Partition was not added to the transaction"

_ASK_AGAIN = (CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator)


class Participation:
    """
    Guards and errors of the partitions of one request.

    Invariants:

    1. A partition that the transaction is not open in has a guard, an error, or both.
    2. While ``is_pending``, the coordinator has not been told yet.
    """

    __slots__ = ("_errors", "_guards", "_producer", "_protocol", "_transactional_id", "is_pending")

    def __init__(self, transactional_id: str, version: int) -> None:
        self._transactional_id = transactional_id
        self._protocol = TransactionProtocol(
            adds=version >= FIRST_ADDING_VERSION, knows_abortable=version >= FIRST_ABORTABLE_VERSION
        )
        self._producer: ProducerIdAndEpoch | None = None
        self._guards: dict[TopicPartition, VerificationGuard] = {}
        self._errors: dict[TopicPartition, KafkaError] = {}
        self.is_pending = False

    async def begin(self, topics: Sequence[TopicProduceData], context: RequestContext) -> None:
        """
        Look at the partitions, and ask the coordinator where that is enough.

        Raises:
            InvalidProducerIdMapping: the request has transactions of several producers.
            CorruptMessage: the framing of a batch is broken.
        """
        if not (
            self._protocol.adds or context.broker.config.transaction_partition_verification_enable
        ):
            return
        for topic in topics:
            for data in topic.partition_data:
                await checkpoint()
                partition = _partition(topic, data, context)
                if partition is not None and is_transactional(data.records):
                    self._look(partition, next(batches(data.records or b"")))
        if not self._guards:
            return
        if self._protocol.adds:
            self.is_pending = True
            return
        self._errors |= verify(
            context.broker.transactions,
            self._transactional_id,
            self._expect_producer(),
            set(self._guards),
            self._protocol,
        )

    def _look(self, partition: Partition, batch: RecordBatch) -> None:
        producer = ProducerIdAndEpoch(batch.producer_id, batch.producer_epoch)
        if self._producer not in (None, producer):
            raise InvalidProducerIdMapping(
                "Transactional records contained more than one producer ID"
            )
        self._producer = producer
        participant = Participant(partition, batch.base_sequence)
        try:
            found = guard(participant, producer, self._protocol)
        except KafkaError as error:
            self._errors[participant.name] = without_frames(error)
        else:
            if found is not None:
                self._guards[participant.name] = found

    async def finish(self, context: RequestContext) -> None:
        """
        Tell the coordinator of the partitions that are part of the transaction from now on.
        """
        error = await add(
            context.broker.transactions,
            self._transactional_id,
            self._expect_producer(),
            set(self._guards),
            clock=context.broker.clock,
        )
        self.is_pending = False
        if error is not None:
            self._errors |= dict.fromkeys(self._guards, error)

    def _expect_producer(self) -> ProducerIdAndEpoch:
        assert self._producer is not None, "there is a guard"
        return self._producer

    def guard(self, partition: Partition) -> VerificationGuard:
        """
        What the records of a partition are appended with.

        Raises:
            KafkaError: they are not; the error is what the producer is told.
        """
        name = TopicPartition(partition.topic, partition.index)
        error = self._errors.get(name)
        if error is not None:
            raise self._told(error).with_traceback(None)
        return self._guards.get(name, SENTINEL)

    def _told(self, error: KafkaError) -> KafkaError:
        """
        The error as a producer takes it: it has no coordinator to look for, and waits for replicas.
        """
        if isinstance(error, InvalidTxnState):
            return InvalidTxnState(NOT_ADDED)
        if isinstance(error, _ASK_AGAIN) or (
            isinstance(error, ConcurrentTransactions) and not self._protocol.adds
        ):
            return NotEnoughReplicas(
                "Unable to verify the partition has been added to the transaction."
                f" Underlying error: {self._as_seen_by_leader(error).name}"
            )
        return error

    @staticmethod
    def _as_seen_by_leader(error: KafkaError) -> ErrorCode:
        """
        A leader that finds no coordinator says so; there is none before its topic is there.
        """
        return CoordinatorNotAvailable.code if isinstance(error, NotCoordinator) else error.code


def _partition(
    topic: TopicProduceData, data: PartitionProduceData, context: RequestContext
) -> Partition | None:
    """
    The partition, unless there is none; that is answered where its records are looked at.
    """
    try:
        if context.version >= FIRST_TOPIC_ID_VERSION:
            return context.broker.partitions.expect_by_id(topic.topic_id, data.index)
        return context.broker.partitions.expect(topic.name, data.index)
    except KafkaError:
        return None
