from __future__ import annotations

import errno
import fcntl
import gc
import mmap
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.fs import page_cache
from barnabas.storage.fs.disk import SMALL_FILE, DiskFile, DiskFiles, storage_error
from barnabas.storage.fs.interface import Files, WouldBlock
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.descriptors import open_descriptors

FILES = DiskFiles()


def test_permission_error_names_the_user() -> None:
    """
    In a container, the owner of the directory and the user often differ.
    """
    denied = PermissionError(errno.EACCES, "Permission denied")

    error = storage_error("lock", Path("/data/.lock"), denied)

    expected = f"Cannot lock /data/.lock: Permission denied (for user {os.geteuid()})"
    assert expected == str(error)
    assert denied is error.__cause__  # set where compiled code would lose the ``from``


def test_appends_go_to_the_end_of_the_file_and_writes_to_their_position(tmp_path: Path) -> None:
    file = FILES.open(tmp_path / "a")
    file.append(b"ab")
    file.append(b"c")
    file.write_at(1, b"B")
    file.close()

    again = FILES.open(tmp_path / "a")
    again.append(memoryview(b"def"))

    assert b"aBcdef" == (tmp_path / "a").read_bytes()
    assert 6 == again.size()
    assert b"cd" == again.read(2, 2)
    assert b"ef" == again.read(4, 100)
    assert b"" == again.read(6, 1)


def file_with(directory: Path, data: bytes = b"abcdef") -> DiskFile:
    (directory / "a").write_bytes(data)
    return FILES.open(directory / "a")


def not_cached(*_: object) -> int:
    raise BlockingIOError(errno.EAGAIN, "")


def test_short_read_or_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, read = os.pwrite, os.pread
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: write(fd, bytes(data)[:2], at))
    monkeypatch.setattr(os, "pread", lambda fd, size, at: read(fd, min(size, 2), at))
    file = FILES.open(tmp_path / "a")

    file.append(b"abcdefg")

    assert b"abcdefg" == (tmp_path / "a").read_bytes()
    assert b"bcdef" == file.read(1, 5)


def test_nonblocking_read_into_a_buffer_returns_the_cached_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_with(tmp_path)
    room = memoryview(bytearray(4))
    found = []

    for position in (0, 3, 6):
        for nowait in (False, True):
            count = file.read_into(position, room, nowait=nowait)
            found.append(bytes(room[:count]))

    assert [b"abcd", b"abcd", b"def", b"def", b"", b""] == found
    real = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, rooms, *rest: real(fd, [rooms[0][:2]], *rest))
    assert 2 == file.read_into(0, room, nowait=True)
    assert 4 == file.read_into(0, room)


def test_nonblocking_read_of_cold_pages_reports_that_it_would_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_with(tmp_path)
    assert b"ef" == file.read(4, 100, nowait=True)

    def partly_cached(_fd: int, buffers: list[bytearray], *_: object) -> int:
        buffers[0][:2] = b"ab"
        return 2

    monkeypatch.setattr(os, "preadv", partly_cached)
    with pytest.raises(WouldBlock):
        file.read(0, 6, nowait=True)
    monkeypatch.setattr(os, "preadv", not_cached)
    with pytest.raises(WouldBlock):
        file.read(0, 6, nowait=True)
    with pytest.raises(WouldBlock):
        file.read_into(0, memoryview(bytearray(4)), nowait=True)


