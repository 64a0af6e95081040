from __future__ import annotations

from collections.abc import Iterable

import pytest

from barnabas.storage.recovery.swap_files import clean_up, numbered
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.storage.log.test_segment_directory import directory, filled, offsets_in
from tests.support.crash.points import ALL, NONE, crash_images
from tests.support.segments import DIRECTORY, padded_batch
from tests.support.some import some


def put(files: MemoryFiles, name: str, *offsets: int) -> None:
    """
    A file with a batch for each of *offsets*.
    """
    file = files.open(DIRECTORY / name)
    for offset in offsets:
        file.append(padded_batch(offset))


@pytest.fixture
def files() -> MemoryFiles:
    files = MemoryFiles()
    filled(directory(files), range(4), range(4, 8), range(8, 12))
    return files


def test_files_marked_as_deleted_are_removed_on_load(files: MemoryFiles) -> None:
    put(files, f"{0:020d}.log.deleted", 0)
    put(files, "anything.deleted")
    put(files, f"{7:020d}-0000000001.checkpoint.deleted")

    clean_up(directory(files))

    checkpoint = f"{7:020d}-0000000001.checkpoint.deleted"
    assert [checkpoint] == [name for name in files.names(DIRECTORY) if "deleted" in name]
    files.remove(DIRECTORY / checkpoint)
    assert list(range(12)) == offsets_in(files)


@pytest.mark.parametrize(
    ("left_over", "expected"),
    [
        ({"0.log.cleaned": [0], "0.index.cleaned": []}, range(12)),
        ({"0.log.swap": [1, 3], "8.log.cleaned": [8]}, [1, 3, *range(4, 12)]),
        ({"4.log.swap": []}, [*range(4), *range(8, 12)]),
        ({"0.index.swap": []}, range(12)),
    ],
    ids=[
        "cleaned files not yet swapped are removed",
        "a swap below an unfinished cleaned segment is completed",
        "an empty swap segment replaces only its own files",
        "the log was renamed before its index",
    ],
)
def test_unfinished_replacements_are_completed_or_undone_on_load(
    files: MemoryFiles, left_over: dict[str, list[int]], expected: Iterable[int]
) -> None:
    for name, offsets in left_over.items():
        base, suffix = name.split(".", 1)
        put(files, f"{int(base):020d}.{suffix}", *offsets)

    clean_up(directory(files))

    assert list(expected) == offsets_in(files)
    if "0.index.swap" in left_over:
        assert 0 == files.size(DIRECTORY / f"{0:020d}.index")


def test_completed_swap_removes_all_segments_it_covers(files: MemoryFiles) -> None:
    put(files, f"{0:020d}.log.swap", 1, 6)
    put(files, f"{0:020d}.timeindex.swap")
    put(files, f"{4:020d}.snapshot")
    put(files, f"{7:020d}.snapshot")

    clean_up(directory(files))

    assert [1, 6, *range(8, 12)] == offsets_in(files)
    names = files.names(DIRECTORY)
    assert [name for name in names if name.startswith(f"{4:020d}")] == []
    assert f"{0:020d}.index" not in names
    assert f"{0:020d}.timeindex" in names
    assert f"{7:020d}.snapshot" in names


@pytest.mark.parametrize(
    ("left_over", "expected"),
    [
        (("0.log.cleaned", "4.log.swap", "4.index.swap"), range(12)),
        (("0.log.swap", "0.index.swap", "0.timeindex.swap"), [1, *range(4, 12)]),
    ],
)
def test_crash_during_swap_completion_does_not_change_the_result(
    left_over: tuple[str, ...], expected: Iterable[int]
) -> None:
    files = CrashableFiles()
    filled(directory(files), range(4), range(4, 8), range(8, 12))
    for name in left_over:
        base, suffix = name.split(".", 1)
        put(files, f"{int(base):020d}.{suffix}", *([1] if ".log" in name else []))
        files.open(DIRECTORY / f"{int(base):020d}.{suffix}").sync()
    files.sync_directory(DIRECTORY)

    with crash_images(files, NONE, ALL) as images:
        clean_up(directory(files))

    assert len(images) > 2
    for image in some(images):
        assert list(expected) == offsets_in(CrashableFiles(image=image))


def test_unknown_files_are_left_alone(files: MemoryFiles) -> None:
    put(files, "notes.log")
    put(files, "notes.cleaned")
    put(files, "leader-epoch-checkpoint")

    clean_up(directory(files))

    assert {"notes.log", "notes.cleaned"} <= set(files.names(DIRECTORY))
    assert [name for name in files.names(DIRECTORY) if name[:20].isdecimal()] == numbered(
        files.names(DIRECTORY)
    )
