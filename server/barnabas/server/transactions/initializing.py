"""
What InitProducerId makes of a transactional id (KIP-98, KIP-360).

The producer before is fenced by an epoch that is one higher. A producer that goes on after an error
says who it was: it is given the next epoch if nobody else has come meanwhile, and the same answer
again if it asks twice. Source: Kafka's ``TransactionCoordinator.prepareInitProducerIdTransit`` and
``TransactionMetadata``.
"""

from __future__ import annotations

from barnabas.protocol.errors import ConcurrentTransactions, ProducerFenced
from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH, NO_TIMESTAMP
from barnabas.server.coordinator_runtime.producer import Producer
from barnabas.server.transactions.state import TransactionState
from barnabas.server.transactions.transaction import Transaction, is_exhausted


def new_transaction(producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    """
    A transactional id that was never seen before; no producer has it yet, and the log neither.
    """
    return Transaction(
        producer_id=producer_id,
        producer_epoch=NO_PRODUCER_EPOCH,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        updated_ms=now_ms,
    )


def check(current: Transaction, expected: Producer | None) -> None:
    """
    See whether a producer may have this transactional id now.

    Args:
        expected: who the producer was before, if it says so.

    Raises:
        ProducerFenced: another one has come meanwhile.
        ConcurrentTransactions: the last transaction is about to end; ask again.
    """
    if expected is not None and not _is_known(current, expected):
        raise ProducerFenced("Another producer has this transactional id by now")
    if current.state.is_prepared:
        raise ConcurrentTransactions("The transaction before is about to end")


def _is_known(current: Transaction, expected: Producer) -> bool:
    return (
        current.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == current.producer_id
        # Asked again, after an answer that was lost and that brought a new producer id.
        or (
            expected.producer_id == current.previous_producer_id
            and is_exhausted(expected.producer_epoch)
        )
    )


def needs_producer_id(current: Transaction, expected: Producer | None) -> bool:
    """
    Whether the producer needs another producer id, since this one has no epoch left.
    """
    return current.is_exhausted and (
        expected is None or expected.producer_epoch == current.producer_epoch
    )


def initialize(
    current: Transaction,
    *,
    timeout_ms: int,
    expected: Producer | None,
    new_producer_id: int | None,
    now_ms: int,
) -> Transaction:
    """
    Give the transactional id to a producer; no transaction may be under way.

    Args:
        new_producer_id: an id that was never used, if ``needs_producer_id``.

    Raises:
        ProducerFenced: the epoch that the producer says it had is neither the current one nor the
            one before.
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


def _next_epoch(current: Transaction, expected: Producer | None) -> tuple[int, int]:
    """
    The epoch that a producer is given, and the one that it may have had before.
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
