"""
The disks of the other tests do what they say: a test on a disk that forgives is worth nothing.
"""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.fs.interface import WouldBlock
from barnabas.testing.disks.crashable import EVERYTHING, NOTHING, CrashableFiles, Crashed
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.faulty import FaultyFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.disk import RecordingFiles

D = Path("/data")
A, B = D / "a", D / "b"


def on(files: MemoryFiles) -> MemoryFiles:
    files.make_directory(D)
    files.sync_directory(D.parent)
    return files


def write(files: MemoryFiles, path: Path, data: bytes, *, sync: bool = False) -> None:
    file = files.open(path)
    file.append(data)
    if sync:
        file.sync()


def test_what_was_written_is_read() -> None:
    """
    Files have what was written to them, also beyond their end, and nothing after they are cut.
    """
    files = on(MemoryFiles())
    file = files.open(A)

    file.append(b"abc")
    file.write_at(5, b"f")
    file.truncate(6)

    assert b"abc\0\0f" == file.read(0, 100) == files.read_bytes(A)
    assert b"c\0" == file.read(2, 2)
    assert 6 == file.size() == files.size(A)


def test_a_map_shows_what_is_put_into_it_and_survives_its_resize() -> None:
    """
    A view is live, and one from before a resize stays readable.
    """
    mapped = on(MemoryFiles()).map(A, 8)
    before = mapped.view

    mapped.put(0, b"abcd")
    mapped.resize(4)

    assert mapped.created
    assert b"abcd\0\0\0\0" == bytes(before)
    assert b"abcd" == bytes(mapped.view)


def test_missing_files_are_no_failures() -> None:
    """
    Questions about a missing file are answered by ``FileNotFoundError``, orders fail.
    """
    files = on(MemoryFiles())

    for question in (
        lambda: files.open(A, create=False),
        lambda: files.map(A, None),
        lambda: files.read_bytes(A),
        lambda: files.size(A),
        lambda: files.modified_ms(A),
        lambda: files.names(B),
    ):
        with pytest.raises(FileNotFoundError):
            question()
    with pytest.raises(KafkaStorageError):
        files.rename(A, B)
    with pytest.raises(KafkaStorageError):
        files.open(Path("/nowhere/a"))
    assert not files.remove(A)


def test_a_cold_page_cache_blocks() -> None:
    """
    A read that may not wait says so; one that may is served.
    """
    files = on(MemoryFiles())
    write(files, A, b"abc")
    files.is_cold = True

    with pytest.raises(WouldBlock):
        files.open(A).read(0, 3, nowait=True)
    assert b"abc" == files.open(A).read(0, 3)


def test_operations_are_recorded_in_order() -> None:
    """
    What changes something is recorded, with the place of each write.
    """
    files = RecordingFiles()
    on(files)
    files.operations.clear()

    files.write_atomically(A, b"new")

    assert [
        "create a.tmp",
        "truncate a.tmp",
        "write a.tmp @0 +3",
        "sync a.tmp",
        "rename a.tmp",
        "sync directory data",
    ] == files.operations


def test_the_chosen_operation_fails_and_later_ones_do_not() -> None:
    """
    The n-th write fails with the error that was asked for; part of it may have been done.
    """
    files = FailingFiles()
    on(files)
    files.fail(at=1, errno=errno.ENOSPC, only=frozenset({"write"}), written=2)

    write(files, A, b"first")
    with pytest.raises(KafkaStorageError) as failure:
        write(files, A, b"second")
    write(files, A, b"third")

    assert isinstance(failure.value.__cause__, OSError)
    assert errno.ENOSPC == failure.value.__cause__.errno
    assert b"firstsethird" == files.read_bytes(A)


def test_a_broken_disk_stays_broken() -> None:
    """
    With ``forever`` nothing works any more.
    """
    files = FailingFiles()
    write(on(files), A, b"abc")

    files.fail(forever=True)

    for _ in range(2):
        with pytest.raises(KafkaStorageError):
            files.open(A)


def test_a_crash_takes_what_was_not_synced() -> None:
    """
    Neither bytes nor names survive unless they were synced.
    """
    files = CrashableFiles()
    on(files)
    write(files, A, b"synced", sync=True)
    files.sync_directory(D)
    write(files, A, b" lost")
    write(files, B, b"its name was not synced", sync=True)

    files.crash()

    assert b"synced" == files.read_bytes(A)
    assert ["a"] == files.names(D)


