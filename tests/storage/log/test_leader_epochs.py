from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.errors import CorruptCheckpoint
from barnabas.storage.log.leader_epochs import LeaderEpochFileCache
from barnabas.storage.state_files.checkpoints import EpochEntry, LeaderEpochCheckpointFile
from barnabas.testing.disks.memory import MemoryFiles

D = Path("/data/t-0")
FILE = D / "leader-epoch-checkpoint"


Work = list[Callable[[], None]]


def cache_of(
    *entries: tuple[int, int], files: MemoryFiles | None = None, work: Work | None = None
) -> LeaderEpochFileCache:
    """
    A log with *entries* in its file. What it puts off is added to *work*, or else done at once.
    """
    files = files or MemoryFiles()
    files.make_directory(D)
    checkpoint = LeaderEpochCheckpointFile(files, D)
    if entries:
        checkpoint.write([EpochEntry(*entry) for entry in entries])
    schedule = () if work is None else (work.append,)
    return LeaderEpochFileCache("t-0", checkpoint, checkpoint.read(), *schedule)


def test_new_log_has_no_leader_epoch_and_an_empty_file() -> None:
    files = MemoryFiles()
    cache = cache_of(files=files)

    assert cache.is_empty
    assert (None, None, None) == (cache.latest_epoch, cache.latest_entry, cache.earliest_entry)
    assert b"" == files.read_bytes(FILE)


@pytest.mark.scenario(15)
def test_first_leader_epoch_is_written_before_assign_returns() -> None:
    files = MemoryFiles()
    cache = cache_of(files=files)

    cache.assign(0, 0)

    assert b"0\n1\n0 0\n" == files.read_bytes(FILE)
    assert 0 == cache.latest_epoch
    assert EpochEntry(0, 0) == cache.earliest_entry == cache.latest_entry


def test_started_leader_epoch_is_written_no_later_than_its_first_record() -> None:
    files, soon = MemoryFiles(), Work()
    cache = cache_of((0, 0), files=files, work=soon)
    before = files.read_bytes(FILE)

    cache.begin(2, 7)

    assert (before, 2) == (files.read_bytes(FILE), cache.latest_epoch)
    cache.assign(2, 7)
    assert b"0\n2\n0 0\n2 7\n" == files.read_bytes(FILE)
    cache.begin(2, 7)
    assert 1 == len(soon)
    cache.begin(4, 7)
    soon.pop()()
    assert b"0\n2\n0 0\n4 7\n" == files.read_bytes(FILE)


def test_leader_epoch_already_written_is_not_written_again() -> None:
    files, soon = MemoryFiles(), Work()
    cache = cache_of(files=files, work=soon)
    cache.begin(1, 0)
    cache.assign(1, 0)
    files.remove(FILE)

    soon.pop()()
    cache.assign(1, 3)

    assert not files.exists(FILE)


def test_leader_epoch_of_a_log_being_deleted_is_not_written() -> None:
    files, soon = MemoryFiles(), Work()
    cache = cache_of(files=files, work=soon)
    cache.begin(1, 0)

    cache.clear()
    soon.pop()()

    assert b"" == files.read_bytes(FILE)


