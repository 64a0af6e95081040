"""
A copy is of one moment, also if logs are compacted or a broker is restarted meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.storage.backup import log_copy
from barnabas.storage.backup.backups import LISTINGS, back_up
from barnabas.storage.backup.log_copy import BackupFailed, Copied
from barnabas.storage.fs.disk_lock import DiskLock
from barnabas.storage.state_files.file_names import log_file
from barnabas.testing.manual_clock import ManualClock

OFFSETS, DATA, METADATA = "__consumer_offsets-0", "orders-0", "__cluster_metadata-0"
Action = Callable[[], object]
During = Callable[[str, Action], None]


class Waiting(ManualClock):
    """
    A clock whose waits end at once.
    """

    def wait(self, event: object, seconds: float) -> bool:
        return False


class Directory:
    """
    A log directory whose logs have two segments each.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        (path / "meta.properties").write_text("version=1")
        for name in (OFFSETS, DATA, METADATA):
            (path / name).mkdir()
            for base in (0, 10):
                log_file(path / name, base).write_text("at first")
        (path / METADATA / "quorum-state").write_text("1")

    def append(self, log: str) -> None:
        with log_file(self.path / log, 10).open("a") as file:
            file.write(", later")

    def compact(self, log: str) -> None:
        """
        Put another file in place of the last segment, which has rolled.
        """
        last = max((self.path / log).glob("*.log"))
        other = last.with_suffix(".new")
        other.write_text(last.read_text())
        other.replace(last)
        log_file(self.path / log, int(last.stem) + 10).touch()

    def back_up(self) -> Path:
        """
        The copy of the directory.
        """
        return back_up([self.path], self.path.parent / "to", Waiting()).path / self.path.name


@pytest.fixture
def data(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "data")


@pytest.fixture
def during(monkeypatch: pytest.MonkeyPatch) -> During:
    """
    Does something once, before a segment of a log is copied.
    """
    actions: dict[str, Action] = {}
    copy = log_copy.copy_file

    def copy_file(source: Path, target: Path, previous: Path | None, size: int | None) -> Copied:
        actions.pop(source.parent.name, lambda: None)()
        return copy(source, target, previous, size)

    monkeypatch.setattr(log_copy, "copy_file", copy_file)
    return lambda log, action: actions.update({log: action})


def test_committed_offsets_are_never_later_than_the_records(
    data: Directory, during: During
) -> None:
    def consume() -> None:
        for log in (DATA, OFFSETS):
            data.append(log)
        data.compact(OFFSETS)

    during(OFFSETS, consume)
    copy = data.back_up()

    assert "at first, later" == log_file(copy / OFFSETS, 10).read_text()
    assert "at first, later" == log_file(copy / DATA, 10).read_text()


def test_backup_fails_if_committed_offsets_are_compacted_each_time(
    data: Directory, during: During
) -> None:
    times = 0

    def compact() -> None:
        nonlocal times
        times += 1
        data.compact(OFFSETS)
        during(OFFSETS, compact)

    during(OFFSETS, compact)
    with pytest.raises(BackupFailed, match=f"compacted {LISTINGS} times"):
        data.back_up()
    assert LISTINGS <= times
    assert [".lock"] == [path.name for path in (data.path.parent / "to").iterdir()]


def test_metadata_are_never_older_than_the_records(data: Directory, during: During) -> None:
    def produce() -> None:
        for log in (METADATA, DATA):
            data.append(log)
        data.compact(DATA)

    during(DATA, produce)
    copy = data.back_up()

    assert "at first, later" == log_file(copy / DATA, 10).read_text()
    assert "at first, later" == log_file(copy / METADATA, 10).read_text()


def test_records_of_uncompacted_logs_end_at_the_listing(data: Directory, during: During) -> None:
    def append() -> None:
        for log in (OFFSETS, DATA, METADATA):
            data.append(log)

    during(OFFSETS, append)
    copy = data.back_up()

    assert {"at first"} == {
        log_file(copy / log, 10).read_text() for log in (OFFSETS, DATA, METADATA)
    }


def test_run_of_a_broker_between_two_looks_is_noticed(data: Directory, during: During) -> None:
    def run() -> None:
        lock = DiskLock.acquire(data.path / ".lock")
        assert lock is not None
        lock.release()

    during(DATA, run)
    with pytest.raises(BackupFailed, match="was started or stopped meanwhile"):
        data.back_up()


def test_restart_of_a_broker_between_two_looks_is_noticed(data: Directory, during: During) -> None:
    locks = [DiskLock.acquire(data.path / ".lock")]

    def restart() -> None:
        assert locks[0] is not None
        locks[0].release()
        locks.append(DiskLock.acquire(data.path / ".lock"))

    during(DATA, restart)
    try:
        with pytest.raises(BackupFailed, match="was started or stopped meanwhile"):
            data.back_up()
    finally:
        assert locks[-1] is not None
        locks[-1].release()


@pytest.mark.parametrize("name", [f"{METADATA}/quorum-state", ".kafka_cleanshutdown"])
def test_run_of_an_apache_kafka_between_two_looks_is_noticed(
    data: Directory, during: During, name: str
) -> None:
    """
    It does not change its lock file.
    """

    def run() -> None:
        other = data.path / "other"
        other.write_text("2")
        other.replace(data.path / name)

    during(DATA, run)
    with pytest.raises(BackupFailed, match="was started or stopped meanwhile"):
        data.back_up()
