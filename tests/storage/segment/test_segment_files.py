from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.index.txn_index import AbortedTxn
from barnabas.storage.log.rolling import SegmentEnd
from barnabas.storage.segment.segment import delete_stale_files
from barnabas.storage.state_files.file_names import offset_from_file_name
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.clock import StillClock
from tests.support.segments import (
    DIRECTORY,
    FIRST_TIMESTAMP,
    INDEX,
    LOG,
    TIME_INDEX,
    append_padded,
    offset_entries,
    open_segment,
    padded_batch,
    time_entries,
)


def test_segment_that_was_only_read_is_closed_unchanged() -> None:
    files = MemoryFiles()
    segment = open_segment(files=files)
    append_padded(segment, range(2))
    segment.offset_index.trim_to_valid_size()
    segment.time_index.trim_to_valid_size()

    segment = open_segment(files=files)
    segment.translate_offset(1)
    segment.close()

    assert (0, 0) == (files.size(INDEX), files.size(TIME_INDEX))


def test_failed_final_time_index_entry_does_not_keep_a_segment_open() -> None:
    files = FailingFiles()
    segment = open_segment(files=files)
    append_padded(segment, range(2))
    files.fail(only=frozenset({"write"}))

    segment.close()

    assert (300, 0, 0) == tuple(files.size(path) for path in (LOG, INDEX, TIME_INDEX))


def test_close_continues_after_an_error() -> None:
    files = FailingFiles()
    segment = open_segment(files=files)
    append_padded(segment, range(2))
    files.fail(only=frozenset({"truncate"}))

    with pytest.raises(KafkaStorageError, match=r"\.index"):
        segment.close()

    assert 12 == files.size(TIME_INDEX)
    with pytest.raises(KafkaStorageError):
        segment.log.flush()


@pytest.mark.scenario(29)
def test_truncation_removes_batches_and_entries_from_the_offset_on() -> None:
    files = MemoryFiles()
    segment = open_segment(files=files, interval=0)
    append_padded(segment, range(5))
    segment.on_become_inactive_segment()

    assert 300 == segment.truncate_to(3)

    assert (450, 10_485_760, 10_485_756) == tuple(
        files.size(path) for path in (LOG, INDEX, TIME_INDEX)
    )
    assert [(1, 150), (2, 300)] == offset_entries(segment)
    assert 3 == segment.read_next_offset()
    assert FIRST_TIMESTAMP + 2 == segment.max_timestamp_so_far()
    assert segment.translate_offset(4) is None
    append_padded(segment, range(3, 5))
    assert [(1, 150), (2, 300), (4, 600)] == offset_entries(segment)


def test_truncation_beyond_the_end_removes_only_transactions_that_end_there() -> None:
    segment = open_segment(interval=0)
    append_padded(segment, range(3))
    segment.txn_index.append(AbortedTxn(1, 0, 7, 8))

    assert 0 == segment.truncate_to(3)

    assert (450, 2) == (segment.size, segment.offset_index.entries)
    assert segment.txn_index.is_empty


def test_full_truncation_resets_the_segment_and_its_age() -> None:
    clock = StillClock(1000)
    segment = open_segment(clock=clock, interval=0)
    append_padded(segment, range(3), timestamp=500)
    assert 500 == segment.first_batch_timestamp()
    clock.advance(5000)

    assert 450 == segment.truncate_to(0)

    assert (0, 0, []) == (segment.size, segment.offset_index.entries, time_entries(segment))
    assert 2**63 - 1 == segment.first_batch_timestamp()
    assert 100 == SegmentEnd.of(segment).waited_ms(6100, 0)
    assert -1 == segment.max_timestamp_so_far()


def test_max_timestamp_is_determined_again_after_a_truncation() -> None:
    segment = open_segment(interval=300)
    for offset, timestamp in enumerate([10, 50, 20, 40, 30, 90]):
        append_padded(segment, range(offset, offset + 1), timestamp=timestamp)
    assert [(50, 1)] == time_entries(segment)

    segment.truncate_to(5)
    assert (50, 1) == segment.read_max_timestamp_and_offset_so_far()
    segment.truncate_to(1)
    assert (10, 0) == segment.read_max_timestamp_and_offset_so_far()