def test_file_system_without_nonblocking_reads_is_probed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    tmpfs does not support the flag; reads fall back to blocking ones.
    """
    (tmp_path / "a").write_bytes(b"abcdef")
    asked: list[int] = []

    def unsupported(*_: object) -> int:
        asked.append(1)
        raise OSError(errno.EOPNOTSUPP, "")

    monkeypatch.setattr(os, "preadv", unsupported)
    file = FILES.open(tmp_path / "a")

    assert [b"abc", b"abc"] == [file.read(0, 3, nowait=True) for _ in range(2)]
    other = FILES.open(tmp_path / "a")
    room = memoryview(bytearray(3))
    assert [3, 3] == [other.read_into(0, room, nowait=True) for _ in range(2)]
    assert b"abc" == bytes(room)
    assert 2 == len(asked)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe2(os.O_NONBLOCK)
    yield ends
    for end in ends:
        os.close(end)


def known(answer: bool) -> Callable[[int, int, int], bool]:
    return lambda fd, position, size: answer


def test_cached_bytes_are_spliced_into_a_pipe(
    tmp_path: Path, pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_cache, "holds", known(True))
    content = bytes(range(256)) * 1024
    (tmp_path / "a").write_bytes(content)
    file = FILES.open(tmp_path / "a")

    few = file.splice_into(pipe[1], 5, 1000)
    at_the_end = file.splice_into(pipe[1], len(content) - 4, 4)
    found = os.read(pipe[0], 2000)
    many = file.splice_into(pipe[1], 0, len(content))
    none = file.splice_into(pipe[1], 0, 1)

    assert (1000, 4) == (few, at_the_end)
    assert content[5:1005] + content[-4:] == found
    assert 0 < many < len(content)
    assert 0 == none


def test_bytes_that_may_not_be_cached_are_not_spliced(
    tmp_path: Path, pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_with(tmp_path)
    found = []

    with monkeypatch.context() as patched:
        patched.setattr(page_cache, "holds", known(False))
        found.append(file.splice_into(pipe[1], 0, 6))
    monkeypatch.setattr(page_cache, "holds", known(True))
    with monkeypatch.context() as patched:
        patched.setattr(os, "preadv", not_cached)
        found.append(file.splice_into(pipe[1], 0, 6))
    found.append(file.splice_into(pipe[1], 100, 6))
    file.close()
    found.append(file.splice_into(pipe[1], 0, 6))

    assert [0, 0, 0, 0] == found


def test_disk_error_names_the_file_and_keeps_the_errno(tmp_path: Path) -> None:
    file = FILES.open(tmp_path / "a")
    file.close()

    for use in (
        lambda: file.append(b"x"),
        lambda: file.read(0, 1),
        lambda: file.read(0, 1, nowait=True),
        lambda: file.read_into(0, memoryview(bytearray(1))),
        lambda: file.read_into(0, memoryview(bytearray(1)), nowait=True),
        lambda: file.truncate(0),
        file.size,
        file.sync,
    ):
        with pytest.raises(KafkaStorageError, match=str(tmp_path / "a")) as failure:
            use()
        cause = failure.value.__cause__
        assert isinstance(cause, OSError)
        assert errno.EBADF == cause.errno


def test_an_error_that_is_not_of_the_disk_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = FILES.open(tmp_path / "file")

    def fail(*_: object) -> None:
        raise ValueError("a fault of the program")

    monkeypatch.setattr(os, "ftruncate", fail)
    with pytest.raises(ValueError, match="a fault of the program"):
        file.truncate(0)
    file.close()


def test_close_waits_for_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Otherwise a reader would read whichever file gets the descriptor's number next.
    """
    (tmp_path / "a").write_bytes(b"mine")
    (tmp_path / "b").write_bytes(b"other")
    file = FILES.open(tmp_path / "a")
    real = os.pread

    def close_and_read(fd: int, size: int, at: int) -> bytes:
        file.close()
        FILES.open(tmp_path / "b")
        return real(fd, size, at)

    monkeypatch.setattr(os, "pread", close_and_read)

    assert b"mine" == file.read(0, 4)


def test_descriptors_of_closed_and_unreferenced_files_are_released(tmp_path: Path) -> None:
    file = FILES.open(tmp_path / "a")
    FILES.open(tmp_path / "b").append(b"x")
    mapped = FILES.map(tmp_path / "c", 100)
    mapped.put(0, b"x")
    mapped.resize(1)
    FILES.sync_directory(tmp_path)
    file.close()
    mapped.close()
    gc.collect()

    assert 0 == open_descriptors(tmp_path)


