from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.records.batch import RecordBatch, build_batch, read_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.producers.entry import (
    SENTINEL,
    BatchMetadata,
    ProducerStateEntry,
    VerificationGuard,
    VerificationStateEntry,
)

LARGEST = 2**31 - 1


def batch(sequence: int, count: int = 1, *, epoch: int = 0) -> RecordBatch:
    records = [SimpleRecord(0, b"k", b"v")] * count
    data = build_batch(records, producer_id=1, producer_epoch=epoch, base_sequence=sequence)
    return read_batch(memoryview(data))


def entry_with(*sequences: int, epoch: int = 0) -> ProducerStateEntry:
    entry = ProducerStateEntry(1, epoch)
    for sequence in sequences:
        entry.add_batch(epoch, sequence, 100 + sequence, 0, timestamp=sequence)
    return entry


@pytest.mark.parametrize(
    ("mine", "known", "recalled"),
    [
        (entry_with(4), entry_with(2, 3, 4), [2, 3, 4]),
        (entry_with(4), entry_with(2, 3), [4]),
        (entry_with(4), entry_with(), [4]),
        (entry_with(4, epoch=1), entry_with(3, 4), [4]),
        (entry_with(), entry_with(2, 3), []),
        (entry_with(), entry_with(), []),
        (entry_with(2, 3, 4), entry_with(4), [2, 3, 4]),
    ],
)
def test_earlier_batches_are_restored_only_if_the_last_one_matches(
    mine: ProducerStateEntry, known: ProducerStateEntry, recalled: list[int]
) -> None:
    mine.recall_batches(known)

    assert recalled == [metadata.last_seq for metadata in mine.batch_metadata]


@pytest.mark.parametrize(("epoch", "sequences"), [(0, [2, 3, 4, 5, 6]), (2, [4, 5, 6])])
def test_update_of_an_append_keeps_the_last_five_batches_of_its_epoch(
    epoch: int, sequences: list[int]
) -> None:
    entry = entry_with(*range(4))
    update = entry_with(4, 5, 6, epoch=epoch)
    update.coordinator_epoch, update.current_txn_first_offset = 7, 104

    entry.update(update)

    assert sequences == [known.last_seq for known in entry.batch_metadata]
    assert (sequences[0], 6, 106) == (entry.first_seq, entry.last_seq, entry.last_data_offset)
    assert (7, 104) == (entry.coordinator_epoch, entry.current_txn_first_offset)
    assert (epoch, 6) == (entry.producer_epoch, entry.last_timestamp)


@pytest.mark.parametrize(("epoch", "kept"), [(0, 2), (1, 0)])
def test_marker_keeps_the_batches_of_its_epoch(epoch: int, kept: int) -> None:
    entry = entry_with(0, 1)
    entry.current_txn_first_offset = 100

    entry.end_transaction(epoch, 5, 77)

    assert (kept, epoch) == (len(entry.batch_metadata), entry.producer_epoch)
    assert (5, 77) == (entry.coordinator_epoch, entry.last_timestamp)
    assert entry.current_txn_first_offset is None


def test_duplicate_batch_has_exactly_the_same_sequences() -> None:
    entry = ProducerStateEntry(1, 0)
    entry.add_batch(0, 4, 104, 4, timestamp=0)
    entry.add_batch(0, 6, 106, 1, timestamp=0)

    assert entry.find_duplicate_batch(batch(0, 5)) == BatchMetadata(4, 104, 4, 0)
    assert entry.find_duplicate_batch(batch(5, 2)) == BatchMetadata(6, 106, 1, 0)
    for other in (batch(0, 4), batch(1, 4), batch(5, 3), batch(0, 5, epoch=1)):
        assert None is entry.find_duplicate_batch(other)


@given(st.integers(0, LARGEST), st.integers(1, 5))
def test_first_sequence_is_computed_from_the_last(sequence: int, count: int) -> None:
    sent = batch(sequence, count)
    entry = ProducerStateEntry(1, 0)
    entry.add_batch(0, sent.last_sequence, 100 + count, count - 1, timestamp=0)

    assert sequence == entry.first_seq
    assert entry.find_duplicate_batch(sent) is not None


def test_verification_guard_verifies_only_itself() -> None:
    guard, other = VerificationGuard(), VerificationGuard()

    assert guard.verify(guard)
    assert not guard.verify(other)
    assert not guard.verify(SENTINEL)
    assert not SENTINEL.verify(SENTINEL)
    assert guard != other
    assert 2 == len({guard, guard, other})


@pytest.mark.parametrize(
    ("sequence", "epoch", "expected"),
    [(5, 1, (5, 1)), (3, 1, (3, 1)), (9, 1, (5, 1)), (9, 2, (9, 2)), (0, 0, (5, 1))],
)
def test_verification_keeps_the_lowest_sequence_of_its_epoch(
    sequence: int, epoch: int, expected: tuple[int, int]
) -> None:
    entry = VerificationStateEntry(0, 5, 1, supports_epoch_bump=False)

    entry.maybe_update_lowest_sequence_and_epoch(sequence, epoch)

    assert expected == (entry.lowest_sequence, entry.epoch)
