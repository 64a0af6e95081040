"""
A transactional id: its producer and its transaction.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.coordination.transactions.state import PREVIOUS, TransactionState
from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from barnabas.protocol.structs import replace, struct
from barnabas.storage.topic_partition import TopicPartition

MAX_EPOCH: Final = 2**15 - 1
"""
The epoch that no producer gets: it fences the last producer of a producer id.
"""


def is_exhausted(producer_epoch: int) -> bool:
    """
    Whether the producer id has no later epoch for another producer.
    """
    return producer_epoch >= MAX_EPOCH - 1


@struct(kw_only=True)
class Transaction:
    """
    A transactional id: its producer, and its ongoing or last transaction.

    Invariants:

    1. It is immutable; ``become`` makes the next state (Kafka's ``TransactionMetadata`` and
       ``TxnTransitMetadata`` in one).
    2. ``partitions`` grow while the transaction is ongoing, and are empty once it is complete.
    """

    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """The id of the producer after this transaction, if its epochs are exhausted."""
    producer_epoch: int
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The previous epoch, which identifies a repeated request. Not in the log, as in Kafka."""
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    updated_ms: int
    client_version: int = 0
    """The ``transaction.version`` (0, 1 or 2) of the client whose request led to this state."""

    @property
    def is_exhausted(self) -> bool:
        """
        See ``is_exhausted``.
        """
        return is_exhausted(self.producer_epoch)

    def become(self, state: TransactionState, **changes: Any) -> Transaction:
        """
        The next state, with *changes* of other fields.
        """
        assert self.state in PREVIOUS[state], f"{self.state} -> {state}"
        changes.setdefault("previous_producer_id", self.producer_id)
        return replace(self, state=state, **changes)
