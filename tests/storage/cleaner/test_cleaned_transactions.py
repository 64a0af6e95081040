from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.errors import InvalidRecord
from barnabas.protocol.records.batch import RecordBatch, build_batch, control_batch, read_batch
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.cleaner.transactions import CleanedTransactionMetadata
from barnabas.storage.index.txn_index import AbortedTxn, TransactionIndex
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.segments import aborted_txns

ABORTED = AbortedTxn(1, 10, 20, 21)
KEPT, SUPERFLUOUS = False, True


def data(offset: int, producer_id: int = 1, *, transactional: bool = True) -> RecordBatch:
    batch = build_batch(
        [SimpleRecord(0, b"k", b"v")],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=transactional,
    )
    return read_batch(memoryview(batch))


def marker(offset: int, kind: ControlRecordType, producer_id: int = 1) -> RecordBatch:
    batch = EndTransactionMarker(kind, 0).batch(
        0, base_offset=offset, producer_id=producer_id, producer_epoch=0
    )
    return read_batch(memoryview(batch))


def abort(offset: int, producer_id: int = 1) -> RecordBatch:
    return marker(offset, ControlRecordType.ABORT, producer_id)


def commit(offset: int, producer_id: int = 1) -> RecordBatch:
    return marker(offset, ControlRecordType.COMMIT, producer_id)


@pytest.fixture
def transactions() -> CleanedTransactionMetadata:
    made = CleanedTransactionMetadata()
    made.add_aborted_transactions([ABORTED])
    return made


@pytest.fixture
def index() -> TransactionIndex:
    files = MemoryFiles()
    files.make_directory(Path("/data"))
    return TransactionIndex(files, Path("/data"), "0.txnindex", 0, exists=False)


def test_transactional_data_of_an_aborted_producer_is_aborted_from_its_first_offset_on(
    transactions: CleanedTransactionMetadata,
) -> None:
    sent = [data(9), data(10, producer_id=2), data(10, transactional=False), data(10), data(13)]

    assert [False] * 3 + [True] * 2 == [transactions.on_batch_read(batch) for batch in sent]


def test_abort_marker_and_its_index_entry_are_kept_while_its_data_was_seen(
    transactions: CleanedTransactionMetadata, index: TransactionIndex
) -> None:
    transactions.cleaned_index = index
    transactions.on_batch_read(data(10))

    assert KEPT == transactions.on_control_batch_read(abort(20))

    assert [ABORTED] == aborted_txns(index)
    # The next transaction of the producer is another one.
    assert not transactions.on_batch_read(data(25))


def test_abort_marker_without_data_is_superfluous_with_its_index_entry(
    transactions: CleanedTransactionMetadata, index: TransactionIndex
) -> None:
    transactions.cleaned_index = index
    transactions.on_batch_read(data(12, producer_id=2))

    assert SUPERFLUOUS == transactions.on_control_batch_read(abort(20))

    assert index.is_empty


def test_commit_marker_is_kept_while_its_data_was_seen() -> None:
    transactions = CleanedTransactionMetadata()
    transactions.on_batch_read(data(10))

    assert SUPERFLUOUS == transactions.on_control_batch_read(commit(11, producer_id=2))
    assert KEPT == transactions.on_control_batch_read(commit(12))
    assert SUPERFLUOUS == transactions.on_control_batch_read(commit(13))


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        (marker(5, ControlRecordType.LEADER_CHANGE), KEPT),
        (read_batch(memoryview(control_batch(77, b"", 0))), KEPT),
        (read_batch(memoryview(build_batch([], is_control=True, producer_id=1))), SUPERFLUOUS),
        (abort(20), SUPERFLUOUS),
    ],
    ids=["leader change", "unknown type", "empty", "abort without an index entry"],
)
def test_control_batches_other_than_known_markers_are_kept(
    batch: RecordBatch, expected: bool
) -> None:
    transactions = CleanedTransactionMetadata()
    transactions.on_batch_read(data(10))

    assert expected == transactions.on_control_batch_read(batch)


def test_control_batch_without_a_control_record_type_is_an_error() -> None:
    strange = build_batch([SimpleRecord(0, b"k", b"v")], is_control=True)

    with pytest.raises(InvalidRecord):
        CleanedTransactionMetadata().on_control_batch_read(read_batch(memoryview(strange)))


def test_transaction_that_spans_two_segments_may_be_added_twice(
    transactions: CleanedTransactionMetadata,
) -> None:
    transactions.on_batch_read(data(10))
    transactions.add_aborted_transactions([ABORTED])

    assert transactions.on_batch_read(data(15))
    assert KEPT == transactions.on_control_batch_read(abort(20))
    assert not transactions.on_batch_read(data(25))


def test_aborted_transactions_begin_in_order_of_their_first_offsets() -> None:
    transactions = CleanedTransactionMetadata()
    later = AbortedTxn(1, 30, 40, 41)
    transactions.add_aborted_transactions([later, ABORTED])

    assert transactions.on_batch_read(data(10))
    assert KEPT == transactions.on_control_batch_read(abort(20))
    assert not transactions.on_batch_read(data(25))
    assert KEPT == transactions.on_control_batch_read(commit(26))
    assert transactions.on_batch_read(data(30))
