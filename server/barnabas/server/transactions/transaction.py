"""
A transactional id: its producer and its transaction.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from barnabas.protocol.structs import replace, struct
from barnabas.server.transactions.state import PREVIOUS, TransactionState
from barnabas.storage.state_files.file_names import TopicPartition

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
