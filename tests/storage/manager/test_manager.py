from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import InconsistentTopicId
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.directories.directory import LogDirectory
from barnabas.storage.errors import InvalidLogDirectory, KafkaStorageError, LogDirectoryLocked
from barnabas.storage.log.log import Log
from barnabas.storage.log.offsets_by_time import EARLIEST_TIMESTAMP
from barnabas.storage.manager.loading import LOOK_EVERY
from barnabas.storage.manager.manager import LogManager
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from barnabas.testing.manual_clock import ManualClock
from tests.support.clock import StillClock
from tests.support.log_manager import SETTINGS, T0, T1, TOPIC_ID, fill, load, open_manager
from tests.support.logs import append

DATA = Path("/data")
OTHER = Path("/other")
PATIENCE = 20.0
SMALL = LogConfig(internal_segment_bytes=1000, retention_ms=-1, file_delete_delay_ms=60_000)


def crash(manager: LogManager) -> None:
    """
    Leave the files as they are; only the locks go, as with any process.
    """
    manager.directories.release()


def test_log_is_found_from_its_creation_to_its_deletion() -> None:
    manager = load(open_manager(MemoryFiles()))

    log = manager.get_or_create_log(T0, topic_id=TOPIC_ID)

    assert log is manager.get_log(T0)
    assert log is manager.get_or_create_log(T0, topic_id=TOPIC_ID)
    with pytest.raises(InconsistentTopicId):
        manager.get_or_create_log(T0, topic_id=UUID(int=1))
    manager.delete_logs([T0])
    assert manager.get_log(T0) is None


def test_new_log_goes_to_the_directory_with_the_fewest_logs() -> None:
    manager = load(open_manager(MemoryFiles(), [DATA, OTHER]))

    parents = [
        manager.get_or_create_log(TopicPartition("t", index), topic_id=TOPIC_ID).parent_dir
        for index in range(4)
    ]

    assert sorted([DATA, DATA, OTHER, OTHER]) == sorted(parents)


def test_start_after_a_clean_shutdown_recovers_nothing() -> None:
    files = MemoryFiles()
    manager = load(open_manager(files))
    fill(manager.get_or_create_log(T0, topic_id=TOPIC_ID), 10)

    assert manager.shutdown(broker_epoch=7)

    assert files.exists(DATA / ".kafka_cleanshutdown")
    assert not files.is_locked(DATA / ".lock")
    again = open_manager(files)
    assert 7 == again.directories.clean_shutdown_epoch()
    report = again.load({}, lambda topic_id, partition: False)
    assert (1, 0, []) == (report.loaded, report.recovered, report.unclean)
    log = again.get_log(T0)
    assert log is not None
    assert (10, 10, TOPIC_ID) == (log.log_end_offset, log.high_watermark, log.topic_id)


class AskedFiles(MemoryFiles):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        if path.name == str(T0) or path.parent.name == str(T0):
            self.asked.append((action, path.name))


def test_start_after_a_clean_shutdown_lists_each_log_directory_once() -> None:
    files = AskedFiles()
    manager = load(open_manager(files))
    fill(manager.get_or_create_log(T0, topic_id=TOPIC_ID), 10)
    manager.shutdown(broker_epoch=7)
    files.asked.clear()

    load(open_manager(files))

    # Whether it is a directory, and what is in it.
    asked = [name for action, name in files.asked if action in ("look", "list")]
    assert [str(T0), str(T0)] == asked
    read = {name for action, name in files.asked if action == "read"}
    assert {"leader-epoch-checkpoint", "partition.metadata"} <= read


def test_new_log_is_created_with_few_operations_and_without_sync() -> None:
    """
    A request may create a thousand logs; new files are neither read nor mapped.
    """
    files = AskedFiles()
    manager = load(open_manager(files))
    files.asked.clear()

    manager.get_or_create_log(T0, topic_id=TOPIC_ID)

    made = [name for action, name in files.asked if action == "create"]
    segment = {f"{0:020d}.{suffix}" for suffix in ("log", "index", "timeindex")}
    assert {"leader-epoch-checkpoint", *segment} == set(made)
    assert len(made) == sum(action == "open" for action, _ in files.asked)
    assert {"list", "make directory", "open", "create", "truncate"} == {
        action for action, _ in files.asked
    }


