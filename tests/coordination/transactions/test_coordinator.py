"""
What requests make of a transactional id: each state, each kind of request, as Apache Kafka has it.
"""

from __future__ import annotations

from itertools import product

import pytest

from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.coordination.transactions.adding import add_partitions, verify_partitions
from barnabas.coordination.transactions.ending import complete, end, end_raising_epoch, fence
from barnabas.coordination.transactions.initializing import (
    check,
    initialize,
    needs_producer_id,
    new_transaction,
)
from barnabas.coordination.transactions.records import decode_value, encode_value
from barnabas.coordination.transactions.state import PREVIOUS, TransactionState
from barnabas.coordination.transactions.transaction import MAX_EPOCH, Transaction
from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.errors import (
    ConcurrentTransactions,
    ErrorCode,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
)
from barnabas.protocol.internal_topics.transaction_records import TransactionLogValue
from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from barnabas.protocol.structs import replace
from barnabas.storage.topic_partition import TopicPartition
from tests.support.attributes import assert_has

S = TransactionState
NOW = 1_700_000_000_000
A, B = TopicPartition("a", 0), TopicPartition("b", 7)
ME = ProducerIdAndEpoch(4000, 5)


def transaction(state: TransactionState, **changes: object) -> Transaction:
    """
    A transactional id of producer 4000, epoch 5, in that state.
    """
    begun = state in (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT)
    made = Transaction(
        producer_id=4000,
        producer_epoch=5,
        timeout_ms=60_000,
        state=state,
        partitions=frozenset({A}) if begun else frozenset(),
        start_ms=NOW - 10 if begun else NO_TIMESTAMP,
        updated_ms=NOW - 5,
    )
    return replace(made, **changes)


# Kept in the log


@pytest.mark.parametrize("state", S)
def test_transaction_record_survives_a_round_trip(state: TransactionState) -> None:
    kept = transaction(state, previous_producer_id=3999, next_producer_id=4001, client_version=2)

    assert kept == decode_value(encode_value(kept, 1))


def test_empty_transaction_has_null_partitions_and_a_complete_one_an_empty_list() -> None:
    def partitions(state: TransactionState) -> object:
        value = encode_value(transaction(state), 1)
        return decode(TransactionLogValue, 1, value[2:]).transaction_partitions

    assert partitions(S.EMPTY) is None
    assert [] == partitions(S.COMPLETE_COMMIT)


def test_unknown_transaction_status_is_an_error() -> None:
    value = decode(TransactionLogValue, 1, encode_value(transaction(S.EMPTY), 1)[2:])

    with pytest.raises(ValueError, match="17"):
        decode_value(b"\0\1" + encode(replace(value, transaction_status=17), 1))


@pytest.mark.parametrize(("before", "after"), list(product(S, S)))
def test_transaction_states_follow_the_transition_table(
    before: TransactionState, after: TransactionState
) -> None:
    if before in PREVIOUS[after]:
        assert after is transaction(before).become(after).state
    else:
        with pytest.raises(AssertionError):
            transaction(before).become(after)


# InitProducerId


def test_new_transactional_id_begins_at_epoch_0() -> None:
    new = new_transaction(77, 60_000, NOW)

    made = initialize(new, timeout_ms=60_000, expected=None, new_producer_id=None, now_ms=NOW)

    assert_has(made, producer_id=77, producer_epoch=0, last_producer_epoch=NO_PRODUCER_EPOCH)
    assert S.EMPTY is made.state


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_new_producer_fences_its_predecessor(state: TransactionState) -> None:
    current = transaction(state, client_version=2)

    check(current, None)
    made = initialize(current, timeout_ms=1000, expected=None, new_producer_id=None, now_ms=NOW)

    assert_has(made, producer_id=4000, producer_epoch=6, last_producer_epoch=NO_PRODUCER_EPOCH)
    assert (1000, NOW, NO_TIMESTAMP) == (made.timeout_ms, made.updated_ms, made.start_ms)
    assert 4000 == made.previous_producer_id


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_new_producer_waits_for_the_end_of_the_previous_transaction(
    state: TransactionState,
) -> None:
    with pytest.raises(ConcurrentTransactions):
        check(transaction(state), None)


def test_recovering_producer_gets_the_next_epoch_and_may_retry() -> None:
    first = initialize(
        transaction(S.EMPTY), timeout_ms=1, expected=ME, new_producer_id=None, now_ms=NOW
    )
    again = initialize(first, timeout_ms=1, expected=ME, new_producer_id=None, now_ms=NOW + 1)

    assert (6, 5) == (first.producer_epoch, first.last_producer_epoch)
    assert (6, 5) == (again.producer_epoch, again.last_producer_epoch)


@pytest.mark.parametrize("epoch", [3, 4, 6])
def test_fenced_producer_cannot_recover(epoch: int) -> None:
    with pytest.raises(ProducerFenced):
        initialize(
            transaction(S.EMPTY, last_producer_epoch=2),
            timeout_ms=1,
            expected=ProducerIdAndEpoch(4000, epoch),
            new_producer_id=None,
            now_ms=NOW,
        )


