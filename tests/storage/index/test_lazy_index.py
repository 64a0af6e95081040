"""
Indexes that are opened when they are needed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.index.lazy import IndexState, LazyIndex
from barnabas.storage.index.offset_index import OffsetIndex
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.disk import RecordingFiles

D = Path("/data")
PATH = D / "00000000000000000100.index"
DELETED = D / "00000000000000000100.index.deleted"


def lazy(files: MemoryFiles, size: int = 80) -> LazyIndex[OffsetIndex]:
    files.make_directory(D)
    return LazyIndex(OffsetIndex, files, D, PATH.name, 100, max_size=size)


def test_the_file_is_made_when_it_is_first_needed() -> None:
    """
    And opened once. Renaming and closing are no such needs.
    """
    files = MemoryFiles()
    index = lazy(files)

    index.rename_to(DELETED)
    index.rename_to(PATH)
    index.close()
    assert index.index is None
    assert [] == files.names(D)

    assert index.get() is index.get() is index.index
    assert 80 == files.size(PATH)


def test_an_index_that_cannot_be_made_can_be_tried_again() -> None:
    """
    The next one that needs it has the same error, or none.
    """
    files = FailingFiles()
    index = lazy(files)
    files.fail(only=frozenset({"map"}))

    with pytest.raises(KafkaStorageError):
        index.get()
    assert 0 == index.get().entries
    with pytest.raises(ValueError, match="Invalid max index size"):
        LazyIndex(OffsetIndex, files, D, DELETED.name, 100, max_size=7).get()


@pytest.mark.parametrize("opened", [False, True])
def test_renames_are_followed(opened: bool) -> None:
    """
    Whether it was open before or not.
    """
    files = MemoryFiles()
    lazy(files).get().append(105, 50)
    index = lazy(files)
    if opened:
        index.get()

    index.rename_to(DELETED)
    moved = Path("/data2")
    files.rename(D, moved)
    index.update_parent_dir(moved)

    assert moved / DELETED.name == index.path == index.get().path
    assert 105 == index.get().entry(0).offset
    assert [DELETED.name] == files.names(moved)


def test_a_removed_index_that_nobody_had_needed_is_not_made_again() -> None:
    """
    A reader that is still at its segment finds no entries, and scans instead.
    """
    files = MemoryFiles()
    lazy(files).get().append(105, 50)
    index = lazy(files)

    assert index.delete_if_exists()

    assert (100, 0) == index.get().lookup(2**40)
    index.get().flush()
    index.get().resize(0)
    index.close()
    index.close_handler()
    assert [] == files.names(D)
    assert not index.delete_if_exists()


def test_a_reader_does_without_an_index_while_the_directory_is_being_renamed() -> None:
    """
    That is no failure of the disk. Once the rename is known, the index is there.
    """
    files = MemoryFiles()
    lazy(files).get().append(105, 50)
    index = lazy(files)
    moved = Path("/data2")

    files.rename(D, moved)
    assert (100, 0) == index.get().lookup(110)
    index.update_parent_dir(moved)

    assert 105 == index.get().entry(0).offset


def test_a_reader_of_a_removed_index_goes_on_reading() -> None:
    """
    The memory map outlives the file.
    """
    files = MemoryFiles()
    index = lazy(files)
    index.get().append(105, 50)

    index.delete_if_exists()

    assert (105, 50) == index.get().lookup(110)


def test_a_disk_that_failed_is_not_touched_again() -> None:
    """
    Closing the handler leaves the file as long as it is.
    """
    files = FailingFiles()
    index = lazy(files)
    index.get().append(105, 50)
    files.fail(forever=True)

    index.close_handler()
    with pytest.raises(KafkaStorageError):
        index.close()


def test_room_is_made_when_the_index_is_asked_for() -> None:
    """
    Entries stay where they were.
    """
    files = MemoryFiles()
    first = lazy(files)
    first.get().append(105, 50)
    first.close()
    index = lazy(files)

    index.grow()
    assert 8 == files.size(PATH)

    assert (1, 10) == (index.get().entries, index.get().max_entries)
    assert 80 == files.size(PATH)


def test_an_index_for_which_there_was_no_room_gets_it_with_the_next_attempt() -> None:
    files = FailingFiles()
    first = lazy(files)
    first.get().append(105, 50)
    first.close()
    index = lazy(files)
    index.grow()
    files.fail(only=frozenset({"truncate"}))

    with pytest.raises(KafkaStorageError):
        index.get()
    assert index.index is None

    assert (1, 10) == (index.get().entries, index.get().max_entries)


@pytest.mark.parametrize("end", ["trim", "close"])
def test_the_file_of_a_removed_index_is_not_made_again(end: str) -> None:
    files = MemoryFiles()
    index = lazy(files)
    index.make_file()

    index.delete_if_exists()
    getattr(index, end)()

    assert [] == files.names(D)


@pytest.mark.parametrize("end", ["trim", "close"])
def test_a_file_that_was_made_for_nothing_is_emptied(end: str) -> None:
    files = MemoryFiles()
    index = lazy(files)

    index.make_file()
    assert 80 == files.size(PATH)
    assert 0 == index.peek(lambda found: found.entries)
    getattr(index, end)()

    assert index.index is None
    assert 0 == files.size(PATH)


def test_what_was_made_has_no_entries_yet() -> None:
    files = MemoryFiles()
    index = lazy(files)
    index.make_file()

    index.get().append(105, 50)

    assert (1, 80) == (index.get().entries, files.size(PATH))


def test_trimming_makes_a_file_that_is_missing() -> None:
    files = MemoryFiles()
    index = lazy(files)

    index.trim()

    assert index.index is None
    assert 0 == files.size(PATH)


def test_who_peeks_leaves_the_index_closed() -> None:
    files = MemoryFiles()
    first = lazy(files)
    first.get().append(105, 50)
    index = lazy(files)

    assert 105 == first.peek(lambda found: found.last_offset)
    first.close()
    assert 105 == index.peek(lambda found: found.last_offset)

    assert index.index is None


@pytest.mark.parametrize("asked", [False, True])
def test_what_was_unsynced_when_it_was_given_back_is_synced_by_the_next_flush(asked: bool) -> None:
    """
    Whether or not the index was opened since.
    """
    files = RecordingFiles()
    index = lazy(files)
    index.get().append(105, 50)
    index.release(unsynced=True)
    assert index.index is None
    if asked:
        assert 1 == index.get().entries
    files.operations.clear()

    index.flush()

    assert f"sync {PATH.name}" in files.operations


def test_a_flush_does_not_mind_that_the_directory_was_renamed() -> None:
    files = MemoryFiles()
    index = lazy(files)
    index.get().append(105, 50)
    index.release(unsynced=True)

    files.rename(D, Path("/gone"))
    index.flush()

    assert ["gone"] == files.names(Path("/"))


def test_an_index_in_memory_is_written_when_it_is_stored() -> None:
    """
    The entries that the file had before are gone; without entries, an empty file is left alone.
    """
    files = RecordingFiles()
    index = lazy(files)
    index.get().append(105, 50)

    index.reset()
    index.get().append(101, 10)
    index.store()
    assert 8 == files.size(PATH)
    assert (101, 10) == index.get().entry(0)

    for _ in range(2):
        index.reset()
        index.store()
    assert 0 == files.size(PATH)
    assert 2 == files.operations.count(f"truncate {PATH.name}")


def test_a_removed_index_is_not_stored() -> None:
    files = MemoryFiles()
    index = lazy(files)
    index.reset()
    index.get().append(101, 10)

    index.delete_if_exists()
    index.store()
    index.trim()

    assert [] == files.names(D)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("close", "CLOSED GROWABLE HOLE OPEN IN_MEMORY CLOSED CLOSED REMOVED"),
        ("grow", "GROWABLE GROWABLE HOLE OPEN IN_MEMORY CLOSED GROWABLE REMOVED"),
        ("make_file", "HOLE HOLE HOLE OPEN IN_MEMORY CLOSED HOLE REMOVED"),
        ("get", "CLOSED OPEN OPEN OPEN IN_MEMORY OPEN OPEN REMOVED"),
        ("reset", "IN_MEMORY IN_MEMORY IN_MEMORY IN_MEMORY IN_MEMORY IN_MEMORY CLOSED REMOVED"),
        ("delete_if_exists", "REMOVED REMOVED REMOVED REMOVED - REMOVED REMOVED REMOVED"),
    ],
)
def test_states_follow_each_other(before: str, after: str) -> None:
    """
    Each method may be called in each state, but a removed index cannot be recovered.
    """
    methods = ["release", "grow", "make_file", "get", "reset", "trim", "store", "delete_if_exists"]
    for method, expected in zip(methods, after.split(), strict=True):
        index = lazy(MemoryFiles())
        getattr(index, before)()
        arguments = {"unsynced": False} if method == "release" else {}

        if expected == "-":
            with pytest.raises(AssertionError):
                getattr(index, method)()
        else:
            getattr(index, method)(**arguments)
            assert IndexState[expected] is index.state
