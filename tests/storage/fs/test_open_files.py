from __future__ import annotations

import errno
import gc
import os
import threading
from pathlib import Path

import pytest

from barnabas.storage.errors import KafkaStorageError, TooManyOpenFiles
from barnabas.storage.fs.disk import MAPS_KEEP_DESCRIPTORS, DiskFiles
from barnabas.storage.fs.interface import File
from barnabas.storage.fs.open_files import OpenFiles
from barnabas.storage.index.offset_index import OffsetIndex
from barnabas.storage.segment.fetch_data import FileSlice
from barnabas.storage.segment.records import FileRecords
from barnabas.testing.disks.memory import MemoryFile, MemoryFiles
from tests.support.descriptors import open_descriptors
from tests.support.logs import LogHome, produce

DATA = Path("/data")


class Holder:
    def __init__(self, open_files: OpenFiles) -> None:
        self.was_used = False
        self.is_open = True
        open_files.add(self)

    def give_back(self) -> None:
        self.is_open = False


def few(limit: int) -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(DATA)
    files.open_files = OpenFiles(limit)
    return files


def records(files: MemoryFiles | DiskFiles, path: Path, data: bytes) -> FileRecords:
    made = FileRecords.open(files, path)
    made.append(data)
    return made


def content(file: FileRecords) -> bytes:
    return bytes(file.slice(0, file.size).read())


def test_least_recently_used_files_are_closed_first() -> None:
    open_files = OpenFiles(3)
    holders = [Holder(open_files) for _ in range(3)]
    holders[0].was_used = True

    holders += [Holder(open_files) for _ in range(2)]

    assert [True, False, False, True, True] == [holder.is_open for holder in holders]
    assert 3 == len(open_files)


def test_file_used_only_once_is_closed_eventually() -> None:
    open_files = OpenFiles(2)
    used = Holder(open_files)
    used.was_used = True

    for _ in range(4):
        Holder(open_files)

    assert not used.is_open


@pytest.mark.parametrize("limit", [1, 7, 40])
def test_number_of_open_segment_files_is_bounded(tmp_path: Path, limit: int) -> None:
    files = DiskFiles(OpenFiles(limit))
    logs = [records(files, tmp_path / f"{n}.log", b"first %d" % n) for n in range(40)]
    assert limit == open_descriptors(tmp_path)

    for n, log in enumerate(logs):
        log.append(b", second %d" % n)

    assert [b"first %d, second %d" % (n, n) for n in range(40)] == [content(log) for log in logs]
    assert limit == open_descriptors(tmp_path)
    for log in logs:
        log.close()
    assert 0 == open_descriptors(tmp_path)


def test_no_file_is_closed_without_a_limit(tmp_path: Path) -> None:
    files = DiskFiles()

    logs = [records(files, tmp_path / f"{n}.log", b"x") for n in range(40)]

    assert 40 == open_descriptors(tmp_path)
    assert 0 == len(files.open_files)
    del logs
    gc.collect()
    assert 0 == open_descriptors(tmp_path)


@pytest.mark.parametrize("removed", [False, True])
def test_slice_stays_readable_after_its_file_was_closed(tmp_path: Path, removed: bool) -> None:
    files = DiskFiles(OpenFiles(1))
    log = records(files, tmp_path / "0.log", b"records")
    held: FileSlice = log.slice(2, 3)
    records(files, tmp_path / "1.log", b"")
    if removed:
        log.delete_if_exists()

    assert b"cor" == held.read()


def test_late_reader_can_still_read_a_removed_file(tmp_path: Path) -> None:
    """
    Also if its descriptor had been released; a reader's removed file stays open.
    """
    files = DiskFiles(OpenFiles(1))
    log = records(files, tmp_path / "0.log", b"records")
    other = records(files, tmp_path / "1.log", b"other")

    log.delete_if_exists()
    content(other)

    assert b"records" == content(log)
    assert 2 == open_descriptors(tmp_path)
    del log
    gc.collect()
    assert 1 == open_descriptors(tmp_path)


def test_renamed_file_is_reopened_by_its_new_name() -> None:
    files = few(1)
    log = records(files, DATA / "0.log", b"records")
    records(files, DATA / "1.log", b"")

    log.rename_to(DATA / "0.log.deleted")
    assert b"records" == content(log)

    records(files, DATA / "2.log", b"")
    files.rename(DATA, Path("/other"))
    log.update_parent_dir(Path("/other"))
    assert b"records" == content(log)


