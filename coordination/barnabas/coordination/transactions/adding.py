"""
AddPartitionsToTxn and AddOffsetsToTxn: partitions become part of a transaction.

Source: Kafka's ``TransactionCoordinator.handleAddPartitionsToTransaction``.
"""

from __future__ import annotations

from collections.abc import Set

from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.coordination.transactions.ending import check_named
from barnabas.coordination.transactions.state import TransactionState
from barnabas.coordination.transactions.transaction import Transaction
from barnabas.protocol.errors import (
    ConcurrentTransactions,
    ErrorCode,
)
from barnabas.storage.topic_partition import TopicPartition


def check_producer(current: Transaction, producer: ProducerIdAndEpoch) -> None:
    """
    See whether a producer has this transactional id, and may change its transaction now.

    Raises:
        InvalidProducerIdMapping: the id belongs to another producer id.
        ProducerFenced: the id has a later epoch.
        ConcurrentTransactions: the previous transaction is still completing.
    """
    check_named(current, producer)
    if current.state.is_prepared:
        raise ConcurrentTransactions("The transaction before is about to end")


def add_partitions(
    current: Transaction,
    producer: ProducerIdAndEpoch,
    partitions: Set[TopicPartition],
    *,
    client_version: int,
    now_ms: int,
) -> Transaction:
    """
    Add partitions to the transaction, which begins if none is ongoing.

    Returns:
        The next state; *current* itself if the partitions are part of it already.

    Raises:
        InvalidProducerIdMapping, ProducerFenced, ConcurrentTransactions: see ``check_producer``.
    """
    check_producer(current, producer)
    ongoing = current.state is TransactionState.ONGOING
    if ongoing and partitions <= current.partitions:
        return current
    return current.become(
        TransactionState.ONGOING,
        partitions=current.partitions.union(partitions),
        start_ms=current.start_ms if ongoing else now_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )


def verify_partitions(
    current: Transaction, producer: ProducerIdAndEpoch, partitions: Set[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """
    The code of each partition: ``TRANSACTION_ABORTABLE`` if it is not part of the transaction
    (KIP-890).

    Raises:
        InvalidProducerIdMapping, ProducerFenced, ConcurrentTransactions: see ``check_producer``.
    """
    check_producer(current, producer)
    return {
        partition: (
            ErrorCode.NONE if partition in current.partitions else ErrorCode.TRANSACTION_ABORTABLE
        )
        for partition in partitions
    }
