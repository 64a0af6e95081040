from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from barnabas.storage.errors import CorruptIndex, KafkaError, KafkaStorageError
from barnabas.storage.fs.interface import WouldBlock
from barnabas.storage.index.txn_index import ENTRIES_AT_ONCE, AbortedTxn, TransactionIndex
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


def test_transaction_index_entry_is_34_bytes() -> None:
    files = MemoryFiles()
    index_with(FIRST, files=files)

    assert bytes.fromhex(
        "0000 0000000000000fa0 000000000000000c 000000000000001e 000000000000001f"
    ) == files.read_bytes(PATH)


def test_transaction_index_file_is_created_with_its_first_entry() -> None:
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


def test_reopened_transaction_index_continues_after_its_last_whole_entry() -> None:
    """
    A torn entry and everything behind it is ignored, as in Kafka.
    """
    files = MemoryFiles()
    index_with(FIRST, files=files).close()

    index_with(SECOND, files=files)

    assert [FIRST, SECOND] == aborted_txns(index_with(files=files))
    files.open(PATH).append(bytes(33))
    assert [FIRST, SECOND] == aborted_txns(index_with(files=files))


@pytest.mark.parametrize("seed", range(20))
def test_collection_in_a_long_index_is_that_of_a_plain_list(seed: int) -> None:
    random = Random(seed)
    last, stable, entries = 0, 0, []
    for _ in range(random.choice((100, ENTRIES_AT_ONCE, 3 * ENTRIES_AT_ONCE))):
        last += random.randrange(1, 4)
        stable = random.randrange(stable, last)
        entries.append(AbortedTxn(1, random.randrange(stable, last), last, stable))
    index = index_with(*entries)
    start = random.randrange(last)
    end = start + random.randrange(1, last)

    found, is_complete = index.collect_aborted_txns(start, end)
    some, _ = index.collect_aborted_txns(start, end, most=5)

    reached = next((n for n, each in enumerate(entries) if each.last_stable_offset >= end), None)
    assert is_complete == (reached is not None)
    expected = [each for each in entries if each.last_offset >= start and each.first_offset < end]
    assert expected == found
    assert expected[:6] == some


def test_long_search_does_not_keep_the_event_loop_waiting() -> None:
    entries = [AbortedTxn(1, 0, last, 0) for last in range(1, 3 * ENTRIES_AT_ONCE)]
    index = index_with(*entries)

    with pytest.raises(WouldBlock):
        index.collect_aborted_txns(0, 10, nowait=True)
    assert (entries[-9:], False) == index.collect_aborted_txns(
        entries[-9].last_offset, 10, nowait=True
    )


def test_markers_must_be_appended_in_order() -> None:
    files = MemoryFiles()
    index = index_with(SECOND, files=files)

    with pytest.raises(ValueError, match="must increase sequentially, but 30 is not greater"):
        index.append(FIRST)
    index_with(FIRST, files=files)


@pytest.mark.parametrize(
    ("offset", "left"), [(None, 0), (30, 0), (31, 1), (40, 1), (41, 2), (50, 2), (51, 3)]
)
def test_truncated_transaction_index_loses_the_markers_from_the_offset_on(
    offset: int | None, left: int
) -> None:
    entries = [FIRST, SECOND, THIRD]
    index = index_with(*entries)

    index.reset() if offset is None else index.truncate_to(offset)

    assert entries[:left] == aborted_txns(index)
    for entry in entries[left:]:
        index.append(entry)
    assert entries == aborted_txns(index)


def test_transaction_that_ends_before_its_segment_is_corrupt() -> None:
    index_with(AbortedTxn(1, 0, 10, 11)).sanity_check()

    with pytest.raises(CorruptIndex, match="is less than start offset 10") as found:
        index_with(AbortedTxn(1, 0, 9, 11)).sanity_check()
    assert PATH == found.value.path


def test_unknown_entry_version_is_refused() -> None:
    files = MemoryFiles()
    index = index_with(FIRST, files=files)
    files.open(PATH).append(b"\0\1" + bytes(32))
    index = index_with(files=files)

    with pytest.raises(KafkaError, match="Unexpected aborted transaction version 1"):
        aborted_txns(index)
    assert ([FIRST], True) == index.collect_aborted_txns(0, 31)


def test_transaction_index_is_renamed_and_moved_with_its_segment() -> None:
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


def test_reader_of_a_removed_transaction_index_continues_until_it_is_closed() -> None:
    index = index_with(FIRST)

    assert index.delete_if_exists()

    assert [FIRST] == aborted_txns(index)
    index.close()
    assert [] == aborted_txns(index)


def test_torn_entry_is_overwritten_by_the_retry() -> None:
    files = FailingFiles()
    index = index_with(FIRST, files=files)
    files.fail(only=frozenset({"write"}), written=20)

    with pytest.raises(KafkaStorageError):
        index.append(SECOND)

    assert [FIRST] == aborted_txns(index)
    index.append(SECOND)
    assert [FIRST, SECOND] == aborted_txns(index)
