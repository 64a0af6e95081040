from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from barnabas.protocol.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaError,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.index.txn_index import AbortedTxn
from barnabas.storage.log.append_info import LogAppendInfo
from barnabas.storage.log.log import Log
from barnabas.storage.producers.entry import VerificationGuard
from tests.support.logs import LogHome, append, bases, end_transaction, log_of, produce
from tests.support.segments import FIRST_TIMESTAMP, aborted_txns
from tests.support.some import some

DAY = 86_400_000


def send(
    log: Log,
    sequence: int,
    count: int = 1,
    *,
    producer_id: int = 1,
    epoch: int = 0,
    transactional: bool = False,
    **more: Any,
) -> LogAppendInfo:
    """
    Append *count* records of a producer, numbered from *sequence* on.
    """
    return produce(
        log,
        *[b"v"] * count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=transactional,
        **more,
    )


def aborted(log: Log) -> list[AbortedTxn]:
    return [txn for segment in log.segments.values() for txn in aborted_txns(segment.txn_index)]


@pytest.mark.scenario(39)
def test_producer_sequences_and_epochs_are_validated_in_order() -> None:
    log = LogHome().open()
    steps: list[tuple[dict[str, Any], type[KafkaError] | None]] = [
        ({"sequence": 0}, None),
        ({"sequence": 1, "count": 2}, None),
        ({"sequence": 5}, OutOfOrderSequenceNumber),
        ({"sequence": 1}, OutOfOrderSequenceNumber),
        ({"sequence": 3, "epoch": 1}, OutOfOrderSequenceNumber),
        ({"sequence": 0, "epoch": 1}, None),
        ({"sequence": 3, "epoch": 0}, InvalidProducerEpoch),
        ({"sequence": 1, "epoch": 1, "transactional": True}, None),
        ({"sequence": 2, "epoch": 1}, InvalidTxnState),
    ]

    for step, error in some(steps):
        end = log.log_end_offset
        if error is None:
            send(log, **step)
            assert end < log.log_end_offset
        else:
            with pytest.raises(error):
                send(log, **step)
            assert end == log.log_end_offset

    (producer,) = log.active_producers()
    assert (1, 1, 1, 4) == (
        producer.producer_id,
        producer.producer_epoch,
        producer.last_sequence,
        producer.current_txn_start_offset,
    )


@pytest.mark.scenario(40)
def test_retried_batch_is_answered_with_its_original_offset() -> None:
    _, log = log_of(3)
    first = send(log, 0, 4, timestamp=FIRST_TIMESTAMP + 77)

    again = send(log, 0, 4, timestamp=FIRST_TIMESTAMP + 77)

    assert (False, True) == (first.is_duplicate, again.is_duplicate)
    assert (3, 6) == (again.first_offset, again.last_offset)
    assert (-1, FIRST_TIMESTAMP + 77) == (first.log_append_time, again.log_append_time)
    assert 7 == log.log_end_offset


@pytest.mark.scenario(41)
def test_last_five_batches_of_a_producer_are_deduplicated() -> None:
    log = LogHome().open()
    for sequence in range(6):
        send(log, sequence)

    with pytest.raises(OutOfOrderSequenceNumber):
        send(log, 0)
    assert [1, 2, 3, 4, 5] == [send(log, sequence).first_offset for sequence in range(1, 6)]
    assert 6 == log.log_end_offset


@pytest.mark.scenario(42)
@pytest.mark.parametrize("batches", [[(2**31 - 2, 2), (0, 1), (1, 1)], [(2**31 - 2, 5), (3, 1)]])
def test_sequence_wraps_to_0_after_the_maximum(batches: list[tuple[int, int]]) -> None:
    log = LogHome().open()

    for sequence, count in batches:
        send(log, sequence, count)

    assert sum(count for _, count in batches) == log.log_end_offset
    assert send(log, *batches[0]).is_duplicate


@pytest.mark.scenario(43)
def test_aborted_transaction_is_unstable_until_the_high_watermark_passes_its_marker() -> None:
    _, log = log_of(4)
    send(log, 0, producer_id=4000, transactional=True)
    end_transaction(log, 4000, commit=False)

    assert [AbortedTxn(4000, 4, 5, 6)] == aborted(log)
    log.update_high_watermark(5)
    assert 4 == log.last_stable_offset
    log.update_high_watermark(6)
    assert 6 == log.last_stable_offset