def test_a_crash_may_undo_a_removal_and_a_rename() -> None:
    """
    Before the directory is synced, the old names may come back.
    """
    files = CrashableFiles()
    on(files)
    write(files, A, b"a", sync=True)
    write(files, B, b"b", sync=True)
    files.sync_directory(D)

    files.remove(A)
    files.rename(B, D / "c")
    files.crash()

    assert ["a", "b"] == files.names(D)


def test_a_crash_takes_a_directory_whose_name_was_not_synced() -> None:
    """
    With all that is in it; until then it may come back under the name that it had.
    """
    files = CrashableFiles(directories_survive=False)
    on(files)
    files.make_directory(D / "new")
    write(files, D / "new" / "file", b"synced", sync=True)
    files.sync_directory(D / "new")
    files.make_directory(D / "old")
    write(files, D / "old" / "file", b"synced", sync=True)
    files.sync_directory(D / "old")
    kept = files.image(EVERYTHING)
    files.rename(D / "new", D / "renamed")

    nothing = files.image(NOTHING)
    everything = files.image(EVERYTHING)
    first_two = files.image(lambda most: min(most, 2))

    assert nothing.directories == {"/data"}
    assert kept.directories == {"/data", "/data/new", "/data/old"} == first_two.directories
    assert everything.files.keys() == {"/data/renamed/file", "/data/old/file"}


def test_a_removed_directory_may_come_back_with_a_part_of_its_files() -> None:
    files = CrashableFiles()
    on(files)
    files.make_directory(D / "t")
    for path in (D / "t" / "a", D / "t" / "b"):
        write(files, path, b"synced", sync=True)
    for path in (D / "t", D):
        files.sync_directory(path)

    files.remove_tree(D / "t")

    assert {"/data/t/a", "/data/t/b"} == files.image(NOTHING).files.keys()
    assert {"/data/t/b"} == files.image(lambda most: most // 2).files.keys()
    assert set() == files.image(EVERYTHING).files.keys()


def test_a_file_may_have_grown_before_its_bytes_were_there() -> None:
    files = CrashableFiles()
    on(files)
    write(files, A, b"synced", sync=True)
    files.sync_directory(D)
    write(files, A, b" and not")

    choices = iter((2, 1))
    image = files.image(lambda most: next(choices))

    assert b"synced a\0\0\0\0\0\0" == image.files["/data/a"].content


def test_looking_at_what_a_crash_would_leave_changes_nothing() -> None:
    """
    Another machine starts from the image, and this one continues.
    """
    files = CrashableFiles()
    on(files)
    write(files, A, b"a")

    assert {} == files.image(NOTHING).files
    copy = CrashableFiles(image=files.image(EVERYTHING))
    write(copy, A, b"b")
    write(files, A, b"c")

    assert b"ab" == copy.read_bytes(A)
    assert b"ac" == files.read_bytes(A)
    copy.crash()
    assert b"a" == copy.read_bytes(A)


def test_a_crash_may_take_nothing() -> None:
    """
    What was not synced may survive all the same.
    """
    files = CrashableFiles()
    on(files)
    write(files, A, b"lucky")

    files.crash(lambda most: most)

    assert b"lucky" == files.read_bytes(A)


@given(st.data())
def test_a_crash_keeps_any_part_of_each_write(data: st.DataObject) -> None:
    """
    Of writes that were not synced, any subset survives, each from its beginning on.
    """
    files = CrashableFiles()
    on(files)
    write(files, A, b"", sync=True)
    files.sync_directory(D)
    write(files, A, b"abc")
    write(files, A, b"def")

    files.crash(lambda most: data.draw(st.integers(0, most)))

    content = files.read_bytes(A)
    first, second = content[:3], content[3:]
    assert b"abc".startswith(first.rstrip(b"\0"))
    assert b"def".startswith(second.rstrip(b"\0"))


def test_the_machine_stops_at_the_given_step() -> None:
    """
    From the chosen step on nothing happens until the restart.
    """
    files = CrashableFiles()
    on(files)
    files.crash_before(1)

    with pytest.raises(Crashed):
        files.write_atomically(A, b"never")
    with pytest.raises(Crashed):
        files.names(D)
    files.crash(lambda most: most)

    assert ["a.tmp"] == files.names(D)


def test_a_disk_with_all_faults_fails_and_crashes() -> None:
    files = FaultyFiles()
    on(files)
    files.write_atomically(A, b"kept")
    files.fail(only={"write"})

    with pytest.raises(KafkaStorageError):
        write(files, A, b"refused")
    files.crash_before(1)
    with pytest.raises(Crashed):
        files.write_atomically(A, b"never")
    files.crash(NOTHING)

    assert b"kept" == files.read_bytes(A)
