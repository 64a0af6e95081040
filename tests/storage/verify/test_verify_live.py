from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.storage.state_files.partition_metadata import PARTITION_METADATA
from barnabas.storage.verify.context import DirectoryState
from barnabas.storage.verify.report import Violation
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.clock import StillClock
from tests.support.segments import padded_batch
from tests.support.sound_directory import ROOT, sound_directory
from tests.support.verifying import verified

LOG = ROOT / "plain-0"


class Meanwhile(StillClock):
    """
    A clock on which something happens between the first look and the second.
    """

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__()
        self._happens = happens
        self.waited = 0

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.waited += 1
        self._happens()
        return False


@pytest.fixture
def files() -> Iterator[MemoryFiles]:
    """
    The directory, as long as a broker has its lock.
    """
    files = sound_directory()
    files.remove(ROOT / ".kafka_cleanshutdown")
    lock = files.lock(ROOT / ".lock")
    assert lock is not None
    yield files
    lock.release()


def last_segment(files: MemoryFiles) -> Path:
    return max(path for path in files.nodes if path.parent == LOG and path.suffix == ".log")


def look(
    files: MemoryFiles, meanwhile: Callable[[], object] = lambda: None
) -> tuple[list[Violation], Meanwhile]:
    clock = Meanwhile(meanwhile)
    violations, verification = verified([ROOT], files=files, clock=clock)
    assert {ROOT: DirectoryState.IN_USE} == verification.states
    return violations, clock


@pytest.mark.parametrize("kept", [1, 16, 17, 60, 61, 149])
def test_batch_being_written_is_not_reported(files: MemoryFiles, kept: int) -> None:
    files.open(last_segment(files)).append(padded_batch(20)[:kept])

    violations, clock = look(files)

    assert ([], 0) == (violations, clock.waited)


def test_preallocated_space_is_not_reported(files: MemoryFiles) -> None:
    path = last_segment(files)
    for suffix, size in ((".log", 4000), (".index", 800), (".timeindex", 1200)):
        files.open(path.with_suffix(suffix)).append(bytes(size))

    assert [] == look(files)[0]


def test_index_entries_of_newer_batches_are_not_reported(files: MemoryFiles) -> None:
    path = last_segment(files)
    size = files.size(path)
    files.open(path.with_suffix(".index")).append((99).to_bytes(4, "big") + size.to_bytes(4, "big"))
    files.open(path.with_suffix(".timeindex")).append(
        (1 << 50).to_bytes(8, "big") + (99).to_bytes(4, "big")
    )

    assert [] == look(files)[0]


def test_files_waiting_for_deletion_are_not_reported(files: MemoryFiles) -> None:
    for name in (f"{0:020d}.log.deleted", f"{6:020d}.index.cleaned", f"{6:020d}.log.swap"):
        files.open(LOG / name).append(b"x")
    files.make_directory(ROOT / f"gone-0.{'0' * 32}-delete")
    files.open(ROOT / "recovery-point-offset-checkpoint.tmp").append(b"0")

    assert [] == look(files)[0]


def test_violation_that_disappears_on_the_second_look_is_not_reported(files: MemoryFiles) -> None:
    path = sorted(path for path in files.nodes if path.parent == LOG and path.suffix == ".log")[1]
    files.rename(path, path.with_suffix(".swap"))

    violations, clock = look(files, lambda: files.rename(path.with_suffix(".swap"), path))

    assert [] == violations
    assert 1 == clock.waited


def test_violation_that_persists_is_reported_once(files: MemoryFiles) -> None:
    path = LOG / f"{0:020d}.log"
    files.nodes[path].data[100] ^= 1

    violations, clock = look(files)

    assert [("batch-crc", path, 0)] == [
        (each.rule, each.path, each.position) for each in violations
    ]
    assert 1 == clock.waited


def test_violation_that_changes_on_the_second_look_is_not_reported(files: MemoryFiles) -> None:
    data = files.nodes[LOG / f"{0:020d}.log"].data
    data[100] ^= 1

    def moved() -> None:
        data[100] ^= 1
        data[250] ^= 1

    assert [] == look(files, moved)[0]


def test_log_deleted_meanwhile_is_not_reported(files: MemoryFiles) -> None:
    files.nodes[LOG / f"{0:020d}.log"].data[100] ^= 1

    assert [] == look(files, lambda: files.remove_tree(LOG))[0]


def test_segments_deleted_by_retention_meanwhile_are_not_reported(files: MemoryFiles) -> None:
    first = LOG / f"{0:020d}.log"
    size = files.size

    def removed(path: Path) -> int:
        if path == first:
            for suffix in (".log", ".index", ".timeindex"):
                files.remove(first.with_suffix(suffix))
        return size(path)

    files.size = removed  # type: ignore[method-assign]  # something happens at that moment

    assert [] == look(files)[0]


def test_new_log_without_a_topic_id_is_not_reported(files: MemoryFiles) -> None:
    files.make_directory(ROOT / "new-0")
    files.open(ROOT / "new-0" / f"{0:020d}.log")

    assert [] == look(files)[0]


def test_a_log_with_records_has_a_topic_id(files: MemoryFiles) -> None:
    files.remove(LOG / PARTITION_METADATA)

    assert [PARTITION_METADATA] == [Path(found.path).name for found in look(files)[0]]


def test_logs_are_counted_once_though_there_is_a_second_look(files: MemoryFiles) -> None:
    files.remove(LOG / PARTITION_METADATA)

    verification = verified([ROOT], files=files, clock=Meanwhile(lambda: None))[1]

    assert 6 == verification._report.logs
