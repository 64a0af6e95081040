"""
InitProducerId: a producer gets a transactional id (KIP-98, KIP-360).

The next epoch fences the previous producer. A producer that continues after an error sends the
identity that it had: it gets the next epoch unless another producer came in between, and the same
answer if it repeats the request. Source: Kafka's ``TransactionMetadata`` and
``TransactionCoordinator.prepareInitProducerIdTransit``.
"""

from __future__ import annotations

from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.coordination.transactions.state import TransactionState
from barnabas.coordination.transactions.transaction import Transaction, is_exhausted
from barnabas.protocol.errors import ConcurrentTransactions, ProducerFenced
from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH, NO_TIMESTAMP


def new_transaction(producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    """
    The state of a new transactional id, which has no producer and no record yet.
    """
    return Transaction(
        producer_id=producer_id,
        producer_epoch=NO_PRODUCER_EPOCH,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        updated_ms=now_ms,
    )


def check(current: Transaction, expected: ProducerIdAndEpoch | None) -> None:
    """
    See whether a producer may have this transactional id now.

    Args:
        expected: the identity that the producer had before, if the request has one.

    Raises:
        ProducerFenced: another producer has the id.
        ConcurrentTransactions: the previous transaction is still completing.
    """
    if expected is not None and not _is_known(current, expected):
        raise ProducerFenced("Another producer has this transactional id by now")
    if current.state.is_prepared:
        raise ConcurrentTransactions("The transaction before is about to end")


def _is_known(current: Transaction, expected: ProducerIdAndEpoch) -> bool:
    return (
        current.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == current.producer_id
        # A repetition: the lost answer had a new producer id.
        or (
            expected.producer_id == current.previous_producer_id
            and is_exhausted(expected.producer_epoch)
        )
    )


def needs_producer_id(current: Transaction, expected: ProducerIdAndEpoch | None) -> bool:
    """
    Whether the producer needs another producer id, since the epochs of this one are exhausted.
    """
    return current.is_exhausted and (
        expected is None or expected.producer_epoch == current.producer_epoch
    )


def initialize(
    current: Transaction,
    *,
    timeout_ms: int,
    expected: ProducerIdAndEpoch | None,
    new_producer_id: int | None,
    now_ms: int,
) -> Transaction:
    """
    Assign the transactional id to a producer; no transaction may be ongoing.

    Args:
        new_producer_id: an unused id, if ``needs_producer_id``.

    Raises:
        ProducerFenced: the expected epoch is neither the current nor the previous one.
    """
    if new_producer_id is not None:
        producer_id, epoch = new_producer_id, 0
        last = NO_PRODUCER_EPOCH if expected is None else current.producer_epoch
    else:
        producer_id = current.producer_id
        epoch, last = _next_epoch(current, expected)
    return current.become(
        TransactionState.EMPTY,
        producer_id=producer_id,
        producer_epoch=epoch,
        last_producer_epoch=last,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_ms=NO_TIMESTAMP,
        updated_ms=now_ms,
    )


def _next_epoch(current: Transaction, expected: ProducerIdAndEpoch | None) -> tuple[int, int]:
    """
    The producer's epoch, and its previous one.
    """
    epoch = current.producer_epoch
    if expected is None:
        return epoch + 1, NO_PRODUCER_EPOCH
    if epoch in (NO_PRODUCER_EPOCH, expected.producer_epoch):
        return epoch + 1, epoch
    if expected.producer_epoch == current.last_producer_epoch:
        return epoch, current.last_producer_epoch
    raise ProducerFenced(
        f"The epoch is {epoch} by now, and {expected.producer_epoch} was not the one before"
    )
