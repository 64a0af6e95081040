from __future__ import annotations

import errno
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.errors import KafkaStorageError
from barnabas.testing.disks.crashable import EVERYTHING, NOTHING, CrashableFiles, Crashed
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.faulty import FaultyFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.disk import RecordingFiles

D = Path("/data")
A, B = D / "a", D / "b"


F = TypeVar("F", bound=MemoryFiles)


def on(files: F) -> F:
    files.make_directory(D)
    files.sync_directory(D.parent)
    return files


def write(files: MemoryFiles, path: Path, data: bytes, *, sync: bool = False) -> None:
    file = files.open(path)
    file.append(data)
    if sync:
        file.sync()


def test_operations_are_recorded_in_order() -> None:
    files = on(RecordingFiles())
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


def test_only_the_chosen_operation_fails() -> None:
    files = on(FailingFiles())
    files.fail(at=1, errno=errno.ENOSPC, only=frozenset({"write"}), written=2)

    write(files, A, b"first")
    with pytest.raises(KafkaStorageError) as failure:
        write(files, A, b"second")
    write(files, A, b"third")

    assert isinstance(failure.value.__cause__, OSError)
    assert errno.ENOSPC == failure.value.__cause__.errno
    assert b"firstsethird" == files.read_bytes(A)


def test_permanently_failed_disk_stays_failed() -> None:
    files = on(FailingFiles())
    write(files, A, b"abc")

    files.fail(forever=True)

    for _ in range(2):
        with pytest.raises(KafkaStorageError):
            files.open(A)


def test_crash_loses_unsynced_bytes_and_names() -> None:
    files = on(CrashableFiles())
    write(files, A, b"synced", sync=True)
    files.sync_directory(D)
    write(files, A, b" lost")
    write(files, B, b"its name was not synced", sync=True)

    files.crash()

    assert b"synced" == files.read_bytes(A)
    assert ["a"] == files.names(D)


def test_crash_may_undo_an_unsynced_removal_or_rename() -> None:
    files = on(CrashableFiles())
    write(files, A, b"a", sync=True)
    write(files, B, b"b", sync=True)
    files.sync_directory(D)

    files.remove(A)
    files.rename(B, D / "c")
    files.crash()

    assert ["a", "b"] == files.names(D)


def test_crash_loses_a_directory_whose_name_was_not_synced() -> None:
    files = on(CrashableFiles(directories_survive=False))
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


def test_removed_directory_may_reappear_with_some_of_its_files_after_a_crash() -> None:
    files = on(CrashableFiles())
    files.make_directory(D / "t")
    for path in (D / "t" / "a", D / "t" / "b"):
        write(files, path, b"synced", sync=True)
    for path in (D / "t", D):
        files.sync_directory(path)

    files.remove_tree(D / "t")

    assert {"/data/t/a", "/data/t/b"} == files.image(NOTHING).files.keys()
    assert {"/data/t/b"} == files.image(lambda most: most // 2).files.keys()
    assert set() == files.image(EVERYTHING).files.keys()


def test_crash_may_leave_a_file_longer_than_its_written_bytes() -> None:
    files = on(CrashableFiles())
    write(files, A, b"synced", sync=True)
    files.sync_directory(D)
    write(files, A, b" and not")

    choices = iter((2, 1))
    image = files.image(lambda most: next(choices))

    assert b"synced a\0\0\0\0\0\0" == image.files["/data/a"].content


def test_crash_image_leaves_the_running_disk_unchanged() -> None:
    files = on(CrashableFiles())
    write(files, A, b"a")

    assert {} == files.image(NOTHING).files
    copy = CrashableFiles(image=files.image(EVERYTHING))
    write(copy, A, b"b")
    write(files, A, b"c")

    assert b"ab" == copy.read_bytes(A)
    assert b"ac" == files.read_bytes(A)
    copy.crash()
    assert b"a" == copy.read_bytes(A)


@given(st.data())
def test_crash_may_keep_any_prefix_of_any_unsynced_write(data: st.DataObject) -> None:
    files = on(CrashableFiles())
    write(files, A, b"", sync=True)
    files.sync_directory(D)
    write(files, A, b"abc")
    write(files, A, b"def")

    files.crash(lambda most: data.draw(st.integers(0, most)))

    content = files.read_bytes(A)
    first, second = content[:3], content[3:]
    assert b"abc".startswith(first.rstrip(b"\0"))
    assert b"def".startswith(second.rstrip(b"\0"))


def test_disk_stops_at_the_given_operation() -> None:
    files = on(CrashableFiles())
    files.crash_before(1)

    with pytest.raises(Crashed):
        files.write_atomically(A, b"never")
    with pytest.raises(Crashed):
        files.names(D)
    files.crash(lambda most: most)

    assert ["a.tmp"] == files.names(D)


def test_disk_may_combine_failures_and_crashes() -> None:
    files = on(FaultyFiles())
    files.write_atomically(A, b"kept")
    files.fail(only={"write"})

    with pytest.raises(KafkaStorageError):
        write(files, A, b"refused")
    files.crash_before(1)
    with pytest.raises(Crashed):
        files.write_atomically(A, b"never")
    files.crash(NOTHING)

    assert b"kept" == files.read_bytes(A)