def test_producer_snapshot_is_synced_in_the_background_after_a_crash() -> None:
    """
    A start does not wait for thousands of syncs; a stop does before it writes the clean shutdown
    file.
    """
    files = AskedFiles()
    manager = load(open_manager(files))
    fill(manager.get_or_create_log(T0, topic_id=TOPIC_ID), 10)
    crash(manager)
    synced = ("sync", f"{10:020d}.snapshot")
    files.asked.clear()

    manager = load(open_manager(files))

    assert files.exists(DATA / str(T0) / synced[1])
    assert synced not in files.asked
    manager.remove_deleted()
    assert 1 == files.asked.count(synced)


class WaitedForFiles(MemoryFiles):
    """
    A disk that takes its time for each list of a directory, and notes who asks for one.
    """

    def __init__(self, blocks_each: int) -> None:
        super().__init__()
        self.blocks_each = blocks_each
        self.listed = 0
        self.threads: set[str] = set()
        self.two_are_at_work = threading.Event()

    def blocks_read(self) -> int:
        return self.listed * self.blocks_each

    def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
        if action != "list" or not path.name.startswith("t-"):
            return
        self.listed += 1
        self.threads.add(threading.current_thread().name)
        if len(self.threads) == 2:
            self.two_are_at_work.set()
        if self.blocks_each and self.listed > 2 * LOOK_EVERY:
            assert self.two_are_at_work.wait(60)


@pytest.mark.parametrize(("blocks_each", "threads"), [(0, 1), (8, 2)])
def test_second_thread_loads_logs_while_the_disk_is_waited_for(
    blocks_each: int, threads: int
) -> None:
    files = WaitedForFiles(0)
    manager = load(open_manager(files))
    for index in range(3 * LOOK_EVERY):
        manager.get_or_create_log(TopicPartition("t", index), topic_id=TOPIC_ID)
    manager.shutdown(broker_epoch=7)
    files.blocks_each = blocks_each
    files.listed = 0
    files.threads.clear()

    report = open_manager(files).load({}, lambda topic_id, partition: False)

    assert 3 * LOOK_EVERY == report.loaded
    assert threads == len(files.threads)


def test_high_watermark_checkpoint_is_written_only_after_a_change() -> None:
    files = MemoryFiles()
    manager = load(open_manager(files))
    log = manager.get_or_create_log(T0, topic_id=TOPIC_ID)
    path = DATA / "replication-offset-checkpoint"

    fill(log, 10)
    manager.maintenance.checkpoint_high_watermarks()
    assert b"0\n1\nt 0 10\n" == files.read_bytes(path)

    files.remove(path)
    manager.maintenance.checkpoint_high_watermarks()
    assert not files.exists(path), "nothing has changed"

    fill(log, 1)
    manager.maintenance.checkpoint_high_watermarks()
    assert b"0\n1\nt 0 11\n" == files.read_bytes(path)


def test_after_a_crash_a_log_that_the_cleaner_has_changed_keeps_what_follows_a_gap() -> None:
    """
    Although its topic is not compacted any more. Another log ends at a gap that a crash has left.
    """
    files = MemoryFiles()
    manager = load(open_manager(files, config=SMALL))
    for partition in (T0, T1):
        log = manager.get_or_create_log(partition)
        append(log, 13)
        del files.nodes[log.dir / f"{0:020d}.log"].data[450:]
    crash(manager)
    files.write_atomically(DATA / "cleaner-offset-checkpoint", b"0\n1\nt 1 6\n")
    files.write_atomically(DATA / "recovery-point-offset-checkpoint", b"0\n2\nt 0 0\nt 1 0\n")

    again = open_manager(files, config=SMALL)
    again.load({}, lambda topic_id, partition: False)

    ends = [log.log_end_offset for log in map(again.get_log, (T0, T1)) if log is not None]
    assert [3, 13] == ends