@pytest.mark.scenario(54)
def test_removed_segment_stays_readable() -> None:
    files = MemoryFiles()
    segment = open_segment(files=files, interval=0)
    append_padded(segment, range(5))
    segment.txn_index.append(AbortedTxn(1, 0, 4, 5))
    info = segment.read(1, 150, segment.size)

    segment.change_file_suffixes("", ".deleted")
    assert segment.has_suffix(".deleted")
    suffixes = ("index", "log", "timeindex", "txnindex")
    assert [f"{0:020d}.{suffix}.deleted" for suffix in suffixes] == files.names(DIRECTORY)
    segment.delete_if_exists()

    assert [] == files.names(DIRECTORY)
    assert info is not None
    assert info.records is not None
    assert bytes(padded_batch(1)) == bytes(info.records.read())
    assert (3, 450, 150) == segment.translate_offset(3)
    assert 1 == len(segment.txn_index.collect_aborted_txns(0, 5).aborted_transactions)
    assert 0 == segment.last_modified()


def test_removal_continues_after_an_error() -> None:
    files = FailingFiles()
    segment = open_segment(files=files)
    append_padded(segment, range(1))
    files.fail(only=frozenset({"remove"}))

    with pytest.raises(KafkaStorageError):
        segment.delete_if_exists()

    assert [LOG.name] == files.names(DIRECTORY)


def test_segment_on_a_failed_disk_is_closed_without_a_write() -> None:
    files = FailingFiles()
    segment = open_segment(files=files)
    append_padded(segment, range(1))
    files.fail(forever=True)

    segment.close_handlers()

    assert (0, 0) == segment.offset_index.lookup(0)
    assert (-1, 0) == segment.time_index.lookup(FIRST_TIMESTAMP)
    for closed in (segment.log.flush, lambda: segment.log.slice(0, 150).read()):
        with pytest.raises(KafkaStorageError, match="Bad file descriptor"):
            closed()


def test_segment_moves_with_its_directory() -> None:
    files = MemoryFiles()
    segment = open_segment(files=files)
    append_padded(segment, range(1))
    moved = Path("/data/t-0.abc-delete")
    files.rename(DIRECTORY, moved)

    segment.update_parent_dir(moved)

    parts = (segment.log, segment.offset_index, segment.time_index, segment.txn_index)
    assert {moved} == {part.path.parent for part in parts}
    append_padded(segment, range(1, 2))
    segment.flush()
    segment.close()
    assert [0, 12, 300] == sorted(files.size(moved / name) for name in files.names(moved))


def test_batches_are_copied_from_another_file_while_their_offsets_fit() -> None:
    source = open_segment()
    far = 2**31 + 10
    for offset in (3, 4, far, far + 1):
        source.log.append(padded_batch(offset))
    first, second = open_segment(3, interval=0), open_segment(far, interval=0)

    taken = first.append_from_file(source.log, 0)
    rest = second.append_from_file(source.log, taken)

    assert (300, 300) == (taken, rest)
    assert [3, 4] == [batch.base_offset for batch in first.log.batches()]
    assert [(far + 1, 150)] == offset_entries(second)
    assert source.has_overflow()
    assert not first.has_overflow()
    assert not second.has_overflow()
    assert not open_segment().has_overflow()


def test_files_of_an_unopened_segment_are_removed_by_name() -> None:
    files = MemoryFiles()
    append_padded(open_segment(files=files), range(1))
    append_padded(open_segment(7, files=files), range(7, 8))
    files.open(DIRECTORY / "00000000000000000000.log.swap").close()

    delete_stale_files(files, DIRECTORY, 0)
    assert "00000000000000000000.log.swap" in files.names(DIRECTORY)
    delete_stale_files(files, DIRECTORY, 0, ".swap")

    assert {7} == {offset_from_file_name(name) for name in files.names(DIRECTORY)}
    assert 3 == len(files.names(DIRECTORY))