@pytest.mark.parametrize("make", [DiskFiles, MemoryFiles])
def test_missing_file_raises_file_not_found_for_queries_and_storage_errors_for_writes(
    make: type[DiskFiles | MemoryFiles], tmp_path: Path
) -> None:
    files = make()
    files.make_directory(tmp_path)
    missing = tmp_path / "missing"

    for question in (
        lambda: files.open(missing, create=False),
        lambda: files.open(missing, read_only=True),
        lambda: files.map(missing, None),
        lambda: files.read_bytes(missing),
        lambda: files.size(missing),
        lambda: files.modified_ms(missing),
        lambda: files.set_modified_ms(missing, 0),
        lambda: files.names(missing),
    ):
        with pytest.raises(FileNotFoundError):
            question()
    for order in (
        lambda: files.rename(missing, tmp_path / "b"),
        lambda: files.open(missing / "a"),
        lambda: files.map(missing / "a", 8),
        lambda: files.write_atomically(missing / "a", b""),
        lambda: files.sync_directory(missing),
    ):
        with pytest.raises(KafkaStorageError):
            order()
    assert not files.remove(missing)
    files.remove_tree(missing)
    assert not files.exists(missing)
    assert not files.is_directory(missing / "a")


def test_path_through_a_file_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")

    for question in (
        lambda: FILES.read_bytes(tmp_path),
        lambda: FILES.names(tmp_path / "a"),
        lambda: FILES.remove(tmp_path),
    ):
        with pytest.raises(KafkaStorageError):
            question()


def test_directories_are_created_listed_renamed_and_removed(tmp_path: Path) -> None:
    FILES.make_directory(tmp_path / "x" / "t-0")
    FILES.make_directory(tmp_path / "x" / "t-0")
    FILES.write_atomically(tmp_path / "x" / "t-0" / "b", b"1")
    FILES.write_atomically(tmp_path / "x" / "t-0" / "a", b"2")

    FILES.rename(tmp_path / "x" / "t-0", tmp_path / "x" / "t-1")

    assert ["t-1"] == FILES.names(tmp_path / "x")
    assert ["a", "b"] == FILES.names(tmp_path / "x" / "t-1")
    assert FILES.is_directory(tmp_path / "x" / "t-1")
    FILES.remove_tree(tmp_path / "x" / "t-1")
    assert [] == FILES.names(tmp_path / "x")


def test_is_directory_distinguishes_directories_from_files(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "c").symlink_to(tmp_path / "a")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")

    assert ["a", "b", "c"] == FILES.directory_names(tmp_path)
    assert ["a", "b", "c"] == Files.directory_names(FILES, tmp_path)
    with pytest.raises(FileNotFoundError):
        FILES.directory_names(tmp_path / "missing")


