from __future__ import annotations

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.fs.interface import WouldBlock
from barnabas.storage.index.offset_index import OffsetIndex
from barnabas.storage.index.time_index import TimeIndex, TimestampOffset
from barnabas.storage.readonly.overlay_content import Sources
from barnabas.storage.readonly.overlay_files import OverlayFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.broker_process import resident_bytes
from tests.support.descriptors import open_descriptors
from tests.support.disk import contents
from tests.support.logs import append, log_of, offsets

DIRECTORY = Path("/data")
OTHER, FILE = DIRECTORY / "other", DIRECTORY / "file"
LOG = DIRECTORY / "00000000000000000100.log"
INDEX, TIME_INDEX = LOG.with_suffix(".index"), LOG.with_suffix(".timeindex")


@pytest.fixture
def below() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    put(files, FILE, b"alphabet")
    return files


def put(files: MemoryFiles, path: Path, data: bytes) -> None:
    file = files.open(path)
    file.append(data)
    file.close()


def test_overlay_write_is_readable_and_does_not_reach_the_file_below(below: MemoryFiles) -> None:
    before = contents(below)
    files = OverlayFiles(below)
    file = files.open(FILE)

    file.write_at(0, b"ALPHA")
    file.append(b"!")
    files.write_atomically(OTHER, b"new")

    assert b"ALPHAbet!" == files.read_bytes(FILE)
    assert (b"ALP", 9) == (bytes(file.read(0, 3)), file.size())
    assert (b"new", 3) == (files.read_bytes(OTHER), files.size(OTHER))
    assert ["file", "other"] == files.names(DIRECTORY)
    assert before == contents(below)


@pytest.mark.parametrize(("size", "expected"), [(3, b"alp"), (10, b"alphabet\0\0")])
def test_overlay_truncation_does_not_reach_the_file_below(
    size: int, expected: bytes, below: MemoryFiles
) -> None:
    files = OverlayFiles(below)

    files.open(FILE).truncate(size)

    assert expected == files.read_bytes(FILE)
    assert b"alphabet" == below.read_bytes(FILE)


def test_overlay_rename_does_not_reach_the_directory_below(below: MemoryFiles) -> None:
    files = OverlayFiles(below)

    files.rename(FILE, OTHER)

    assert (False, True) == (files.exists(FILE), files.exists(OTHER))
    assert b"alphabet" == files.read_bytes(OTHER)
    assert files.remove(OTHER)
    assert not files.remove(OTHER)
    assert [] == files.names(DIRECTORY)
    assert ["file"] == below.names(DIRECTORY)
    with pytest.raises(FileNotFoundError):
        files.open(OTHER, create=False)
    with pytest.raises(KafkaStorageError):
        files.rename(OTHER, FILE)


def test_overlay_shows_a_file_as_it_was_at_first_access(below: MemoryFiles) -> None:
    """
    A broker may append meanwhile.
    """
    files = OverlayFiles(below)
    file = files.open(FILE, read_only=True)

    below.open(FILE).append(b"ical")

    assert b"alphabet" == bytes(file.read(0, 100))
    assert 8 == files.size(FILE)


def test_overlay_hides_the_preallocated_space_of_an_index(below: MemoryFiles) -> None:
    """
    The length is that of the entries until the overlay enlarges it.
    """
    put(below, LOG, bytes(1000))
    writer = OffsetIndex.open(below, INDEX, 100, 80)
    writer.append(105, 256)
    writer.append(256 + 100, 512)
    times = TimeIndex.open(below, TIME_INDEX, 100, 120)
    times.maybe_append(1 << 32, 356)
    files = OverlayFiles(below)

    index = OffsetIndex.open(files, INDEX, 100, 80)
    time_index = TimeIndex.open(files, TIME_INDEX, 100, 120)

    assert (2, 356) == (index.entries, index.last_offset)
    assert (1, TimestampOffset(1 << 32, 356)) == (time_index.entries, time_index.last_entry)
    index.resize(80)
    index.append(400, 600)
    assert (3, (400, 600)) == (index.entries, tuple(index.lookup(500)))
    assert 2 == writer.entries


