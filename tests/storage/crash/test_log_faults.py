from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log.offsets_by_time import EARLIEST_TIMESTAMP
from barnabas.testing.disks.crashable import EVERYTHING, CrashableFiles
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFile, MemoryFiles, storage_error
from tests.support.logs import LogHome, append, end_transaction, log_of, produce, read_batches
from tests.support.segments import FIRST_TIMESTAMP

WRITING = frozenset({"write", "truncate"})


@pytest.fixture
def failing() -> tuple[FailingFiles, LogHome, Log]:
    """
    A log with one record, and the disk that may fail.
    """
    files = FailingFiles()
    home = LogHome(files=files, index_interval_bytes=0)
    log = home.open()
    produce(log, b"a")
    return files, home, log


@pytest.mark.parametrize(
    ("writes", "written"),
    [(0, 0), (0, 1), (0, 60), (0, 100), (1, 0)],
    ids=["nothing", "a byte", "a header", "half", "no index entry"],
)
def test_failed_append_leaves_nothing_behind(
    failing: tuple[FailingFiles, LogHome, Log], writes: int, written: int
) -> None:
    files, home, log = failing
    size = log.size
    files.fail(writes, errno=errno.ENOSPC, only=frozenset({"write"}), written=written)

    with pytest.raises(KafkaStorageError):
        produce(log, b"b")

    assert home.failures.has_offline_log_dir(Path("/data"))
    assert size == len(home.file(0, ".log")) == log.size
    assert 1 == log.log_end_offset
    for use in (
        lambda: produce(log, b"c"),
        lambda: read_batches(log),
        log.flush,
        log.delete_old_segments,
        log.close,
    ):
        with pytest.raises(KafkaStorageError, match="is offline"):
            use()


def test_failed_append_that_cannot_be_truncated_is_found_by_recovery(
    failing: tuple[FailingFiles, LogHome, Log],
) -> None:
    files, home, log = failing
    files.fail(errno=errno.EIO, only=WRITING, written=40, forever=True)

    with pytest.raises(KafkaStorageError):
        produce(log, b"b")
    files.fail(10**9)
    home.failures = type(home.failures)()
    log = home.open()

    assert 40 == log.recovery_report.truncated_bytes
    assert 1 == log.log_end_offset


def test_failed_flush_does_not_move_the_recovery_point(
    failing: tuple[FailingFiles, LogHome, Log],
) -> None:
    files, _, log = failing
    files.fail(only=frozenset({"sync"}))

    with pytest.raises(KafkaStorageError):
        log.flush()

    assert 0 == log.recovery_point


class ForgettingFile(MemoryFile):
    """
    A file as Linux has it after a failed fsync: what could not be written can be read, and counts
    as written.
    """

    def sync(self) -> None:
        assert isinstance(self._files, ForgettingFiles)
        if self._files.fails:
            self._files.fails = False
            assert self._node.pending
            self._node.pending.clear()
            raise storage_error("sync", self.path, errno.EIO)
        super().sync()

    def rewrite_lost(self) -> int:
        size = self.size()
        disk = self._node.survivor(EVERYTHING).ljust(size, b"\0")
        cached = self.read(0, size)
        if disk == cached:
            return 0
        self.write_at(0, cached)
        self.sync()
        return size


class ForgettingFiles(CrashableFiles):
    fails = False

    def open(self, path: Path, *, create: bool = True, read_only: bool = False) -> MemoryFile:
        file = super().open(path, create=create, read_only=read_only)
        return ForgettingFile(self, path, file._node, read_only)


def test_recovery_after_a_failed_flush_writes_again_what_the_disk_lacks() -> None:
    files = ForgettingFiles()
    home = LogHome(files=files)
    log = home.open()
    produce(log, b"a")
    log.flush()
    produce(log, b"b")
    files.fails = True
    with pytest.raises(KafkaStorageError):
        log.flush()

    home.failures = type(home.failures)()
    log = home.open()
    produce(log, b"c")
    log.flush()
    files.crash()

    log = home.open()
    assert [b"a", b"b", b"c"] == [record.value for b in read_batches(log) for record in b.records()]