@pytest.mark.scenario(71)
def test_logs_are_recovered_after_a_crash() -> None:
    files = MemoryFiles()
    manager = load(open_manager(files))
    fill(manager.get_or_create_log(T0, topic_id=TOPIC_ID), 10)
    crash(manager)

    assert not files.exists(DATA / ".kafka_cleanshutdown")
    again = open_manager(files)
    assert again.directories.clean_shutdown_epoch() is None
    report = again.load({}, lambda topic_id, partition: False)
    assert (1, 1, [DATA]) == (report.loaded, report.recovered, report.unclean)
    log = again.get_log(T0)
    assert log is not None
    assert 10 == log.log_end_offset
    assert again.shutdown(broker_epoch=9)
    assert b'{"version":0,"brokerEpoch":9}' == files.read_bytes(DATA / ".kafka_cleanshutdown")


def test_failed_start_leaves_the_checkpoints_unchanged() -> None:
    """
    They cover logs that were not loaded: deleted records would reappear at the next start.
    """
    files = MemoryFiles()
    manager = load(open_manager(files))
    log = manager.get_or_create_log(T0, topic_id=TOPIC_ID)
    append(log, 10)
    log.delete_records(7)
    manager.shutdown()
    names = [name for name in files.names(DATA) if name.endswith("-checkpoint")]
    noted = {name: files.read_bytes(DATA / name) for name in names}
    files.make_directory(DATA / "lost+found")

    broken = open_manager(files)
    with pytest.raises(InvalidLogDirectory, match="'lost\\+found' is not in the form"):
        load(broken)
    assert not files.exists(DATA / ".kafka_cleanshutdown")
    broken.shutdown()

    assert len(noted) == 4
    assert noted == {name: files.read_bytes(DATA / name) for name in names}
    files.rename(DATA / "lost+found", Path("/elsewhere"))
    again = load(open_manager(files)).get_log(T0)
    assert again is not None
    assert (7, 10, 10) == (again.log_start_offset, again.high_watermark, again.log_end_offset)


@pytest.mark.scenario(70)
def test_second_broker_on_a_log_directory_is_refused() -> None:
    files = MemoryFiles()
    manager = open_manager(files)

    with pytest.raises(LogDirectoryLocked, match=r"Failed to acquire lock on file \.lock in /data"):
        open_manager(files, [OTHER, DATA])

    assert not files.is_locked(OTHER / ".lock"), "what was locked before the refusal is free again"
    manager.shutdown()
    open_manager(files)


def test_partition_in_two_log_directories_is_refused() -> None:
    files = MemoryFiles()
    for parent in (DATA, OTHER):
        manager = load(open_manager(files, [parent]))
        manager.get_or_create_log(T0, topic_id=TOPIC_ID)
        manager.shutdown()

    with pytest.raises(InvalidLogDirectory, match="Duplicate log directories for t-0"):
        load(open_manager(files, [DATA, OTHER]))


def test_log_unknown_to_the_metadata_is_marked_as_stray() -> None:
    files = MemoryFiles()
    manager = load(open_manager(files))
    fill(manager.get_or_create_log(T0, topic_id=TOPIC_ID), 3)
    manager.shutdown()

    again = open_manager(files)
    report = again.load({}, lambda topic_id, partition: topic_id == TOPIC_ID)

    (stray,) = report.strays
    assert stray.name.startswith("t-0.")
    assert stray.name.endswith("-stray")
    assert again.get_log(T0) is None
    assert 0 == again.get_or_create_log(T0, topic_id=UUID(int=5)).log_end_offset
    assert again.shutdown()
    third = load(open_manager(files))
    assert [T0] == list(third.logs())
    assert stray.name in files.names(DATA), "set aside once, it is left alone"


