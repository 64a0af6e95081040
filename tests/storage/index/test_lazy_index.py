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


def test_lazy_index_creates_its_file_on_first_use() -> None:
    """
    It is opened once. Renaming and closing do not open it.
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


def test_failed_creation_of_an_index_is_retried() -> None:
    """
    The next use has the same error or succeeds.
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
def test_lazy_index_follows_renames(opened: bool) -> None:
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


def test_removed_index_that_was_never_used_is_not_created() -> None:
    """
    A reader still at its segment finds no entries and scans instead.
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


def test_reader_does_without_an_index_while_its_directory_is_renamed() -> None:
    """
    This is no disk failure; the index is available once the rename is known.
    """
    files = MemoryFiles()
    lazy(files).get().append(105, 50)
    index = lazy(files)
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


def test_lazy_index_on_a_failed_disk_is_closed_without_a_write() -> None:
    files = FailingFiles()
    index = lazy(files)
    index.get().append(105, 50)
    files.fail(forever=True)

    index.close_handler()
    with pytest.raises(KafkaStorageError):
        index.close()


def test_index_is_resized_when_it_is_next_used() -> None:
    files = MemoryFiles()
    first = lazy(files)
    first.get().append(105, 50)
    first.close()
    index = lazy(files)

    index.grow()
    assert 8 == files.size(PATH)

    assert (1, 10) == (index.get().entries, index.get().max_entries)
    assert 80 == files.size(PATH)


def test_failed_resize_of_an_index_is_retried_on_the_next_use() -> None:
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
def test_file_of_a_removed_index_is_not_created_again(end: str) -> None:
    files = MemoryFiles()
    index = lazy(files)
    index.make_file()

    index.delete_if_exists()
    getattr(index, end)()

    assert [] == files.names(D)


@pytest.mark.parametrize("end", ["trim", "close"])
def test_index_file_created_in_vain_is_truncated(end: str) -> None:
    files = MemoryFiles()
    index = lazy(files)

    index.make_file()
    assert 80 == files.size(PATH)
    assert 0 == index.peek(lambda found: found.entries)
    getattr(index, end)()

    assert index.index is None
    assert 0 == files.size(PATH)


def test_newly_created_index_has_no_entries() -> None:
    files = MemoryFiles()
    index = lazy(files)
    index.make_file()

    index.get().append(105, 50)

    assert (1, 80) == (index.get().entries, files.size(PATH))


def test_trim_creates_a_missing_index_file() -> None:
    files = MemoryFiles()
    index = lazy(files)

    index.trim()

    assert index.index is None
    assert 0 == files.size(PATH)


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
    """
    Without entries, an empty file is left alone.
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


def test_removed_index_is_not_stored() -> None:
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
def test_lazy_index_methods_work_in_every_state(before: str, after: str) -> None:
    """
    Except that a removed index cannot be recovered.
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
