"""
The transaction index.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.errors import CorruptIndex, KafkaError, KafkaStorageError
from barnabas.storage.index.txn_index import AbortedTxn, TransactionIndex
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.segments import aborted_txns

D = Path("/data")
PATH = D / "00000000000000000000.txnindex"
FIRST = AbortedTxn(4000, 12, 30, 31)
SECOND = AbortedTxn(4001, 25, 40, 35)
THIRD = AbortedTxn(4000, 45, 50, 51)


def index_with(*entries: AbortedTxn, files: MemoryFiles | None = None) -> TransactionIndex:
    files = files or MemoryFiles()
    files.make_directory(D)
    index = TransactionIndex(files, PATH.parent, PATH.name, 10, exists=files.exists(PATH))
    for entry in entries:
        index.append(entry)
    return index


def test_an_entry_is_34_bytes() -> None:
    """
    Version, producer, first, last and last stable offset.
    """
    files = MemoryFiles()
    index_with(FIRST, files=files)

    assert bytes.fromhex(
        "0000 0000000000000fa0 000000000000000c 000000000000001e 000000000000001f"
    ) == files.read_bytes(PATH)


def test_there_is_no_file_before_the_first_entry() -> None:
    """
    Nothing that is done to an index without entries makes one.
    """
    files = MemoryFiles()
    index = index_with(files=files)

    index.flush()
    index.reset()
    index.truncate_to(0)
    index.sanity_check()
    index.rename_to(PATH)

    assert index.is_empty
    assert [] == aborted_txns(index)
    assert not index.delete_if_exists()
    index.close()
    assert [] == files.names(D)


def test_a_file_goes_on_where_it_ends() -> None:
    """
    An entry of which a crash has left half is passed over, and so is what follows it, as in Kafka.
    """
    files = MemoryFiles()
    index_with(FIRST, files=files).close()

    index_with(SECOND, files=files)

    assert [FIRST, SECOND] == aborted_txns(index_with(files=files))
    files.open(PATH).append(bytes(33))
    assert [FIRST, SECOND] == aborted_txns(index_with(files=files))


@pytest.mark.parametrize(
    ("start", "end", "found", "complete"),
    [
        (0, 100, [FIRST, SECOND, THIRD], False),
        (0, 12, [], True),
        (0, 13, [FIRST], True),
        (0, 32, [FIRST, SECOND], True),
        (30, 31, [FIRST], True),
        (31, 36, [SECOND], True),
        (41, 60, [THIRD], False),
        (51, 60, [], False),
    ],
)
def test_a_read_is_reported_the_transactions_that_concern_it(
    start: int, end: int, found: list[AbortedTxn], complete: bool
) -> None:
    """
    Those that overlap it. The search ends with the first that says that no later one does.
    """
    index = index_with(FIRST, SECOND, THIRD)

    assert (found, complete) == index.collect_aborted_txns(start, end)


def test_markers_have_to_be_in_order() -> None:
    """
    Of one process, that is: what was there before is not looked at.
    """
    files = MemoryFiles()
    index = index_with(SECOND, files=files)

    with pytest.raises(ValueError, match="must increase sequentially, but 30 is not greater"):
        index.append(FIRST)
    index_with(FIRST, files=files)


@pytest.mark.parametrize(("offset", "left"), [(30, 0), (31, 1), (40, 1), (41, 2), (50, 2), (51, 3)])
def test_truncating_goes_by_the_last_offset(offset: int, left: int) -> None:
    """
    From the first entry on whose marker is cut off; after that the next may come.
    """
    entries = [FIRST, SECOND, THIRD]
    index = index_with(*entries)

    index.truncate_to(offset)

    assert entries[:left] == aborted_txns(index)
    for entry in entries[left:]:
        index.append(entry)
    assert entries == aborted_txns(index)


def test_resetting_empties_the_file() -> None:
    """
    Recovery writes it again from the batches.
    """
    files = MemoryFiles()
    index = index_with(SECOND, files=files)

    index.reset()

    assert b"" == files.read_bytes(PATH)
    index.append(FIRST)
    assert [FIRST] == aborted_txns(index)


def test_a_transaction_that_ends_before_its_segment_is_corrupt() -> None:
    """
    The segment begins with offset 10.
    """
    index_with(AbortedTxn(1, 0, 10, 11)).sanity_check()

    with pytest.raises(CorruptIndex, match="is less than start offset 10") as found:
        index_with(AbortedTxn(1, 0, 9, 11)).sanity_check()
    assert PATH == found.value.path


def test_a_later_version_is_not_guessed_at() -> None:
    """
    A newer broker has written it.
    """
    files = MemoryFiles()
    index = index_with(FIRST, files=files)
    files.open(PATH).append(b"\0\1" + bytes(32))
    index = index_with(files=files)

    with pytest.raises(KafkaError, match="Unexpected aborted transaction version 1"):
        aborted_txns(index)
    assert ([FIRST], True) == index.collect_aborted_txns(0, 31)


def test_the_file_is_renamed_and_moved_along_with_its_segment() -> None:
    """
    And is written to under its new name.
    """
    files = MemoryFiles()
    index = index_with(FIRST, files=files)
    deleted = PATH.with_name(PATH.name + ".deleted")

    index.rename_to(deleted)
    index.append(SECOND)
    moved = Path("/data2")
    files.rename(D, moved)
    index.update_parent_dir(moved)
    index.append(THIRD)

    assert moved / deleted.name == index.path
    assert 3 * 34 == files.size(index.path)


def test_a_reader_of_a_removed_index_goes_on_reading() -> None:
    """
    Until the index is closed.
    """
    index = index_with(FIRST)

    assert index.delete_if_exists()

    assert [FIRST] == aborted_txns(index)
    index.close()
    assert [] == aborted_txns(index)


def test_an_entry_that_was_half_written_is_written_again() -> None:
    """
    In the same place, so that no half of one is left in between.
    """
    files = FailingFiles()
    index = index_with(FIRST, files=files)
    files.fail(only=frozenset({"write"}), written=20)

    with pytest.raises(KafkaStorageError):
        index.append(SECOND)

    assert [FIRST] == aborted_txns(index)
    index.append(SECOND)
    assert [FIRST, SECOND] == aborted_txns(index)