@pytest.mark.scenario(58)
def test_deleted_log_is_renamed_at_once_and_removed_after_the_delay() -> None:
    files, clock = MemoryFiles(), StillClock()
    manager = load(open_manager(files, clock=clock, config=SMALL))
    manager.get_or_create_log(T0, topic_id=TOPIC_ID)
    fill(manager.get_or_create_log(T1, topic_id=TOPIC_ID), 1)
    manager.maintenance.checkpoint_recovery_points()
    assert b"t 0" in files.read_bytes(DATA / "recovery-point-offset-checkpoint")

    manager.delete_logs([T0])

    (renamed,) = [name for name in files.names(DATA) if name.startswith("t-0")]
    assert renamed.endswith("-delete")
    assert 32 == len(renamed.removeprefix("t-0.").removesuffix("-delete"))
    assert b"t 0" not in files.read_bytes(DATA / "recovery-point-offset-checkpoint")
    clock.advance(59_999)
    manager.remove_deleted()
    assert renamed in files.names(DATA)
    clock.advance(1)
    manager.remove_deleted()
    assert renamed not in files.names(DATA)


def test_interrupted_deletion_continues_after_the_next_start() -> None:
    files, clock = MemoryFiles(), StillClock()
    manager = load(open_manager(files, clock=clock))
    manager.get_or_create_log(T0, topic_id=TOPIC_ID)
    manager.delete_logs([T0])
    manager.shutdown()

    again = load(open_manager(files, clock=clock))
    assert again.get_log(T0) is None
    clock.advance(60_000)
    again.remove_deleted()

    assert [] == [name for name in files.names(DATA) if name.startswith("t-0")]


def test_stopped_log_manager_changes_nothing_in_its_directories() -> None:
    files = MemoryFiles()
    manager = load(open_manager(files))
    manager.get_or_create_log(T0, topic_id=TOPIC_ID)
    manager.shutdown()
    fill(load(open_manager(files)).get_or_create_log(T0, topic_id=TOPIC_ID), 3)
    names, writes = files.names(DATA), dict(files.nodes)

    with pytest.raises(KafkaStorageError, match="the broker stops"):
        manager.get_or_create_log(T1, topic_id=TOPIC_ID)
    assert isinstance(manager.delete_logs([T0])[T0], KafkaStorageError)
    manager.maintenance.checkpoint_recovery_points()
    manager.maintenance.checkpoint_high_watermarks()

    assert names == files.names(DATA)
    assert writes == files.nodes


