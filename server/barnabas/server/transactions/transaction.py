"""
What is known of one transactional id, and its record in ``__transaction_state``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from barnabas.protocol.internal_topics.transaction_records import (
    PartitionsSchema,
    TransactionLogValue,
)
from barnabas.protocol.structs import replace, struct
from barnabas.server.transactions.state import BY_NUMBER, PREVIOUS, TransactionState
from barnabas.storage.state_files.file_names import TopicPartition

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1

MAX_EPOCH: Final = 2**15 - 1
"""
The epoch that no producer is ever given: the coordinator keeps it for fencing the last one.
"""


def is_exhausted(producer_epoch: int) -> bool:
    """
    Whether no producer can have a later epoch of the same producer id.
    """
    return producer_epoch >= MAX_EPOCH - 1


@struct(kw_only=True)
class Transaction:
    """
    A transactional id: its producer, and the transaction that is under way or was the last.

    Invariants:

    1. It is never changed; ``become`` makes the one that follows (Kafka's ``TransactionMetadata``
       and ``TxnTransitMetadata`` in one).
    2. What follows is in the log before anybody is told of it.
    3. ``partitions`` only grow while the transaction is ongoing, and are empty once it has ended.
    """

    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """The id that the producer goes on with after this transaction, if its epochs are used up."""
    producer_epoch: int
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch before, which recognises a repeated request. Not in the log, as in Kafka."""
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    updated_ms: int
    client_version: int = 0
    """The ``transaction.version`` (0, 1 or 2) of the client that brought it into this state."""

    @property
    def is_exhausted(self) -> bool:
        """
        Whether the producer id has no epoch left for another producer.
        """
        return is_exhausted(self.producer_epoch)

    def become(self, state: TransactionState, **changes: Any) -> Transaction:
        """
        What follows this one, in *state*.
        """
        assert self.state in PREVIOUS[state], f"{self.state} -> {state}"
        changes.setdefault("previous_producer_id", self.producer_id)
        return replace(self, state=state, **changes)


def to_record(transaction: Transaction) -> TransactionLogValue:
    """
    The value that is written for a transactional id.
    """
    partitions: list[PartitionsSchema] | None = None
    if transaction.state is not TransactionState.EMPTY:
        by_topic: defaultdict[str, list[int]] = defaultdict(list)
        for topic, index in sorted(transaction.partitions):
            by_topic[topic].append(index)
        partitions = [
            PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in by_topic.items()
        ]
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.number,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )


def from_record(value: TransactionLogValue) -> Transaction:
    """
    What a value says of its transactional id.

    Raises:
        ValueError: its status is none that there is.
    """
    state = BY_NUMBER.get(value.transaction_status)
    if state is None:
        raise ValueError(f"{value.transaction_status} is no status of a transaction")
    listed = value.transaction_partitions or [] if state is not TransactionState.EMPTY else []
    return Transaction(
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(schema.topic, index)
            for schema in listed
            for index in schema.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )
