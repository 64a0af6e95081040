"""
A log on a disk that fails, or on a machine that crashes, at one known step.
"""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.log.offsets_by_time import EARLIEST_TIMESTAMP
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.logs import LogHome, append, end_transaction, produce, read_batches
from tests.support.segments import FIRST_TIMESTAMP

WRITING = frozenset({"write", "truncate"})


@pytest.mark.parametrize("written", [0, 1, 60, 100])
def test_failed_append_leaves_nothing_behind(written: int) -> None:
    files = FailingFiles()
    home = LogHome(files=files)
    log = home.open()
    produce(log, b"a")
    size = log.size
    files.fail(errno=errno.ENOSPC, only=frozenset({"write"}), written=written)

    with pytest.raises(KafkaStorageError):
        produce(log, b"b")

    assert home.failures.has_offline_log_dir(Path("/data"))
    assert size == len(home.file(0, ".log"))
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


def test_failed_append_that_cannot_be_truncated_is_found_by_recovery() -> None:
    files = FailingFiles()
    home = LogHome(files=files)
    log = home.open()
    produce(log, b"a")
    files.fail(errno=errno.EIO, only=WRITING, written=40, forever=True)

    with pytest.raises(KafkaStorageError):
        produce(log, b"b")
    files.fail(10**9)
    home.failures = type(home.failures)()
    log = home.open()

    assert 40 == log.recovery_report.truncated_bytes
    assert 1 == log.log_end_offset


def test_append_whose_index_entry_cannot_be_written_is_undone() -> None:
    files = FailingFiles()
    home = LogHome(files=files, index_interval_bytes=0)
    log = home.open()
    produce(log, b"a")
    size = log.size
    files.fail(1, errno=errno.ENOSPC, only=frozenset({"write"}))

    with pytest.raises(KafkaStorageError):
        produce(log, b"b")

    assert size == len(home.file(0, ".log")) == log.size


def test_failed_flush_does_not_move_the_recovery_point() -> None:
    files = FailingFiles()
    home = LogHome(files=files)
    log = home.open()
    produce(log, b"a")
    files.fail(only=frozenset({"sync"}))

    with pytest.raises(KafkaStorageError):
        log.flush()

    assert 0 == log.recovery_point


def test_failed_read_takes_the_directory_offline() -> None:
    files = FailingFiles()
    home = LogHome(files=files)
    log = home.open()
    for _ in range(5):
        produce(log, b"a")
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
    """
    The roll schedules the flush, which runs after the log was truncated below that segment.
    """
    home = LogHome()
    log = home.open()
    for value in (b"a", b"b", b"c"):
        produce(log, value)
    log.roll()

    log.truncate_to(1)
    log.remove_deleted_files()

    assert 1 == log.recovery_point == log.log_end_offset


def test_truncation_during_a_flush_keeps_the_recovery_point_below_later_appends() -> None:
    class TruncatingFiles(MemoryFiles):
        log: Log | None = None

        def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
            log, is_due = self.log, action == "sync" and path.suffix == ".log"
            if log is not None and is_due:
                self.log = None
                log.truncate_to(1)
                produce(log, b"d")
                produce(log, b"e")

    files = TruncatingFiles()
    log = LogHome(files=files).open()
    for value in (b"a", b"b", b"c"):
        produce(log, value)
    files.log = log

    log.flush()

    assert 0 == log.recovery_point


class LockedSyncs(MemoryFiles):
    """
    A file system that notes what is synced while the lock of a log is held.
    """

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
    log = LogHome(files=files, segment_bytes=300, file_delete_delay_ms=0).open()
    append(log)
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