def test_checkpoint_round_does_not_restore_a_log_deleted_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    The log is deleted while the round writes the start offsets. A new log of the same name begins
    at 0, also after a crash.
    """
    files = MemoryFiles()
    manager = load(open_manager(files, config=SMALL))
    log = manager.get_or_create_log(T0, topic_id=TOPIC_ID)
    fill(log, 10)
    log.delete_records(5)
    deleting = threading.Thread(target=manager.delete_logs, args=([T0],))
    write = LogDirectory.checkpoint_log_start_offsets

    def write_late(directory: LogDirectory, logs: Any) -> None:
        if deleting.ident is None:
            deleting.start()
            # It is over by then, or waits until the round is.
            deleting.join(0.3)
        write(directory, logs)

    monkeypatch.setattr(LogDirectory, "checkpoint_log_start_offsets", write_late)

    manager.maintenance.checkpoint_log_start_offsets()
    deleting.join()
    fill(manager.get_or_create_log(T0, topic_id=UUID(int=1)), 10)
    crash(manager)

    again = load(open_manager(files, config=SMALL)).get_log(T0)
    assert again is not None
    assert (0, 10) == (again.log_start_offset, again.log_end_offset)


def test_checkpoint_of_an_offline_directory_is_not_written() -> None:
    """
    The disk may fail between the deletion of a log and the following checkpoint.
    """
    files = FailingFiles()
    manager = load(open_manager(files, [DATA, OTHER]))
    logs = [manager.get_or_create_log(partition) for partition in (T0, T1)]
    manager.failures.maybe_add_offline_log_dir(DATA, "broken", KafkaStorageError("broken"))
    manager.handle_failures()

    manager._catalog.checkpoint(DATA)

    assert {DATA, OTHER} == {log.parent_dir for log in logs}


def test_log_directories_are_closed_in_parallel(caplog: pytest.LogCaptureFixture) -> None:
    """
    Each may be on its own disk. Progress is logged if it takes long.
    """

    class SlowFiles(MemoryFiles):
        meeting: threading.Barrier | None = None

        def step(self, action: str, path: Path, position: int = 0, data: bytes = b"") -> None:
            if self.meeting is not None and action == "sync" and path.suffix == ".log":
                self.meeting.wait(PATIENCE)
                clock.advance(1001)

    files, clock = SlowFiles(), StillClock()
    manager = load(open_manager(files, [DATA, OTHER], clock=clock))
    for number in range(4):
        fill(manager.get_or_create_log(TopicPartition("t", number), topic_id=TOPIC_ID), 1)
    files.meeting = threading.Barrier(2 * SETTINGS.recovery_threads_per_directory)

    with caplog.at_level(logging.INFO, "barnabas.storage.manager.closing"):
        assert manager.shutdown()

    assert "of 2 logs are closed" in caplog.text


@pytest.mark.parametrize("failing", [DATA, DATA / "t-0"])
def test_log_that_cannot_be_renamed_does_not_block_other_deletions(failing: Path) -> None:
    files = FailingFiles()
    manager = load(open_manager(files, [DATA, OTHER]))
    partitions = [TopicPartition("t", number) for number in range(4)]
    logs = [manager.get_or_create_log(partition) for partition in partitions]
    assert {DATA, OTHER} == {log.parent_dir for log in logs}
    files.fail(only=frozenset({"rename"}), under=failing, forever=True)

    errors = manager.delete_logs(partitions)

    assert {log.topic_partition for log in logs if log.parent_dir == DATA} == errors.keys()
    assert not manager.logs()
    assert 2 == sum(name.endswith("-delete") for name in files.names(OTHER))
    manager.handle_failures()
    manager.shutdown()
    assert not [file for file in files.in_use if file.path.suffix == ".log"]


def test_deleted_log_that_cannot_be_removed_does_not_block_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    files, clock = MemoryFiles(), StillClock()
    manager = load(open_manager(files, clock=clock))
    for partition in (T0, T1):
        manager.get_or_create_log(partition, topic_id=TOPIC_ID)
    broken = manager.get_log(T0)
    manager.delete_logs([T0, T1])
    _break(monkeypatch, broken, "delete")
    clock.advance(60_000)

    manager.remove_deleted()

    assert [] == [name for name in files.names(DATA) if name.startswith("t-1")]
    assert "one bad segment" in caplog.text


def test_failing_log_does_not_end_a_maintenance_round_for_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = StillClock()
    config = LogConfig(internal_segment_bytes=150, retention_bytes=150)
    manager = load(open_manager(MemoryFiles(), clock=clock, config=config))
    broken = manager.get_or_create_log(T0, topic_id=TOPIC_ID)
    healthy = manager.get_or_create_log(T1, topic_id=TOPIC_ID)
    fill(healthy, 5)
    _break(monkeypatch, broken, "delete_old_segments")

    manager.maintenance.check_retention()

    assert 4 == healthy.log_start_offset
    assert "t-0" in caplog.text


def _break(monkeypatch: pytest.MonkeyPatch, broken: Log | None, method: str) -> None:
    """
    Let *method* fail for one log. It is replaced in the class: a compiled log has no other place.
    """
    original = getattr(Log, method)

    def fail(log: Log) -> object:
        if log is broken:
            raise RuntimeError("one bad segment")
        return original(log)

    monkeypatch.setattr(Log, method, fail)


def test_log_start_offset_is_checkpointed_only_within_a_segment() -> None:
    files = MemoryFiles()
    manager = load(open_manager(files, config=SMALL))
    log = manager.get_or_create_log(T0, topic_id=TOPIC_ID)
    manager.get_or_create_log(T1, topic_id=TOPIC_ID)
    fill(log, 10)

    manager.maintenance.checkpoint_log_start_offsets()
    assert b"0\n0\n" == files.read_bytes(DATA / "log-start-offset-checkpoint")
    log.delete_records(7)
    manager.maintenance.checkpoint_log_start_offsets()

    assert b"0\n1\nt 0 7\n" == files.read_bytes(DATA / "log-start-offset-checkpoint")
    crash(manager)
    recovered = load(open_manager(files, config=SMALL)).get_log(T0)
    assert recovered is not None
    assert 7 == recovered.log_start_offset


def test_failed_directory_takes_its_logs_offline_and_the_others_stay_online() -> None:
    manager = load(open_manager(MemoryFiles(), [DATA, OTHER]))
    lost = manager.get_or_create_log(T0, topic_id=TOPIC_ID)
    kept = manager.get_or_create_log(T1, topic_id=TOPIC_ID)
    assert (DATA, OTHER) == (lost.parent_dir, kept.parent_dir)

    manager.failures.maybe_add_offline_log_dir(DATA, "The disk is broken", OSError("broken"))

    with pytest.raises(KafkaStorageError, match="offline"):
        lost.fetch_offset_by_timestamp(EARLIEST_TIMESTAMP)
    assert [T0] == manager.handle_failures()
    assert [OTHER] == list(manager.directories.live)
    assert (DATA,) == manager.directories.offline
    assert manager.get_log(T0) is None
    with pytest.raises(KafkaStorageError):
        fill(lost, 1)
    fill(kept, 1)
    with pytest.raises(KafkaStorageError, match="are offline"):
        manager.get_or_create_log(T0, topic_id=TOPIC_ID, is_new=False)


def test_log_that_cannot_be_closed_does_not_block_the_failure_of_its_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    Clients of every lost partition have to be told, and the lock is released.
    """
    files = MemoryFiles()
    manager = load(open_manager(files, [DATA, OTHER]))
    partitions = [TopicPartition("t", number) for number in range(6)]
    logs = [manager.get_or_create_log(partition) for partition in partitions]
    lost = [log.topic_partition for log in logs if log.parent_dir == DATA]
    broken = next(log for log in logs if log.parent_dir == DATA)
    _break(monkeypatch, broken, "close_handlers")

    manager.failures.maybe_add_offline_log_dir(DATA, "The disk is broken", OSError("broken"))

    assert lost == manager.handle_failures()
    assert not files.is_locked(DATA / ".lock")