def test_rename_before_a_leader_epoch_is_written_is_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    A topic may be deleted right after its creation.
    """
    files, soon = MemoryFiles(), Work()
    cache = cache_of(files=files, work=soon)
    cache.begin(1, 0)
    files.rename(D, D.with_name("t-0-delete"))

    soon.pop()()

    assert "its directory is gone" in caplog.text


def test_leader_epoch_file_is_read_at_the_start() -> None:
    """
    By the rules of ``assign``: entries that contradict later ones are dropped.
    """
    assert (EpochEntry(0, 0), EpochEntry(2, 7), EpochEntry(4, 14)) == cache_of(
        (0, 0), (2, 7), (4, 14)
    ).entries
    assert (EpochEntry(1, 5),) == cache_of((3, 9), (1, 5)).entries


def test_malformed_leader_epoch_file_is_refused() -> None:
    """
    A log without its epochs would answer clients wrongly.
    """
    files = MemoryFiles()
    files.make_directory(D)
    files.write_atomically(FILE, b"0\n1\n0 0 0\n")

    with pytest.raises(CorruptCheckpoint):
        cache_of(files=files)


def test_assigning_a_known_leader_epoch_writes_nothing() -> None:
    files = MemoryFiles()
    cache = cache_of((0, 0), (2, 7), files=files)
    files.remove(FILE)

    cache.assign(2, 7)
    cache.assign(2, 100)

    assert (EpochEntry(0, 0), EpochEntry(2, 7)) == cache.entries
    assert not files.exists(FILE)


def test_replacing_an_empty_leader_epoch_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """
    This happens at every start; replacing an epoch with records logs a warning.
    """
    with caplog.at_level(logging.WARNING):
        cache = cache_of((0, 0), (2, 7))
        cache.assign(4, 7)
        assert [] == caplog.records
        cache.assign(6, 3)

    assert "truncation" in caplog.text


@pytest.mark.parametrize("entry", [(-1, 0), (0, -1)])
def test_negative_leader_epoch_or_offset_is_an_error(entry: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="invalid partition leader epoch"):
        cache_of().assign(*entry)


def test_leader_epoch_file_is_written_in_the_background_after_a_truncation() -> None:
    files = MemoryFiles()
    later = Work()
    cache = cache_of((0, 0), (2, 7), files=files, work=later)

    cache.truncate_from_end_async_flush(7)
    cache.truncate_from_end_async_flush(7)

    assert (EpochEntry(0, 0),) == cache.entries
    assert b"0\n2\n0 0\n2 7\n" == files.read_bytes(FILE)
    assert 1 == len(later)
    later[0]()
    assert b"0\n1\n0 0\n" == files.read_bytes(FILE)
    files.rename(D, D.with_name("t-0.abc-delete"))
    later[0]()
    assert not files.exists(FILE)


def test_clearing_leader_epochs_may_leave_the_file_alone() -> None:
    files = MemoryFiles()
    cache = cache_of((0, 0), files=files)

    cache.clear()
    assert cache.is_empty
    assert b"0\n1\n0 0\n" == files.read_bytes(FILE)
    cache.clear_and_flush()
    assert b"0\n0\n" == files.read_bytes(FILE)


Entries = list[tuple[int, int]]
SMALL = st.integers(0, 9)


def assigned(entries: Entries, epoch: int, offset: int) -> Entries:
    kept = [entry for entry in entries if entry[0] < epoch and entry[1] < offset]
    known = [entry for entry in entries[-1:] if entry[0] == epoch and entry[1] <= offset]
    return [*kept, *(known or [(epoch, offset)])]


def without_end(entries: Entries, end: int) -> Entries:
    return entries if end < 0 else [entry for entry in entries if entry[1] < end]


def without_start(entries: Entries, start: int) -> Entries:
    before = [(epoch, start) for epoch, offset in entries if offset <= start]
    return before[-1:] + [entry for entry in entries if entry[1] > start]


def end_of(entries: Entries, requested: int, log_end: int) -> tuple[int, int] | None:
    if entries and requested == entries[-1][0]:
        return log_end, requested
    later = [offset for epoch, offset in entries if epoch > requested >= 0]
    floor = max((epoch for epoch, _ in entries if epoch <= requested), default=requested)
    return (later[0], floor) if later else None


@given(st.lists(st.tuples(SMALL, SMALL)), st.integers(-1, 11))
def test_leader_epochs_agree_with_a_plain_list(changes: Entries, at: int) -> None:
    files = MemoryFiles()
    cache = cache_of(files=files)
    expected: Entries = []
    for change in changes:
        cache.assign(*change)
        expected = assigned(expected, *change)

    assert expected == [tuple(entry) for entry in cache.entries]
    assert cache.entries == cache_of(files=files).entries
    assert end_of(expected, at, 99) == cache.end_offset_for(at, log_end_offset=99)
    cache.truncate_from_end_async_flush(at)
    assert without_end(expected, at) == [tuple(entry) for entry in cache.entries]


@given(st.lists(st.tuples(SMALL, SMALL)), st.integers(0, 11))
def test_truncation_from_the_start_moves_the_first_leader_epoch(changes: Entries, at: int) -> None:
    cache = cache_of()
    for change in changes:
        cache.assign(*change)
    before = [(entry.epoch, entry.start_offset) for entry in cache.entries]

    cache.truncate_from_start_async_flush(at)

    assert without_start(before, at) == [tuple(entry) for entry in cache.entries]