@pytest.mark.parametrize(
    ("expected", "known"),
    [
        (ProducerIdAndEpoch(4000, 1), True),
        (ProducerIdAndEpoch(3999, 5), False),
        (ProducerIdAndEpoch(3999, MAX_EPOCH - 1), True),
        (ProducerIdAndEpoch(3998, MAX_EPOCH - 1), False),
    ],
)
def test_other_producer_id_is_accepted_only_after_epoch_exhaustion(
    expected: ProducerIdAndEpoch, known: bool
) -> None:
    current = transaction(S.EMPTY, previous_producer_id=3999)
    if known:
        check(current, expected)
    else:
        with pytest.raises(ProducerFenced):
            check(current, expected)


def test_producer_id_without_epochs_left_is_replaced() -> None:
    current = transaction(S.COMPLETE_COMMIT, producer_epoch=MAX_EPOCH - 1)
    me = ProducerIdAndEpoch(4000, MAX_EPOCH - 1)

    assert needs_producer_id(current, None)
    assert needs_producer_id(current, me)
    assert not needs_producer_id(current, ProducerIdAndEpoch(4000, 3))
    assert not needs_producer_id(transaction(S.EMPTY, producer_epoch=MAX_EPOCH - 2), None)
    made = initialize(current, timeout_ms=1, expected=me, new_producer_id=4001, now_ms=NOW)
    assert (4001, 0, 4000) == (made.producer_id, made.producer_epoch, made.previous_producer_id)
    assert MAX_EPOCH - 1 == made.last_producer_epoch


# AddPartitionsToTxn


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_first_partitions_begin_a_transaction(state: TransactionState) -> None:
    made = add_partitions(transaction(state), ME, {A, B}, client_version=2, now_ms=NOW)

    assert S.ONGOING is made.state
    assert {A, B} == made.partitions
    assert (NOW, NOW, 2) == (made.start_ms, made.updated_ms, made.client_version)


def test_further_partitions_join_the_ongoing_transaction() -> None:
    current = transaction(S.ONGOING)

    made = add_partitions(current, ME, {B}, client_version=0, now_ms=NOW)

    assert {A, B} == made.partitions
    assert (NOW - 10, NOW) == (made.start_ms, made.updated_ms)
    assert current is add_partitions(current, ME, {A}, client_version=0, now_ms=NOW)


@pytest.mark.parametrize(
    ("state", "producer", "error"),
    [
        (S.ONGOING, ProducerIdAndEpoch(1, 5), InvalidProducerIdMapping),
        (S.ONGOING, ProducerIdAndEpoch(4000, 4), ProducerFenced),
        (S.ONGOING, ProducerIdAndEpoch(4000, 6), ProducerFenced),
        (S.PREPARE_COMMIT, ME, ConcurrentTransactions),
        (S.PREPARE_ABORT, ME, ConcurrentTransactions),
        (S.PREPARE_ABORT, ProducerIdAndEpoch(4000, 4), ProducerFenced),
    ],
)
def test_partitions_are_refused_in_unsuitable_states(
    state: TransactionState, producer: ProducerIdAndEpoch, error: type[KafkaError]
) -> None:
    with pytest.raises(error):
        add_partitions(transaction(state), producer, {A}, client_version=0, now_ms=NOW)
    with pytest.raises(error):
        verify_partitions(transaction(state), producer, {A})


def test_partitions_outside_the_transaction_are_reported() -> None:
    found = verify_partitions(transaction(S.ONGOING), ME, {A, B})

    assert {A: ErrorCode.NONE, B: ErrorCode.TRANSACTION_ABORTABLE} == found


# EndTxn, first protocol

REPEATED = "repeated"


@pytest.mark.parametrize(
    ("state", "commit", "outcome"),
    [
        (S.EMPTY, True, InvalidTxnState),
        (S.EMPTY, False, InvalidTxnState),
        (S.ONGOING, True, S.PREPARE_COMMIT),
        (S.ONGOING, False, S.PREPARE_ABORT),
        (S.PREPARE_COMMIT, True, ConcurrentTransactions),
        (S.PREPARE_COMMIT, False, InvalidTxnState),
        (S.PREPARE_ABORT, True, InvalidTxnState),
        (S.PREPARE_ABORT, False, ConcurrentTransactions),
        (S.COMPLETE_COMMIT, True, REPEATED),
        (S.COMPLETE_COMMIT, False, InvalidTxnState),
        (S.COMPLETE_ABORT, True, InvalidTxnState),
        (S.COMPLETE_ABORT, False, REPEATED),
    ],
)
def test_transaction_version_1_ends_without_an_epoch_bump(
    state: TransactionState, commit: bool, outcome: object
) -> None:
    current = transaction(state)
    if isinstance(outcome, type):
        with pytest.raises(outcome):
            end(current, ME, commit=commit, now_ms=NOW)
        return
    made = end(current, ME, commit=commit, now_ms=NOW)
    if outcome is REPEATED:
        assert current is made
    else:
        assert outcome is made.state
        assert (5, frozenset({A})) == (made.producer_epoch, made.partitions)