def test_failure_of_the_last_log_directory_is_reported() -> None:
    calls: list[bool] = []
    files = MemoryFiles()
    manager = open_manager(files)
    manager._on_all_failed = lambda: calls.append(True)
    load(manager)

    manager.failures.maybe_add_offline_log_dir(DATA, "The disk is broken", OSError("broken"))
    manager.handle_failures()

    assert [True] == calls


def test_unreadable_checkpoint_does_not_lose_deletions() -> None:
    files = MemoryFiles()
    manager = load(open_manager(files))
    manager.shutdown()
    files.write_atomically(DATA / "log-start-offset-checkpoint", b"0\n2\nt 0 7\n")

    again = open_manager(files)
    load(again)

    assert (DATA,) == again.directories.offline


def test_producers_expire_in_maintenance_rounds_of_their_own_log() -> None:
    """
    A producer with old records may retry its batch until the log's first round, one interval after
    the log was opened.
    """
    clock = ManualClock(1_700_000_000_000)
    manager = load(open_manager(MemoryFiles(), clock=clock))
    records = [SimpleRecord(1_600_000_000_000, None, b"old")]
    old = build_batch(records, producer_id=900_001, producer_epoch=0, base_sequence=0)
    first = manager.get_or_create_log(T0, topic_id=TOPIC_ID)
    manager.start()
    try:
        clock.advance(300)
        second = manager.get_or_create_log(T1, topic_id=TOPIC_ID)
        offsets = []
        for seconds in (0, 290, 20, 290, 20):
            clock.advance(seconds)
            sent = [log.append_as_leader(memoryview(old[:]), 0) for log in (first, second)]
            offsets.append(tuple(info.first_offset for info in sent))
    finally:
        assert manager.shutdown()

    assert [(0, 0), (0, 0), (1, 0), (1, 0), (1, 1)] == offsets
