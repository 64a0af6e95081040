from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.index.lazy import IndexState, LazyIndex
from barnabas.storage.index.offset_index import OffsetIndex
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.disk import RecordingFiles

D = Path("/data")
PATH = D / "00000000000000000100.index"
DELETED = D / "00000000000000000100.index.deleted"


def lazy(files: MemoryFiles) -> LazyIndex[OffsetIndex]:
    files.make_directory(D)
    return LazyIndex(OffsetIndex, files, D, PATH.name, 100, max_size=80)


def reopened(files: MemoryFiles) -> LazyIndex[OffsetIndex]:
    """
    An index that has one entry in its file.
    """
    first = lazy(files)
    first.get().append(105, 50)
    first.close()
    return lazy(files)


def test_lazy_index_creates_its_file_on_first_use() -> None:
    files = MemoryFiles()
    index = lazy(files)

    index.rename_to(DELETED)
    index.rename_to(PATH)
    index.close()
    assert index.index is None
    assert [] == files.names(D)

    assert index.get() is index.get() is index.index
    assert 80 == files.size(PATH)


def test_failed_creation_of_an_index_is_retried() -> None:
    files = FailingFiles()
    index = lazy(files)
    files.fail(only=frozenset({"map"}))

    with pytest.raises(KafkaStorageError):
        index.get()
    assert 0 == index.get().entries
    with pytest.raises(ValueError, match="Invalid max index size"):
        LazyIndex(OffsetIndex, files, D, DELETED.name, 100, max_size=7).get()


@pytest.mark.parametrize("opened", [False, True])
def test_lazy_index_follows_renames(opened: bool) -> None:
    files = MemoryFiles()
    index = reopened(files)
    if opened:
        index.get()

    index.rename_to(DELETED)
    moved = Path("/data2")
    files.rename(D, moved)
    index.update_parent_dir(moved)

    assert moved / DELETED.name == index.path == index.get().path
    assert 105 == index.get().entry(0).offset
    assert [DELETED.name] == files.names(moved)


def test_removed_index_that_was_never_used_is_not_created() -> None:
    """
    A reader still at its segment finds no entries and scans instead.
    """
    files = MemoryFiles()
    index = reopened(files)

    assert index.delete_if_exists()

    assert (100, 0) == index.get().lookup(2**40)
    index.get().flush()
    index.get().resize(0)
    index.close()
    index.close_handler()
    assert [] == files.names(D)
    assert not index.delete_if_exists()


def test_reader_does_without_an_index_while_its_directory_is_renamed() -> None:
    """
    This is no disk failure; the index is available once the rename is known.
    """
    files = MemoryFiles()
    index = reopened(files)
    moved = Path("/data2")

    files.rename(D, moved)
    assert (100, 0) == index.get().lookup(110)
    index.update_parent_dir(moved)

    assert 105 == index.get().entry(0).offset


def test_reader_of_a_removed_index_continues_on_its_memory_map() -> None:
    files = MemoryFiles()
    index = lazy(files)
    index.get().append(105, 50)

    index.delete_if_exists()

    assert (105, 50) == index.get().lookup(110)


def test_index_is_resized_when_it_is_next_used() -> None:
    files = MemoryFiles()
    index = reopened(files)

    index.grow()
    assert 8 == files.size(PATH)

    assert (1, 10) == (index.get().entries, index.get().max_entries)
    assert 80 == files.size(PATH)


def test_failed_resize_of_an_index_is_retried_on_the_next_use() -> None:
    files = FailingFiles()
    index = reopened(files)
    index.grow()
    files.fail(only=frozenset({"truncate"}))

    with pytest.raises(KafkaStorageError):
        index.get()
    assert index.index is None

    assert (1, 10) == (index.get().entries, index.get().max_entries)


@pytest.mark.parametrize("before", ["make_file", "reset"])
@pytest.mark.parametrize("end", ["store", "trim", "close"])
def test_file_of_a_removed_index_is_not_created_again(before: str, end: str) -> None:
    files = MemoryFiles()
    index = lazy(files)
    getattr(index, before)()

    index.delete_if_exists()
    getattr(index, end)()

    assert [] == files.names(D)


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize("end", ["trim", "close"])
def test_index_file_without_entries_is_empty(made: bool, end: str) -> None:
    files = MemoryFiles()
    index = lazy(files)

    if made:
        index.make_file()
        assert 80 == files.size(PATH)
        assert 0 == index.peek(lambda found: found.entries)
    getattr(index, end)()

    assert index.index is None
    assert 0 == (files.size(PATH) if made or end == "trim" else len(files.names(D)))


def test_peek_does_not_open_the_index() -> None:
    files = MemoryFiles()
    first = lazy(files)
    first.get().append(105, 50)
    index = lazy(files)

    assert 105 == first.peek(lambda found: found.last_offset)
    first.close()
    assert 105 == index.peek(lambda found: found.last_offset)

    assert index.index is None


@pytest.mark.parametrize("asked", [False, True])
def test_unsynced_index_closed_to_save_descriptors_is_synced_by_the_next_flush(asked: bool) -> None:
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


def test_flush_tolerates_a_renamed_directory() -> None:
    files = MemoryFiles()
    index = lazy(files)
    index.get().append(105, 50)
    index.release(unsynced=True)

    files.rename(D, Path("/gone"))
    index.flush()

    assert ["gone"] == files.names(Path("/"))


def test_index_filled_in_memory_replaces_the_file_when_stored() -> None:
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
def test_lazy_index_methods_work_in_every_state(before: str, after: str) -> None:
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


@pytest.mark.parametrize("is_used", [False, True])
def test_length_of_an_emptied_index_survives_a_crash_once_it_was_flushed(is_used: bool) -> None:
    files = CrashableFiles()
    index = lazy(files)
    index.make_file()
    with_hole = files.open(index.path)
    with_hole.sync()
    files.sync_directory(index.path.parent)
    if is_used:
        index.get()

    index.trim()
    index.flush()
    path = index.path
    files.crash()

    assert 0 == files.size(path)
