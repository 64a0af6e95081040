from __future__ import annotations

import errno
import mmap
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.storage.errors import KafkaStorageError, TooManyOpenFiles
from barnabas.storage.fs import disk
from barnabas.storage.fs.disk import DiskFiles, most_maps, storage_error
from barnabas.storage.fs.open_files import OpenFiles
from tests.support.limits import stated
from tests.support.logs import append, new_log, offsets

MIB = 1 << 20


class FewMaps:
    """
    Lets the process have *most* maps of indexes at a time.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
        self.most = most
        self.refused = 0
        self._there: list[Any] = []
        make = disk._memory
        few = self

        class Counted(mmap.mmap):
            def __del__(self) -> None:
                few.there -= 1

        self.there = 0

        def memory(fd: int, size: int, access: int) -> mmap.mmap:
            if self.there >= self.most:
                self.refused += 1
                raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
            made = Counted(fd, size, access=access)
            self.there += 1
            return made

        assert make is not memory
        monkeypatch.setattr(disk, "_memory", memory)


@pytest.mark.parametrize("most", [3, 4, 5, 9])
def test_logs_take_records_with_few_maps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    maps = FewMaps(monkeypatch, most)
    files = DiskFiles(OpenFiles(1000))
    logs = [new_log(tmp_path / f"t-{index}", files=files) for index in range(8)]

    for _ in range(3):
        for log in logs:
            append(log, 5)
            log.roll()

    assert maps.refused
    assert [list(range(15))] * 8 == [offsets(log) for log in logs]


def test_a_file_whose_new_size_cannot_be_mapped_is_mapped_by_the_next_access(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The map of the old size would end the process when it is read.
    """
    files = DiskFiles(OpenFiles(1000))
    mapped = files.map(tmp_path / "0.index", 3 * mmap.PAGESIZE)
    make, calls = disk._memory, iter(range(100))

    def memory(fd: int, size: int, access: int) -> mmap.mmap:
        if next(calls) < 2:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        return make(fd, size, access)

    monkeypatch.setattr(disk, "_memory", memory)
    mapped.resize(mmap.PAGESIZE)

    with pytest.raises(TooManyOpenFiles):
        len(mapped.view)
    assert mmap.PAGESIZE == len(mapped.view)
    mapped.put(0, b"abc")
    assert b"abc" == bytes(mapped.view[:3])


def test_an_append_without_a_map_is_refused_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log(tmp_path / "t-0", files=DiskFiles(OpenFiles(1000)))
    append(log, 3)
    log.roll()
    with monkeypatch.context() as patch:
        FewMaps(patch, 0)
        with pytest.raises(TooManyOpenFiles, match="Cannot allocate memory"):
            append(log, 1)

    append(log, 2)
    assert list(range(5)) == offsets(log)


def test_indexes_leave_maps_to_the_rest_of_the_process() -> None:
    allowed = int(Path("/proc/sys/vm/max_map_count").read_text())

    assert int(allowed * stated("index-maps") / 100) == most_maps()


@pytest.mark.parametrize("action", ["write", "read", "sync", "truncate", "rename to x"])
def test_want_of_memory_in_the_middle_of_a_change_is_a_failure(action: str) -> None:
    error = storage_error(action, Path("x"), OSError(errno.ENOMEM, "no memory"))

    assert isinstance(error, KafkaStorageError)


def in_child(work: Callable[[], None]) -> int:
    """
    Run *work* in a fork; return its exit status.
    """
    child = os.fork()
    if not child:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_partitions_are_written_beyond_the_limit_of_the_address_space(tmp_path: Path) -> None:
    """
    Each maps 20 MiB, and there are 200 MiB left.
    """

    def write() -> None:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
        limit = used + 200 * MIB
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        files = DiskFiles(OpenFiles(1000))
        logs = []
        for index in range(40):
            logs.append(new_log(tmp_path / f"t-{index}", files=files))
            append(logs[-1], 3)
        for log in logs:
            append(log, 3)
            assert list(range(6)) == offsets(log)

    assert 0 == in_child(write)