@pytest.mark.parametrize("size", [0, 1, SMALL_FILE - 1, SMALL_FILE, SMALL_FILE + 1, 3 * SMALL_FILE])
def test_a_file_of_any_size_is_read_whole(tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    (tmp_path / "a").write_bytes(data)

    assert data == FILES.read_bytes(tmp_path / "a")


def test_file_is_replaced_atomically(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(b"something long that was there")
    (tmp_path / "checkpoint.tmp").write_bytes(b"half of something else, from before a crash")

    FILES.write_atomically(path, b"new")

    assert b"new" == path.read_bytes()
    assert ["checkpoint"] == FILES.names(tmp_path)


def test_modification_times_are_in_milliseconds(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")

    FILES.set_modified_ms(tmp_path / "a", 1_700_000_000_123)

    assert 1_700_000_000_123 == FILES.modified_ms(tmp_path / "a")


def test_disk_space_is_reported(tmp_path: Path) -> None:
    assert 0 < FILES.usable_bytes(tmp_path) <= FILES.total_bytes(tmp_path)


def test_new_memory_map_is_sparse(tmp_path: Path) -> None:
    """
    An index preallocated to 10 MiB takes no space.
    """
    mapped = FILES.map(tmp_path / "index", 10 * 1024 * 1024)

    assert mapped.created
    assert 10 * 1024 * 1024 == len(mapped.view) == FILES.size(tmp_path / "index")
    assert 0 == (tmp_path / "index").stat().st_blocks


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not say it")
def test_memory_map_keeps_only_touched_pages_resident(tmp_path: Path) -> None:
    """
    Thousands of indexes are mapped; a search touches one or two pages.
    """
    path = tmp_path / "a"
    file = FILES.map(path, 2**20)

    assert 0 == file.view[2**19]
    _, _, facts = Path("/proc/self/smaps").read_text().partition(f"{path}\n")
    held = re.search(r"Rss:\s+(\d+) kB", facts)
    assert held is not None
    assert 0 < int(held[1]) < 64


def test_write_to_a_memory_map_is_visible_in_all_views_and_the_file(tmp_path: Path) -> None:
    mapped = FILES.map(tmp_path / "index", 8192)
    before = mapped.view

    mapped.put(0, b"abc")
    mapped.resize(4096)
    mapped.put(3, b"def")

    assert b"abcdef" == bytes(before[:6]) == bytes(mapped.view[:6])
    assert b"abcdef" == (tmp_path / "index").read_bytes()[:6]
    assert 4096 == FILES.size(tmp_path / "index")


def test_existing_file_is_mapped_unchanged(tmp_path: Path) -> None:
    (tmp_path / "index").write_bytes(b"abc")
    (tmp_path / "empty").write_bytes(b"")

    mapped = FILES.map(tmp_path / "index", 8192)

    assert not mapped.created
    assert b"abc" == bytes(mapped.view)
    assert b"" == bytes(FILES.map(tmp_path / "empty", 8192).view)
    assert b"abc" == bytes(FILES.map(tmp_path / "index", None, read_only=True).view)


def test_memory_map_is_flushed_only_if_it_has_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []

    class Memory(mmap.mmap):
        def flush(self, *args: int) -> None:
            flushed.append(len(self))
            super().flush(*args)

    monkeypatch.setattr(mmap, "mmap", Memory)
    mapped = FILES.map(tmp_path / "index", 16)
    changes: list[Callable[[], None]] = [
        lambda: None,
        lambda: mapped.put(0, b"x"),
        lambda: mapped.resize(8),
        lambda: mapped.resize(0),
    ]

    for change in changes:
        change()
        mapped.flush()
        mapped.flush()

    assert [16, 16, 8] == flushed


def test_bytes_that_the_disk_has_are_not_written_again(tmp_path: Path) -> None:
    file = FILES.open(tmp_path / "log")
    file.append(b"a" * 3_000_000)

    assert 0 == file.rewrite_lost()
    assert b"a" * 3_000_000 == file.read(0, 4_000_000)


class ForgetfulCache:
    """
    A page cache that drops bytes which were never written, some times.
    """

    def __init__(self, times: int) -> None:
        self._times = times

    def drop(self, fd: int, position: int, size: int, advice: int) -> None:
        assert advice == os.POSIX_FADV_DONTNEED
        if self._times:
            self._times -= 1
            os.pwrite(fd, bytes(4096), position)


def test_bytes_that_the_disk_lacks_are_written_again_and_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = bytes(range(256)) * 40
    file = FILES.open(tmp_path / "log")
    file.append(content)
    file.sync()
    synced: list[int] = []
    monkeypatch.setattr(os, "posix_fadvise", ForgetfulCache(1).drop)
    monkeypatch.setattr(os, "fsync", synced.append)

    assert len(content) == file.rewrite_lost()

    assert synced
    assert content == file.read(0, len(content))


def test_disk_that_keeps_nothing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = FILES.open(tmp_path / "log")
    file.append(b"a" * 4096)
    monkeypatch.setattr(os, "posix_fadvise", ForgetfulCache(2).drop)

    with pytest.raises(KafkaStorageError, match="does not keep what is written"):
        file.rewrite_lost()


def test_dirty_bytes_that_cannot_be_written_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = FILES.open(tmp_path / "log")
    file.append(b"a" * 4096)

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)

    with pytest.raises(KafkaStorageError, match="Cannot sync"):
        file.rewrite_lost()


def test_file_that_a_memory_map_has_emptied_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Without a sync, btrfs has the old length after a power cut, with zeros that look like entries.
    """
    synced: list[int] = []

    def sync(fd: int) -> None:
        synced.append(os.fstat(fd).st_size)

    mapped, closed = FILES.map(tmp_path / "index", 16), FILES.map(tmp_path / "closed", 16)
    monkeypatch.setattr(os, "fsync", sync)
    for each in (mapped, closed):
        each.resize(0)
    closed.close()

    for each in (mapped, mapped, closed):
        each.flush()

    assert [0] == synced


def test_memory_map_is_flushed_while_its_directory_is_renamed(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    mapped = FILES.map(tmp_path / "t-0" / "index", 16)
    FILES.rename(tmp_path / "t-0", tmp_path / "t-0.abc-delete")

    mapped.flush()


def test_full_disk_is_an_error_when_a_memory_map_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Writing into the hole of a preallocated index must not end the process with SIGBUS.
    """
    mapped = FILES.map(tmp_path / "index", 16)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)

    with pytest.raises(KafkaStorageError, match="No space left"):
        mapped.put(0, b"x")


def test_closed_memory_map_is_empty(tmp_path: Path) -> None:
    mapped = FILES.map(tmp_path / "index", 16)
    view = mapped.view

    mapped.close()

    assert b"" == bytes(mapped.view)
    assert bytes(16) == bytes(view)


LOCKER = """
import sys
from pathlib import Path
from barnabas.storage.fs.disk import DiskFiles
lock = DiskFiles().lock(Path(sys.argv[1]))
print("refused" if lock is None else "locked", flush=True)
sys.stdin.readline()
"""


def another_process(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", LOCKER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def answer_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.scenario(70)
def test_file_lock_excludes_other_processes_until_release_or_death(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with another_process(path) as first:
        assert "locked" == answer_of(first)
        assert FILES.lock(path) is None
        first.kill()
    lock = FILES.lock(path)
    assert lock is not None

    with another_process(path) as second:
        refused = answer_of(second)
        second.communicate("\n")
    lock.release()
    with another_process(path) as third:
        locked = answer_of(third)
        third.communicate("\n")

    assert ("refused", "locked") == (refused, locked)


def test_second_lock_in_the_same_process_is_refused_and_keeps_the_first(tmp_path: Path) -> None:
    """
    The system would grant the lock twice and drop it when the second descriptor is closed.
    """
    path = tmp_path / ".lock"
    lock = FILES.lock(path)
    assert lock is not None

    assert FILES.lock(tmp_path / "." / ".lock") is None

    with another_process(path) as other:
        assert "refused" == answer_of(other)
        other.communicate("\n")
    lock.release()


def test_released_lock_keeps_its_file(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    lock = FILES.lock(path)
    assert lock is not None

    lock.release()

    assert path.exists()
    second = FILES.lock(path)
    assert second is not None
    lock.release()
    assert FILES.lock(path) is None
    second.release()


def test_lock_on_a_file_removed_meanwhile_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Somebody may remove the file between our open and our lock.
    """
    path = tmp_path / ".lock"
    real = fcntl.lockf
    removed = threading.Event()

    def remove_then_lock(fd: int, how: int) -> None:
        if not removed.is_set():
            removed.set()
            path.unlink()
        real(fd, how)

    monkeypatch.setattr(fcntl, "lockf", remove_then_lock)

    lock = FILES.lock(path)

    assert lock is not None
    assert path.exists()
    lock.release()


@pytest.mark.parametrize("make", [DiskFiles, MemoryFiles])
def test_memory_files_behave_like_the_real_disk(
    make: type[DiskFiles | MemoryFiles], tmp_path: Path
) -> None:
    files = make()
    files.make_directory(tmp_path)
    a, b = tmp_path / "a", tmp_path / "b"
    seen: list[object] = []

    file = files.open(a)
    file.append(b"abcdef")
    file.truncate(8)
    file.append(b"!")
    file.sync()
    seen += [bytes(file.read(4, 100)), file.size(), files.exists(b), files.is_directory(tmp_path)]
    files.rename(a, b)
    files.write_atomically(a, b"x")
    mapped = files.map(b, 100)
    seen += [mapped.created, bytes(mapped.view), files.names(tmp_path), files.remove(a)]
    mapped.resize(2)
    seen += [files.read_bytes(b), files.size(b), files.remove(a)]
    file.close()

    first = [b"ef\0\0!", 9, False, True]
    second = [False, b"abcdef\0\0!", ["a", "b"], True]
    assert [*first, *second, b"ab", 2, False] == seen


def test_query_of_a_lock_neither_creates_nor_releases_it(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    assert not FILES.is_locked(path)
    assert not path.exists()

    lock = FILES.lock(path)
    assert lock is not None
    mine = FILES.is_locked(path)
    with another_process(path) as other:
        refused = answer_of(other)
        other.communicate("\n")
    lock.release()
    with another_process(path) as other:
        answer_of(other)
        theirs = FILES.is_locked(path)
        other.kill()
    path.touch()

    assert (True, "refused", True) == (mine, refused, theirs)
    assert not FILES.is_locked(path)