def test_failed_read_takes_the_directory_offline(
    failing: tuple[FailingFiles, LogHome, Log],
) -> None:
    files, home, log = failing
    files.fail(only=frozenset({"read"}))

    with pytest.raises(KafkaStorageError):
        log.fetch_offset_by_timestamp(FIRST_TIMESTAMP)

    assert home.failures.has_offline_log_dir(Path("/data"))


def test_closed_log_refuses_requests_without_a_disk_failure() -> None:
    home = LogHome()
    log = home.open()
    produce(log, b"a")
    info = log.read(0, 100, FetchIsolation.HIGH_WATERMARK, True)
    home.stop(log)

    with pytest.raises(KafkaStorageError, match="is closed"):
        produce(log, b"b")
    with pytest.raises(KafkaStorageError, match="is closed"):
        log.fetch_offset_by_timestamp(EARLIEST_TIMESTAMP)
    assert info.records is not None
    with pytest.raises(KafkaStorageError):
        info.records.read()
    assert not home.failures.has_offline_log_dir(Path("/data"))


def test_producer_snapshot_of_a_roll_survives_a_crash_once_it_was_flushed() -> None:
    files = CrashableFiles()
    home = LogHome(files=files)
    log = home.open()
    produce(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    log.roll()
    log.remove_deleted_files()

    files.crash()

    assert 56 == len(home.file(1, ".snapshot"))


@pytest.mark.parametrize("keep", [0, 1])
def test_flushed_aborted_transaction_survives_a_crash(keep: int) -> None:
    """
    The transaction index file is created after its segment, but before the next one.
    """
    files = CrashableFiles()
    home = LogHome(files=files)
    log = home.open()
    produce(log, b"a")
    log.flush()
    produce(log, b"b", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    end_transaction(log, 1, commit=False)
    log.flush()
    produce(log, b"c")
    log.roll()
    produce(log, b"d")
    log.flush()
    home.checkpoint(log)

    files.crash(lambda most: most * keep)

    log = home.open()
    assert log.recovery_point > 3
    (txn,) = log.collect_aborted_transactions(0, 100)
    assert (1, 1, 2) == (txn.producer_id, txn.first_offset, txn.last_offset)


def test_flush_scheduled_before_a_truncation_keeps_the_recovery_point_within_the_log() -> None:
    home = LogHome()
    log = home.open()
    for value in (b"a", b"b", b"c"):
        produce(log, value)
    log.roll()

    log.truncate_to(1)
    log.remove_deleted_files()

    assert 1 == log.recovery_point == log.log_end_offset


class LockedSyncs(MemoryFiles):
    def __init__(self) -> None:
        super().__init__()
        self.log: Log | None = None
        self.seen = 0
        self.under_lock: list[str] = []

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        log = self.log
        if log is None or not action.startswith("sync"):
            return
        self.seen += 1

        def append() -> None:
            if log._lock.acquire(blocking=False):
                log._lock.release()
            else:
                self.under_lock.append(f"{action} {path.name}")

        thread = threading.Thread(target=append)
        thread.start()
        thread.join()


def test_only_the_first_append_of_a_leader_epoch_syncs() -> None:
    """
    No other sync happens under the append lock. As in Kafka, the leader epoch file has every epoch
    that has a record; it is written one second after the epoch began, or with its first record.
    """
    files = LockedSyncs()
    _, log = log_of(files=files, segment_bytes=300, file_delete_delay_ms=0)
    log.begin_epoch(1, log.log_end_offset)
    files.log = log
    append(log, leader_epoch=1)
    assert ["sync leader-epoch-checkpoint.tmp", "sync directory t-0"] == files.under_lock

    files.under_lock.clear()
    append(log, 5, leader_epoch=1)
    log.remove_deleted_files()
    log.flush()
    old = log.segments.values()[0]
    new = log.create_new_cleaned_segment(0)
    new.append_from_file(old.log, 0)
    log.replace_segments([new], [old])
    log.delete_records(3)
    log.delete_old_segments()
    log.remove_deleted_files()
    log.truncate_to(4)
    log.remove_deleted_files()

    assert files.seen > 10
    assert [] == files.under_lock
