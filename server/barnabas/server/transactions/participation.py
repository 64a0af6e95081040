"""
The verification before a transactional append: the partition has to be part of the transaction.

A partition that has the transaction open already needs none. The log of another one hands out a
guard, without which it refuses batches of the transaction, and the coordinator is asked (KIP-890):

* a TV1 producer has added the partition itself, which is verified;
* for a TV2 producer the partition is added now.

Source: Kafka's ``ReplicaManager.handleProduceAppend`` and ``AddPartitionsToTxnManager``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.coordination.transactions.ending import TV2
from barnabas.coordination.transactions.errors import TransactionProtocol, producer_error
from barnabas.protocol.errors import ConcurrentTransactions, ErrorCode, KafkaError, error_for
from barnabas.protocol.records.batch import NO_SEQUENCE
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.producers.entry import SENTINEL, VerificationGuard
from barnabas.storage.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock
    from barnabas.server.partitions.partition import Partition
    from barnabas.server.transactions.coordinator import TransactionCoordinator

RETRY_BACKOFF_MS: Final = 20
RETRY_FOR_MS: Final = 100
"""
The time between two attempts to add a partition while the previous transaction is completing, and
the time for all of them (Kafka's ``add.partitions.to.txn.retry.backoff.ms`` and ``.max.ms``).
"""


class Participant(NamedTuple):
    """
    A partition of a transactional append.
    """

    partition: Partition
    base_sequence: int

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.partition.topic, self.partition.index)


def guard(
    participant: Participant, producer: ProducerIdAndEpoch, protocol: TransactionProtocol
) -> VerificationGuard | None:
    """
    The guard of an append that the coordinator has to verify; None if that is not necessary.

    Raises:
        InvalidProducerEpoch: the partition knows a later epoch of the producer.
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
    producer: ProducerIdAndEpoch,
    partitions: set[TopicPartition],
    protocol: TransactionProtocol,
) -> Mapping[TopicPartition, KafkaError]:
    """
    The errors of the partitions that are not part of a transaction, as its producer knows them.
    """
    try:
        codes = coordinator.verify_partitions(transactional_id, producer, partitions)
    except KafkaError as error:
        return dict.fromkeys(partitions, producer_error(error, protocol))
    return {
        partition: producer_error(error_for(code)(), protocol)
        for partition, code in codes.items()
        if code is not ErrorCode.NONE
    }


async def add(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: set[TopicPartition],
    *,
    clock: ServerClock,
) -> KafkaError | None:
    """
    Add partitions to a transaction; return the error that refused them, if any.
    """
    until_ms = clock.now_ms() + RETRY_FOR_MS
    while True:
        try:
            await coordinator.add_partitions(
                transactional_id, producer, partitions, client_version=TV2
            )
        except ConcurrentTransactions as error:
            if clock.now_ms() >= until_ms:
                return error
            await clock.sleep(RETRY_BACKOFF_MS / 1000)
        except KafkaError as error:
            return producer_error(error, TransactionProtocol(adds=True, knows_abortable=True))
        else:
            return None


async def join(
    coordinator: Callable[[], TransactionCoordinator],
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partition: Partition,
    protocol: TransactionProtocol,
    *,
    clock: ServerClock,
) -> VerificationGuard:
    """
    See to it that a partition of the offsets topic is part of a transaction.

    Args:
        coordinator: returns the coordinator, which is created if nobody has needed it before.

    Returns:
        What the offsets are appended with.

    Raises:
        KafkaError: it is not, and cannot be.
    """
    participant = Participant(partition, NO_SEQUENCE)
    found = guard(participant, producer, protocol)
    if found is None:
        return SENTINEL
    name = participant.name
    error: KafkaError | None
    if protocol.adds:
        error = await add(coordinator(), transactional_id, producer, {name}, clock=clock)
    else:
        error = verify(coordinator(), transactional_id, producer, {name}, protocol).get(name)
    if error is not None:
        raise error
    return found