@pytest.mark.parametrize(
    ("producer", "error"),
    [
        (ProducerIdAndEpoch(1, 5), InvalidProducerIdMapping),
        (ProducerIdAndEpoch(4000, 4), ProducerFenced),
        (ProducerIdAndEpoch(4000, 6), ProducerFenced),
    ],
)
@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.COMPLETE_COMMIT])
def test_other_producer_cannot_end_the_transaction(
    state: TransactionState, producer: ProducerIdAndEpoch, error: type[KafkaError]
) -> None:
    with pytest.raises(error):
        end(transaction(state), producer, commit=True, now_ms=NOW)


# EndTxn, second protocol

RAISED = "raised"


@pytest.mark.parametrize(
    ("state", "commit", "now", "again"),
    [
        (S.ONGOING, True, RAISED, ProducerFenced),
        (S.ONGOING, False, RAISED, ProducerFenced),
        (S.PREPARE_COMMIT, True, ProducerFenced, ConcurrentTransactions),
        (S.PREPARE_COMMIT, False, ProducerFenced, InvalidTxnState),
        (S.PREPARE_ABORT, True, ProducerFenced, InvalidTxnState),
        (S.PREPARE_ABORT, False, ProducerFenced, ConcurrentTransactions),
        (S.COMPLETE_COMMIT, True, InvalidTxnState, REPEATED),
        (S.COMPLETE_COMMIT, False, RAISED, InvalidTxnState),
        (S.COMPLETE_ABORT, True, InvalidTxnState, InvalidTxnState),
        (S.COMPLETE_ABORT, False, RAISED, REPEATED),
        (S.EMPTY, True, InvalidTxnState, ProducerFenced),
        (S.EMPTY, False, RAISED, ProducerFenced),
    ],
)
@pytest.mark.parametrize("is_again", [False, True])
def test_transaction_version_2_ends_with_an_epoch_bump(
    state: TransactionState, commit: bool, now: object, again: object, is_again: bool
) -> None:
    current = transaction(state)
    producer = ProducerIdAndEpoch(4000, 4) if is_again else ME
    outcome = again if is_again else now

    def ask() -> Transaction:
        return end_raising_epoch(
            current, producer, commit=commit, client_version=2, new_producer_id=None, now_ms=NOW
        )

    if isinstance(outcome, type):
        with pytest.raises(outcome):
            ask()
    elif outcome is REPEATED:
        assert current is ask()
    else:
        made = ask()
        assert (S.PREPARE_COMMIT if commit else S.PREPARE_ABORT) is made.state
        assert (6, 5, 2) == (made.producer_epoch, made.last_producer_epoch, made.client_version)
        assert (NOW - 10 if state is S.ONGOING else NOW) == made.start_ms


def test_last_epoch_leads_to_another_producer_id() -> None:
    current = transaction(S.ONGOING, producer_epoch=MAX_EPOCH - 1)
    me = ProducerIdAndEpoch(4000, MAX_EPOCH - 1)

    prepared = end_raising_epoch(
        current, me, commit=True, client_version=2, new_producer_id=4001, now_ms=NOW
    )
    completed = complete(prepared, NOW + 1)
    again = end_raising_epoch(
        completed, me, commit=True, client_version=2, new_producer_id=None, now_ms=NOW + 2
    )

    assert_has(prepared, producer_id=4000, producer_epoch=MAX_EPOCH, next_producer_id=4001)
    assert (4001, 0, 4000, NO_PRODUCER_ID) == (
        completed.producer_id,
        completed.producer_epoch,
        completed.previous_producer_id,
        completed.next_producer_id,
    )
    assert completed is again


# Timeouts, and producers that fence others


@pytest.mark.parametrize(("version", "last_epoch"), [(0, NO_PRODUCER_EPOCH), (2, 5)])
def test_fencing_raises_the_epoch_once(version: int, last_epoch: int) -> None:
    made = fence(transaction(S.ONGOING), server_version=version, new_producer_id=None, now_ms=NOW)

    assert (S.PREPARE_ABORT, 6, last_epoch) == (
        made.state,
        made.producer_epoch,
        made.last_producer_epoch,
    )


@pytest.mark.parametrize("version", [0, 2])
def test_epoch_never_exceeds_the_maximum(version: int) -> None:
    current = transaction(S.ONGOING, producer_epoch=MAX_EPOCH)

    made = fence(current, server_version=version, new_producer_id=9, now_ms=NOW)

    assert MAX_EPOCH == made.producer_epoch


@pytest.mark.parametrize(
    ("before", "after"),
    [(S.PREPARE_COMMIT, S.COMPLETE_COMMIT), (S.PREPARE_ABORT, S.COMPLETE_ABORT)],
)
def test_completed_transaction_has_no_partitions(
    before: TransactionState, after: TransactionState
) -> None:
    made = complete(transaction(before, client_version=2), NOW)

    assert_has(made, state=after, partitions=frozenset(), producer_id=4000, producer_epoch=5)
    assert (NOW, NOW - 10) == (made.updated_ms, made.start_ms)