@pytest.mark.scenario(46)
def test_last_batch_of_a_producer_is_deduplicated_after_a_restart() -> None:
    home = LogHome()
    log = home.open()
    for sequence in range(10):
        send(log, sequence)
    home.stop(log)
    assert 56 == len(home.file(10, ".snapshot"))

    log = home.open()

    with pytest.raises(OutOfOrderSequenceNumber):
        send(log, 8)
    assert send(log, 9).is_duplicate
    with pytest.raises(OutOfOrderSequenceNumber):
        send(log, 11)
    assert 10 == send(log, 10).first_offset


@pytest.mark.parametrize("rolls_before", [(), (9,), (7, 9), (0, 10)])
def test_last_five_batches_of_a_producer_are_deduplicated_after_a_crash(
    rolls_before: tuple[int, ...],
) -> None:
    """
    Recovery reads the batches from whichever segments hold them. As in Kafka, the snapshot that it
    writes has only one.
    """
    home = LogHome()
    log = home.open()
    for sequence in range(10):
        if sequence in rolls_before:
            log.roll()
        send(log, sequence)
    if 10 in rolls_before:
        log.roll()

    log = home.open()

    assert 56 == len(home.file(10, ".snapshot"))
    assert [5, 6, 7, 8, 9] == [send(log, sequence).first_offset for sequence in range(5, 10)]
    with pytest.raises(OutOfOrderSequenceNumber):
        send(log, 4)
    assert (10, False) == (send(log, 10).first_offset, send(log, 11).is_duplicate)
    assert send(log, 7).is_duplicate


def test_batches_lost_in_a_crash_are_not_deduplicated() -> None:
    home = LogHome()
    log = home.open()
    for sequence in range(10):
        send(log, sequence)
    end = home.file(0, ".log")
    del end[-1:]

    log = home.open()

    assert send(log, 8).is_duplicate
    assert (9, False) == (send(log, 9).first_offset, send(log, 10).is_duplicate)


def test_expired_producer_is_not_restored_after_a_crash() -> None:
    home = LogHome()
    log = home.open()
    for sequence in range(3):
        send(log, sequence)
    home.clock.advance(DAY)

    log = home.open()

    assert [] == log.active_producers()
    assert 3 == send(log, 7).first_offset


@pytest.mark.parametrize(("version", "accepted"), [(0, {5, 6}), (1, {5, 6}), (2, {6})])
@pytest.mark.parametrize("epoch", [4, 5, 6])
def test_marker_must_have_the_epoch_that_its_transaction_version_requires(
    version: int, accepted: set[int], epoch: int
) -> None:
    log = LogHome().open()
    send(log, 0, epoch=5, transactional=True)

    with nullcontext() if epoch in accepted else pytest.raises(InvalidProducerEpoch):
        end_transaction(log, 1, epoch, transaction_version=version)

    assert (epoch in accepted) != log.producers.has_ongoing_transaction(1, 5)


def test_marker_of_transaction_version_2_may_be_repeated() -> None:
    log = LogHome().open()
    send(log, 0, epoch=5, transactional=True)
    end_transaction(log, 1, 6, transaction_version=2)

    end_transaction(log, 1, 6, transaction_version=2)

    assert 3 == log.log_end_offset
    send(log, 0, epoch=6, transactional=True)
    with pytest.raises(InvalidProducerEpoch):
        end_transaction(log, 1, 6, transaction_version=2)


def test_marker_of_a_fenced_coordinator_is_refused() -> None:
    log = LogHome().open()
    send(log, 0, transactional=True)
    end_transaction(log, 1, coordinator_epoch=3)
    send(log, 1, transactional=True)

    with pytest.raises(TransactionCoordinatorFenced, match=r"2 \(zombie\), 3 \(current\)"):
        end_transaction(log, 1, coordinator_epoch=2)
    end_transaction(log, 1, coordinator_epoch=3)


def test_sequences_restart_at_0_after_a_marker_with_a_new_epoch() -> None:
    log = LogHome().open()
    send(log, 0, 3, transactional=True)
    end_transaction(log, 1, 1, transaction_version=2)

    with pytest.raises(OutOfOrderSequenceNumber):
        send(log, 3, epoch=1, transactional=True)
    send(log, 0, epoch=1, transactional=True)


def test_duplicate_or_refused_batch_may_roll_a_segment() -> None:
    """
    Kafka decides whether to roll before it checks the producer.
    """
    log = LogHome(segment_bytes=1000).open()
    value = b"v" * 200
    produce(log, value, producer_id=1, producer_epoch=0, base_sequence=0)
    append(log, size=700)

    assert produce(log, value, producer_id=1, producer_epoch=0, base_sequence=0).is_duplicate

    assert [0, 2] == bases(log)
    assert 0 == log.active_segment.size
    append(log, size=900)
    with pytest.raises(OutOfOrderSequenceNumber):
        produce(log, value, producer_id=1, producer_epoch=0, base_sequence=7)
    assert [0, 2, 3] == bases(log)


