"""
The end of a transaction: by EndTxn, by a timeout, or by a producer that fences its predecessor.

With ``transaction.version`` 1 (TV1) a producer keeps its epoch over many transactions, and a
repeated EndTxn is answered as the first. With TV2 (KIP-890) each end raises the epoch, so that no
late record slips into the next transaction; a request with the previous epoch is a repetition. A
TV2 producer may also abort a transaction that has not begun.

::

    TV2                 abort, again   abort    commit, again   commit
    EMPTY               fenced         raised   fenced          INVALID_TXN_STATE
    COMPLETE_ABORT      as before      raised   INVALID_...     INVALID_TXN_STATE
    COMPLETE_COMMIT     INVALID_...    raised   as before       INVALID_TXN_STATE

Source: Kafka's ``TransactionCoordinator.endTransaction`` and ``endTransactionWithTV1``.
"""

from __future__ import annotations

from typing import Final

from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.coordination.transactions.state import TransactionState
from barnabas.coordination.transactions.transaction import MAX_EPOCH, Transaction
from barnabas.protocol.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
)
from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

S = TransactionState

TV2: Final = 2
"""
The ``transaction.version`` from which on each end of a transaction raises the epoch.
"""


def _prepared(commit: bool) -> TransactionState:
    return S.PREPARE_COMMIT if commit else S.PREPARE_ABORT


def _completed(commit: bool) -> TransactionState:
    return S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT


def _wrong_state(current: Transaction, commit: bool) -> InvalidTxnState:
    return InvalidTxnState(
        f"It cannot be {'committed' if commit else 'aborted'}: it is {current.state.title}"
    )


def check_named(current: Transaction, producer: ProducerIdAndEpoch) -> None:
    """
    See whether a producer has this transactional id (TV1).

    Raises:
        InvalidProducerIdMapping: the id belongs to another producer id.
        ProducerFenced: the id has a later epoch.
    """
    if current.producer_id != producer.producer_id:
        raise InvalidProducerIdMapping(
            f"The transactional id belongs to producer {current.producer_id}"
        )
    if current.producer_epoch != producer.producer_epoch:
        raise ProducerFenced(
            f"The epoch is {current.producer_epoch}, and not {producer.producer_epoch}"
        )


def end(
    current: Transaction, producer: ProducerIdAndEpoch, *, commit: bool, now_ms: int
) -> Transaction:
    """
    End a transaction (TV1).

    Returns:
        The next state, which is prepared; *current* itself if the transaction has ended that way.

    Raises:
        InvalidProducerIdMapping: the id belongs to another producer id.
        ProducerFenced: the id has a later epoch.
        ConcurrentTransactions: the same end is prepared, and not complete yet.
        InvalidTxnState: no transaction has begun, or it ends the other way.
    """
    check_named(current, producer)
    if current.state is S.ONGOING:
        return current.become(_prepared(commit), updated_ms=now_ms, client_version=0)
    if current.state is _completed(commit):
        return current
    if current.state is _prepared(commit):
        raise ConcurrentTransactions("The transaction is about to end")
    raise _wrong_state(current, commit)


def end_raising_epoch(
    current: Transaction,
    producer: ProducerIdAndEpoch,
    *,
    commit: bool,
    client_version: int,
    new_producer_id: int | None,
    now_ms: int,
) -> Transaction:
    """
    End a transaction, and raise the epoch (TV2).

    Args:
        new_producer_id: an unused id, if *current* ``is_exhausted``.

    Returns:
        The next state, which is prepared; *current* itself if the request is a repetition.

    Raises:
        InvalidProducerIdMapping, ProducerFenced, ConcurrentTransactions, InvalidTxnState: see
            ``end``.
    """
    got_next_id = (
        producer.producer_id == current.previous_producer_id
        and producer.producer_epoch == MAX_EPOCH - 1
        and current.producer_epoch == 0
    )
    is_repeated = got_next_id or producer.producer_epoch + 1 == current.producer_epoch
    if current.producer_id != producer.producer_id and not got_next_id:
        raise InvalidProducerIdMapping(
            f"The transactional id belongs to producer {current.producer_id}"
        )
    if not _has_epoch(current, producer, is_repeated):
        raise ProducerFenced(
            f"The epoch is {current.producer_epoch}, and not {producer.producer_epoch}"
        )
    if current.state.is_prepared:
        if current.state is _prepared(commit):
            raise ConcurrentTransactions("The transaction is about to end")
        raise _wrong_state(current, commit)
    if is_repeated:
        if current.state is _completed(commit):
            return current
        raise _wrong_state(current, commit)
    if current.state is not S.ONGOING and commit:
        raise _wrong_state(current, commit)
    return _prepare_raising_epoch(
        current,
        commit=commit,
        client_version=client_version,
        new_producer_id=new_producer_id,
        now_ms=now_ms,
    )


def _has_epoch(current: Transaction, producer: ProducerIdAndEpoch, is_repeated: bool) -> bool:
    if current.state.is_prepared:
        return producer.producer_epoch + 1 == current.producer_epoch
    if current.state.is_complete and is_repeated:
        return True
    return producer.producer_epoch == current.producer_epoch


def fence(
    current: Transaction, *, server_version: int, new_producer_id: int | None, now_ms: int
) -> Transaction:
    """
    Abort an ongoing transaction whose producer is too slow, or has a successor.

    The epoch is raised, so that the producer is fenced; no producer gets the new epoch.

    Args:
        server_version: the ``transaction.version`` of the cluster.
        new_producer_id: an unused id, if *current* ``is_exhausted`` and the version is TV2.
    """
    assert current.state is S.ONGOING, current.state
    if server_version >= TV2:
        return _prepare_raising_epoch(
            current,
            commit=False,
            client_version=server_version,
            new_producer_id=new_producer_id,
            now_ms=now_ms,
        )
    return current.become(
        S.PREPARE_ABORT,
        producer_epoch=min(current.producer_epoch + 1, MAX_EPOCH),
        last_producer_epoch=NO_PRODUCER_EPOCH,
        updated_ms=now_ms,
        client_version=0,
    )


def _prepare_raising_epoch(
    current: Transaction,
    *,
    commit: bool,
    client_version: int,
    new_producer_id: int | None,
    now_ms: int,
) -> Transaction:
    begun = current.state is S.ONGOING
    return current.become(
        _prepared(commit),
        # Kafka refuses to raise the last epoch where it aborts only.
        producer_epoch=min(current.producer_epoch + 1, MAX_EPOCH),
        last_producer_epoch=current.producer_epoch,
        next_producer_id=NO_PRODUCER_ID if new_producer_id is None else new_producer_id,
        start_ms=current.start_ms if begun else now_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )


def complete(current: Transaction, now_ms: int) -> Transaction:
    """
    Complete a prepared transaction, whose markers are all written.

    A producer whose epochs are exhausted continues with the next producer id, at epoch 0.
    """
    changes = {}
    if current.client_version >= TV2 and current.next_producer_id != NO_PRODUCER_ID:
        changes = {"producer_id": current.next_producer_id, "producer_epoch": 0}
    return current.become(
        _completed(current.state is S.PREPARE_COMMIT),
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        updated_ms=now_ms,
        **changes,
    )