def test_reader_waits_while_the_directory_of_its_log_is_renamed() -> None:
    """
    The rename has happened on disk, but the log does not know it yet.
    """
    found: list[bytes] = []

    class Renaming(MemoryFiles):
        def rename(self, source: Path, target: Path) -> None:
            super().rename(source, target)
            if source == log.dir:
                reader.start()
                looked.wait(10)

        def open(self, path: Path, **more: bool) -> MemoryFile:
            try:
                return super().open(path, **more)
            finally:
                if path.name.endswith(".log"):
                    looked.set()

    files = Renaming()
    home = LogHome(files=files)
    looked = threading.Event()
    log = home.open()
    produce(log, b"value")
    log.close_handlers()
    files.open_files = OpenFiles(1)
    log = home.open()
    records(files, log.parent_dir / "other", b"")
    looked.clear()
    reader = threading.Thread(target=lambda: found.append(content(log.active_segment.log)))

    log.rename_dir("elsewhere-0", should_reinitialize=True)

    reader.join(10)
    assert b"value" in found[0]


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "removed by another program"])
def test_closed_or_removed_file_is_not_reopened(closed: bool) -> None:
    files = few(1)
    log = records(files, DATA / "0.log", b"records")
    records(files, DATA / "1.log", b"")

    log.close_handlers() if closed else files.remove(DATA / "0.log")

    with pytest.raises(KafkaStorageError, match=None if closed else "is gone"):
        content(log)


def test_idle_files_are_closed_when_descriptors_run_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = DiskFiles(OpenFiles(10))
    logs = [records(files, tmp_path / f"{n}.log", b"x") for n in range(4)]
    real, left = os.open, [1]

    def few_left(path: Path, flags: int, mode: int = 0o777) -> int:
        if len(files.open_files) > 2 or not left:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", few_left)

    opened: File = files.open(tmp_path / "more")
    assert 2 == len(files.open_files)
    left.clear()
    with pytest.raises(TooManyOpenFiles):
        files.open(tmp_path / "more")
    monkeypatch.undo()
    opened.close()
    assert [b"x"] * 4 == [content(log) for log in logs]


def crowd(files: DiskFiles, directory: Path) -> None:
    """
    Open so many files that those before are given back.
    """
    limit = files.open_files.limit or 0
    for n in range(2 * limit + 1):
        records(files, directory / f"crowd-{n}.log", b"")


def test_closed_index_is_reopened_on_use(tmp_path: Path) -> None:
    files = DiskFiles(OpenFiles(4))
    index = OffsetIndex.open(files, tmp_path / "0.index", 0, 800)
    for offset in range(1, 24):
        index.append(offset, offset * 10)
        crowd(files, tmp_path)
        assert (offset, offset * 10) == index.lookup(offset)
        index.flush()
        assert open_descriptors(tmp_path) <= 4
    crowd(files, tmp_path)
    index.truncate_to(20)
    crowd(files, tmp_path)

    assert (19, 190) == index.lookup(23)
    index.trim_to_valid_size()
    crowd(files, tmp_path)
    assert 19 * 8 == (tmp_path / "0.index").stat().st_size
    assert (7, 70) == index.lookup(7)


def test_reader_of_an_index_keeps_its_map_after_the_index_was_closed(tmp_path: Path) -> None:
    files = DiskFiles(OpenFiles(1))
    mapped = files.map(tmp_path / "0.index", 8)
    mapped.put(0, b"an entry")
    view = mapped.view

    crowd(files, tmp_path)

    assert b"an entry" == bytes(view) == bytes(mapped.view)


def test_index_closed_to_save_descriptors_is_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = DiskFiles(OpenFiles(1))
    (tmp_path / "old").mkdir()
    mapped = files.map(tmp_path / "old" / "0.index", 8)
    mapped.put(0, b"an entry")
    crowd(files, tmp_path)
    synced: list[str] = []
    looked = threading.Event()
    real = os.open

    def told(path: Path, flags: int, mode: int = 0o777) -> int:
        try:
            return real(path, flags, mode)
        finally:
            looked.set()

    monkeypatch.setattr(os, "open", told)
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    writer = threading.Thread(target=mapped.flush)

    with files.open_files.renaming:
        files.rename(tmp_path / "old", tmp_path / "new")
        writer.start()
        looked.wait(10)
        mapped.path = tmp_path / "new" / "0.index"
    writer.join(10)

    kept = [] if not MAPS_KEEP_DESCRIPTORS else [str(tmp_path / "new" / "0.index")]
    assert kept == synced
    mapped.flush()
    assert kept == synced
