"""
What comes before a transactional append: the partition has to be part of the transaction.

A partition that has the transaction open already needs nothing. Of another one the log hands out a
guard, without which it takes no batch of the transaction, and the coordinator is asked (KIP-890):

* a producer of the first protocol has added the partition itself, and that is only verified;
* for one of the second protocol it is added now.

Source: Kafka's ``ReplicaManager.handleProduceAppend`` and ``AddPartitionsToTxnManager``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import (
    ConcurrentTransactions,
    ErrorCode,
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
    TransactionAbortable,
    error_for,
)
from barnabas.protocol.named_tuple import NamedTuple
from barnabas.server.coordinator_runtime.producer import Producer
from barnabas.storage.producers.entry import SENTINEL, VerificationGuard
from barnabas.storage.state_files.file_names import TopicPartition

if TYPE_CHECKING:
    from barnabas.server.clock import ServerClock
    from barnabas.server.partitions.partition import Partition
    from barnabas.server.transactions.coordinator import TransactionCoordinator

RETRY_BACKOFF_MS: Final = 20
RETRY_FOR_MS: Final = 100
"""
How often and for how long a partition is added again that could not be, because the transaction
before is about to end: the producer would wait for longer, and send all of its records again.
"""


class Participant(NamedTuple):
    """
    A partition that is about to get records of a transaction.
    """

    partition: Partition
    base_sequence: int

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.partition.topic, self.partition.index)


class Protocol(NamedTuple):
    """
    What the version of a request says of its producer.
    """

    adds: bool
    """Partitions are added here, the producer relies on it."""
    knows_abortable: bool
    """It understands TRANSACTION_ABORTABLE, which before was INVALID_TXN_STATE."""


def guard(
    participant: Participant, producer: Producer, protocol: Protocol
) -> VerificationGuard | None:
    """
    The guard to append with, once the coordinator has been asked; None if there is no need to ask.

    Raises:
        InvalidProducerEpoch: a later producer has been here.
    """
    found = participant.partition.log.maybe_start_transaction_verification(
        producer.producer_id,
        participant.base_sequence,
        producer.producer_epoch,
        supports_epoch_bump=protocol.adds,
    )
    return None if found is SENTINEL else found


def verify(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    producer: Producer,
    partitions: set[TopicPartition],
    protocol: Protocol,
) -> Mapping[TopicPartition, KafkaError]:
    """
    Why partitions are not part of a transaction, in terms of what its producer understands.
    """
    try:
        codes = coordinator.verify_partitions(transactional_id, producer, partitions)
    except KafkaError as error:
        return dict.fromkeys(partitions, told(error, protocol))
    return {
        partition: told(error_for(code)(), protocol)
        for partition, code in codes.items()
        if code is not ErrorCode.NONE
    }


async def add(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    producer: Producer,
    partitions: set[TopicPartition],
    *,
    clock: ServerClock,
) -> KafkaError | None:
    """
    Make partitions part of a transaction; return why that cannot be.
    """
    until_ms = clock.now_ms() + RETRY_FOR_MS
    while True:
        try:
            await coordinator.add_partitions(
                transactional_id, producer, partitions, client_version=2
            )
        except ConcurrentTransactions as error:
            if clock.now_ms() >= until_ms:
                return error
            await clock.sleep(RETRY_BACKOFF_MS / 1000)
        except KafkaError as error:
            return told(error, Protocol(adds=True, knows_abortable=True))
        else:
            return None


def told(error: KafkaError, protocol: Protocol) -> KafkaError:
    """
    The error as producers know it, who never heard of some.
    """
    if isinstance(error, ProducerFenced):
        return InvalidProducerEpoch(str(error))
    if isinstance(error, TransactionAbortable) and not protocol.knows_abortable:
        return InvalidTxnState(str(error))
    return error