def test_overlay_hides_index_entries_newer_than_its_view_of_the_log(below: MemoryFiles) -> None:
    put(below, LOG, bytes(512))
    writer = OffsetIndex.open(below, INDEX, 100, 80)
    writer.append(105, 256)
    files = OverlayFiles(below)
    files.open(LOG, read_only=True)
    writer.append(106, 512)

    index = OffsetIndex.open(files, INDEX, 100, 80)

    assert (1, 105) == (index.entries, index.last_offset)


@pytest.mark.parametrize("size", [19, 12], ids=["damaged", "a lone entry of zeros is valid"])
def test_overlay_shows_other_zeros_of_an_index_unchanged(size: int, below: MemoryFiles) -> None:
    put(below, TIME_INDEX, bytes(size))

    assert size == TimeIndex.open(OverlayFiles(below), TIME_INDEX, 100, 120).length


def test_log_works_on_an_overlay_without_changes_below() -> None:
    home, log = log_of(20, segment_bytes=1000, segment_index_bytes=300)
    home.stop(log)
    before = contents(home.files)
    disk = home.files
    home.files = OverlayFiles(disk)  # type: ignore[assignment]  # it stands in for the disk

    for was_clean in (True, False):
        home.was_clean = was_clean
        log = home.open()
        append(log, 20, timestamp=home.clock.now_ms())
        assert list(range(20)) == offsets(log)[:20]
        home.clock.advance(10**10)
        assert log.delete_old_segments()
        log.close()
        home.files = OverlayFiles(disk)  # type: ignore[assignment]  # the same

    assert before == contents(disk)


def test_overlay_keeps_few_descriptors_open(tmp_path: Path) -> None:
    """
    A log may have thousands of segments of three files each.
    """
    names = [tmp_path / f"{number:020d}.index" for number in range(300)]
    for number, name in enumerate(names, 1):
        name.write_bytes(number.to_bytes(8, "big"))
        name.with_suffix(".log").write_bytes(bytes(100))
    files = OverlayFiles(DiskFiles())

    maps = [files.map(name, None) for name in names]
    logs = [files.open(name.with_suffix(".log")) for name in names]

    for _ in range(2):
        assert list(range(1, 301)) == [int.from_bytes(one.view, "big") for one in maps]
        assert {bytes(100)} == {bytes(log.read(0, 100)) for log in logs}
    gc.collect()
    assert open_descriptors(tmp_path) <= 40


def test_overlay_append_does_not_load_the_rest_of_the_file(below: MemoryFiles) -> None:
    """
    A segment of an internal topic may have 1 GiB.
    """
    files = OverlayFiles(below)
    file = files.open(FILE)

    file.append(b"ical")
    file.append(b"!")

    content = files._find(FILE)
    assert content is not None
    kept, memory = content._parts
    assert (8, b"ical!") == (kept, bytes(memory))
    assert b"betical!" == bytes(file.read(5, 100))
    assert b"beti" == bytes(file.read(5, 4))
    assert b"cal" == bytes(file.read(9, 3))
    room = bytearray(6)
    assert 6 == file.read_into(5, memoryview(room))
    assert b"betica" == room
    file.write_at(6, b"E")
    assert b"alphabEtical!" == files.read_bytes(FILE)
    assert 6 == content._parts[0]
    file.truncate(3)
    assert (b"alp", 3) == (files.read_bytes(FILE), content._parts[0])