# Verification (KIP-890).


def verifying_log() -> Log:
    return LogHome().open(transaction_verification=True)


def verify(
    log: Log, sequence: int, epoch: int = 0, *, supports_epoch_bump: bool = False
) -> VerificationGuard:
    return log.maybe_start_transaction_verification(
        1, sequence, epoch, supports_epoch_bump=supports_epoch_bump
    )


def verified(log: Log, sequence: int, guard: Any, *, epoch: int = 0) -> LogAppendInfo:
    batch = build_batch(
        [SimpleRecord(FIRST_TIMESTAMP, b"k", b"v")],
        producer_id=1,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    return log.append_as_leader(memoryview(batch), 0, verification_guard=guard)


def test_first_batch_of_a_transaction_requires_a_verification_guard() -> None:
    log = LogHome().open(transaction_verification=True)

    with pytest.raises(InvalidTxnState, match="not part of an ongoing transaction"):
        send(log, 0, transactional=True)
    guard = verify(log, 0)
    verified(log, 0, guard)
    send(log, 1, transactional=True)

    assert 2 == log.log_end_offset


def test_verification_guard_is_invalid_after_a_marker() -> None:
    log = verifying_log()
    guard = verify(log, 0)

    end_transaction(log, 1)

    with pytest.raises(InvalidTxnState):
        verified(log, 0, guard)


def test_same_verification_guard_is_returned_until_it_is_used() -> None:
    log = verifying_log()
    first = verify(log, 0)

    assert first == verify(log, 1)
    verified(log, 0, first)
    end_transaction(log, 1)
    assert first != verify(log, 1)


def test_open_transaction_requires_no_verification_guard() -> None:
    log = verifying_log()
    guard = verify(log, 0)
    verified(log, 0, guard)

    sentinel = verify(log, 1)

    assert not guard.verify(sentinel)
    assert not sentinel.verify(sentinel)
    verified(log, 1, sentinel)


def test_later_batch_is_refused_while_an_earlier_one_is_being_verified() -> None:
    log = verifying_log()
    guard = verify(log, 3)
    verify(log, 4)

    with pytest.raises(OutOfOrderSequenceNumber, match=r"3 \(earliest seen sequence\)"):
        verified(log, 4, guard)
    verified(log, 3, guard)


def test_transaction_of_version_2_begins_with_sequence_0() -> None:
    log = verifying_log()
    guard = verify(log, 3, supports_epoch_bump=True)

    with pytest.raises(OutOfOrderSequenceNumber, match="Expected sequence 0"):
        verified(log, 3, guard)


def test_verification_of_an_old_epoch_is_refused() -> None:
    log = verifying_log()
    send(log, 0, epoch=5)

    with pytest.raises(InvalidProducerEpoch):
        verify(log, 0, 4, supports_epoch_bump=True)
    with pytest.raises(InvalidProducerEpoch):
        send(log, 0, epoch=4, transactional=True)


def test_verification_survives_a_marker_of_its_own_epoch() -> None:
    """
    Under transaction version 2, the marker begins the epoch for which the next transaction is
    already being verified.
    """
    log = verifying_log()
    guard = verify(log, 0, supports_epoch_bump=True)
    verified(log, 0, guard)
    early = verify(log, 0, 1, supports_epoch_bump=True)

    end_transaction(log, 1, 1, transaction_version=2)

    verified(log, 0, early, epoch=1)


def test_verification_ends_with_a_marker_of_another_epoch() -> None:
    log = verifying_log()
    guard = verify(log, 0, supports_epoch_bump=True)

    end_transaction(log, 1, 1, transaction_version=2)

    with pytest.raises(InvalidProducerEpoch):
        verified(log, 0, guard)
    with pytest.raises(InvalidTxnState):
        verified(log, 0, guard, epoch=1)


def test_hanging_transaction_is_reported() -> None:
    log = LogHome().open()
    send(log, 0, transactional=True)
    longest = 20 * 60_000

    assert not log.producers.has_late_transaction(FIRST_TIMESTAMP + longest)
    assert log.producers.has_late_transaction(FIRST_TIMESTAMP + longest + 1)
    end_transaction(log, 1)
    assert not log.producers.has_late_transaction(FIRST_TIMESTAMP + longest + 1)


def test_cleaner_receives_the_last_records_of_active_producers() -> None:
    log = LogHome().open()
    send(log, 0, 3)
    end_transaction(log, 2, 4)

    records = log.last_records_of_active_producers()

    assert {1: (2, 0), 2: (None, 4)} == {key: tuple(value) for key, value in records.items()}