def test_overlay_index_preallocation_takes_no_memory(below: MemoryFiles) -> None:
    """
    Each active segment has two indexes of 10 MiB.
    """
    put(below, INDEX, bytes(8))
    index = OffsetIndex.open(OverlayFiles(below), INDEX, 100, 1 << 23)
    before = resident_bytes(os.getpid())

    kept = [
        OffsetIndex.open(OverlayFiles(below), INDEX.with_name(f"{number}.index"), 0, 1 << 23)
        for number in range(30)
    ]
    for each in kept:
        each.append(1, 1)

    assert resident_bytes(os.getpid()) - before < 1 << 25
    assert index.resize(1 << 23)
    index.append(105, 256)
    assert (105, 256) == tuple(index.lookup(110))


def test_overlay_rename_and_removal_of_a_directory_do_not_reach_below(below: MemoryFiles) -> None:
    before = contents(below), set(below.directories)
    files = OverlayFiles(below)
    new, inside = Path("/renamed"), Path("/renamed/file")
    files.open(OTHER).append(b"made here")

    files.rename(DIRECTORY, new)

    assert not files.exists(DIRECTORY)
    assert not files.is_directory(DIRECTORY)
    assert not files.exists(FILE)
    assert files.is_directory(new)
    assert ["file", "other"] == files.names(new)
    assert ["renamed"] == files.names(Path("/"))
    assert b"alphabet" == files.read_bytes(inside)
    assert b"made here" == files.read_bytes(new / "other")
    with pytest.raises(FileNotFoundError):
        files.names(DIRECTORY)

    files.remove_tree(new)

    assert not files.exists(inside)
    assert [] == files.names(Path("/"))
    files.make_directory(DIRECTORY)
    assert [] == files.names(DIRECTORY)
    assert (contents(below), set(below.directories)) == before


def test_threads_may_read_more_files_than_are_kept_open(tmp_path: Path) -> None:
    names = [tmp_path / f"{number:020d}.log" for number in range(20)]
    for number, name in enumerate(names):
        name.write_bytes(bytes([number]) * 5000)
    files = OverlayFiles(DiskFiles(), most_open=2)

    def read(seed: int) -> bool:
        order = [*names[seed:], *names[:seed]] * 50
        return all(
            files.read_bytes(name) == bytes([names.index(name)]) * 5000
            and bytes(files.map(name, None).view) == bytes([names.index(name)]) * 5000
            for name in order
        )

    with ThreadPoolExecutor(4) as pool:
        assert [True] * 4 == list(pool.map(read, range(4)))


def test_overlay_passes_nonblocking_reads_to_the_file_below(below: MemoryFiles) -> None:
    files = OverlayFiles(below)
    file = files.open(FILE)
    below.is_cold = True

    with pytest.raises(WouldBlock):
        file.read(0, 3, nowait=True)
    with pytest.raises(WouldBlock):
        file.read_into(0, memoryview(bytearray(3)), nowait=True)


def test_overlay_lock_excludes_nobody(below: MemoryFiles) -> None:
    files = OverlayFiles(below)
    path = DIRECTORY / ".lock"

    first, second = files.lock(path), files.lock(path)

    assert files.is_locked(path)
    first.release()
    second.release()
    assert not files.is_locked(path)
    assert not below.exists(path)
    assert below.lock(path) is not None
    assert files.is_locked(path)


def test_overlay_does_not_close_a_file_under_a_reader(tmp_path: Path) -> None:
    """
    Another thread may have obtained the file and read it only after the next one is opened.
    """
    names = [tmp_path / f"{number:020d}.index" for number in range(3)]
    for number, name in enumerate(names):
        name.write_bytes(bytes([number]) * 8)
    disk = DiskFiles()
    sources = Sources(partial(disk.open, read_only=True), 1, lambda _: None)
    maps = Sources(partial(disk.map, size=None, read_only=True), 1, lambda it: it.give_back())
    file, mapped = sources.get(names[0]), maps.get(names[0])

    for name in names[1:]:
        sources.get(name)
        maps.get(name)

    assert bytes(8) == file.read(0, 100)
    assert bytes(8) == mapped.view
