from __future__ import annotations

import logging
from pathlib import Path

import pytest

from barnabas.storage.cleaner.cleanable import CleaningPlan, CleaningVerdict
from barnabas.storage.cleaner.manager import LogCleanerManager, LogCleaningFailed, PreCleanStats
from barnabas.storage.cleaner.settings import CleanerSettings
from barnabas.storage.cleaner.states import Paused, Working
from barnabas.storage.directories.cleaner_checkpoint import CLEANER_CHECKPOINT
from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.log.log import Log
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.cleaner_world import CHECKPOINT, COMPACT, DATA, CleanerWorld, add, config
from tests.support.log_manager import T0, T1, TOPIC_ID, load, open_manager

OTHER = Path("/other")


def test_grabbed_log_is_released_with_its_new_first_dirty_offset() -> None:
    world = CleanerWorld()
    log = world.log(T0, 13)

    found = world.grab()

    assert found is not None
    assert (log, 0, 12) == (found.log, found.first_dirty_offset, found.uncleanable_offset)
    assert 1.0 == found.cleanable_ratio
    assert Working.IN_PROGRESS is world.manager.states.get(T0)
    assert world.grab() is None
    world.manager.done_cleaning(log, 12)
    assert world.manager.states.get(T0) is None
    assert "0\n1\nt 0 12\n" == world.checkpoint()
    assert CleaningVerdict.NOTHING_TO_CLEAN is world.manager.plan(log).verdict
    world.restart()
    assert 12 == world.manager.plan(world.found(T0)).first_dirty.offset


def test_cleaner_checkpoint_is_created_empty_at_the_start() -> None:
    world = CleanerWorld(DATA, OTHER)

    assert b"" == world.files.read_bytes(CHECKPOINT)
    assert b"" == world.files.read_bytes(OTHER / CLEANER_CHECKPOINT)


def test_only_compacted_logs_are_grabbed() -> None:
    world = CleanerWorld()
    world.log(T0, 13, config("delete"))

    assert world.grab() is None
    assert {} == world.manager.grab_deletable_logs()


@pytest.mark.parametrize(("cleaner", "dirtier"), [(T0, T1), (T1, T0)])
def test_dirtiest_log_is_grabbed_first(cleaner: TopicPartition, dirtier: TopicPartition) -> None:
    world = CleanerWorld()
    logs = {partition: world.log(partition, 13) for partition in (T0, T1)}
    world.manager.update_checkpoints(DATA, put=(cleaner, 6))
    logs[cleaner].update_config(config("compact", min_cleanable_dirty_ratio=0.1))
    stats = PreCleanStats()

    first = world.grab(stats)
    ratio = world.manager.dirtiest_ratio
    second = world.grab()

    assert (1.0, 2) == (ratio, stats.cleanable_partitions)
    assert first is not None
    assert second is not None
    assert (logs[dirtier], logs[cleaner]) == (first.log, second.log)
    assert (1.0, 0.5) == (first.cleanable_ratio, second.cleanable_ratio)


def test_log_beyond_max_compaction_lag_is_grabbed_however_clean() -> None:
    world = CleanerWorld()
    log = world.log(T0, 19, config("compact", max_compaction_lag_ms=60_000))
    world.manager.update_checkpoints(DATA, put=(T0, 12))
    assert world.grab() is None

    world.still_clock.advance(60_001)
    stats = PreCleanStats()
    found = world.grab(stats)

    assert found is not None
    assert log is found.log
    assert 1 == stats.max_compaction_delay_ms
    assert 1 == stats.delayed_partitions == stats.cleanable_partitions


@pytest.mark.parametrize(
    ("policy", "checkpoint", "start", "logged"),
    [(("compact", "delete"), 2, 8, False), (("compact",), 2, 8, True), (("compact",), 99, 0, True)],
    ids=["below the start with delete", "below the start without delete", "beyond the end"],
)
def test_cleaner_checkpoint_outside_the_log_is_reset(
    policy: tuple[str, ...],
    checkpoint: int,
    start: int,
    logged: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = CleanerWorld()
    log = world.log(T0, 13, config("compact", "delete"))
    world.manager.update_checkpoints(DATA, put=(T0, checkpoint))
    log.delete_records(start)
    log.update_config(config(*policy, min_cleanable_dirty_ratio=0.1))

    found = world.grab()

    assert found is not None
    assert start == found.first_dirty_offset
    assert f"0\n1\nt 0 {start}\n" == world.checkpoint()
    again = f"t-0: the cleaner begins again at the log start offset {start}"
    assert logged == (again in caplog.text)


def test_aborted_cleaning_writes_only_its_start_to_the_checkpoint() -> None:
    """
    After a crash, gaps are expected in a log that the checkpoint names.
    """
    world = CleanerWorld()
    log = world.log(T0, 13)
    world.grab()
    world.manager.states._states[T0] = Working.ABORTED

    world.manager.done_cleaning(log, 12)

    assert Paused(1) == world.manager.states.get(T0)
    assert "0\n1\nt 0 0\n" == world.checkpoint()


def test_paused_log_is_not_grabbed() -> None:
    world = CleanerWorld()
    world.log(T0, 13)

    with world.manager.paused(T0):
        assert world.grab() is None
        assert {} == world.manager.grab_deletable_logs()
    assert world.grab() is not None


def test_retention_looks_at_all_free_compacted_logs() -> None:
    world = CleanerWorld()
    both, only = world.log(T0, 1, config("compact", "delete")), world.log(T1, 1)
    world.log(TopicPartition("d", 0), 1, config("delete"))

    logs = world.manager.grab_deletable_logs()

    assert {T0: both, T1: only} == logs
    assert world.grab() is None
    for partition in logs:
        world.manager.done_deleting(partition)
    assert world.manager.states.get(T0) is None


def test_empty_log_is_skipped_unless_the_checkpoint_names_it() -> None:
    world = CleanerWorld()
    empty = [world.log(partition, 0) for partition in (T0, T1)]
    world.manager.update_checkpoints(DATA, put=(T1, 5))

    logs = world.manager.grab_deletable_logs()

    assert {T1: empty[1]} == logs


def test_logs_without_compaction_are_paused_while_retention_runs() -> None:
    world = CleanerWorld()
    log = world.log(T0, 13, config("delete"))
    world.log(T1, 13)

    with world.manager.paused_uncompacted() as logs:
        log.update_config(COMPACT)
        found = world.grab()

        assert {T0: log} == logs
        assert found is not None
        assert T1 == found.log.topic_partition
        assert world.grab() is None
    assert world.grab() is not None


def test_retention_skips_a_log_that_is_being_cleaned() -> None:
    world = CleanerWorld()
    log = world.log(T0, 13)
    world.grab()
    log.update_config(config("delete"))

    with world.manager.paused_uncompacted() as logs:
        assert {} == logs
    assert Working.IN_PROGRESS is world.manager.states.get(T0)


def test_uncleanable_log_is_skipped_until_it_is_deleted() -> None:
    world = CleanerWorld()
    log = world.log(T0, 13)

    world.manager.mark_uncleanable(log)

    assert world.grab() is None
    assert {} == world.manager.grab_deletable_logs()
    assert {T0} == world.manager.uncleanable_partitions(DATA)
    assert 1800 == world.manager.uncleanable_bytes(DATA)
    world.manager.maintain_uncleanable_partitions()
    assert {T0} == world.manager.uncleanable_partitions(DATA)
    world.logs.delete_logs([T0])
    assert 0 == world.manager.uncleanable_bytes(DATA)
    world.cleaner.round()
    assert set() == world.manager.uncleanable_partitions(DATA)


def test_uncleanable_log_that_cannot_be_read_adds_no_bytes_to_the_metrics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = CleanerWorld()
    for partition in (T0, T1):
        world.manager.mark_uncleanable(world.log(partition, 13))
    plan = LogCleanerManager.plan

    def fail(self: LogCleanerManager, log: Log) -> CleaningPlan[LogSegment]:
        if log.topic_partition == T0:
            raise KafkaStorageError("gone")
        return plan(self, log)

    monkeypatch.setattr(LogCleanerManager, "plan", fail)

    assert 1800 == world.manager.uncleanable_bytes(DATA)


def test_error_names_the_log_that_cannot_be_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    world = CleanerWorld()
    log = world.log(T0, 13)

    def fail(_self: object, _log: Log) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(LogCleanerManager, "plan", fail)
    with pytest.raises(LogCleaningFailed, match="for partition t-0") as caught:
        world.grab()

    assert log is caught.value.log
    assert world.manager.states.get(T0) is None


def test_deleted_log_is_removed_from_the_checkpoint() -> None:
    world = CleanerWorld()
    for partition in (T0, T1):
        log = world.log(partition, 13)
        world.manager.states.begin(partition)
        world.manager.done_cleaning(log, 12)
    assert "0\n2\nt 0 12\nt 1 12\n" == world.checkpoint()

    world.logs.delete_logs([T0])

    assert "0\n1\nt 1 12\n" == world.checkpoint()


def test_log_that_is_no_longer_compacted_leaves_the_checkpoint_at_the_next_write() -> None:
    world = CleanerWorld()
    world.log(T0, 13)
    world.manager.update_checkpoints(DATA, put=(T0, 12))

    world.logs.update_topic_configs({"t": config("delete")})

    assert "0\n1\nt 0 12\n" == world.checkpoint()


def test_failed_directory_is_neither_cleaned_nor_checkpointed() -> None:
    world = CleanerWorld(DATA, OTHER)
    logs = [world.log(partition, 13) for partition in (T0, T1)]
    (lost,) = (log for log in logs if log.parent_dir == DATA)
    (kept,) = (log for log in logs if log.parent_dir == OTHER)

    world.manager.update_checkpoints(DATA, put=(lost.topic_partition, 1))
    world.logs.failures.maybe_add_offline_log_dir(DATA, "gone", OSError())
    found = world.grab()

    assert found is not None
    assert kept is found.log
    assert world.grab() is None
    before = world.checkpoint()
    world.manager.update_checkpoints(DATA, put=(lost.topic_partition, 12))
    assert before == world.checkpoint()
    noted = [world.manager.plan(log).first_dirty.checkpoint for log in (lost, kept)]
    assert [1, 0] == noted


def test_unreadable_cleaner_checkpoint_takes_its_directory_offline() -> None:
    files = MemoryFiles()
    for path in (DATA, OTHER):
        files.make_directory(path)
    files.open(CHECKPOINT).append(b"0\n2\nt 0 1\n")

    world = CleanerWorld(DATA, OTHER, files=files)

    assert [OTHER] == list(world.logs.directories.live)


def test_unwritable_cleaner_checkpoint_takes_its_directory_offline() -> None:
    files = FailingFiles()
    world = CleanerWorld(files=files)
    log = world.log(T0, 13)
    world.grab()

    files.fail(only=frozenset({"write"}))
    world.manager.done_cleaning(log, 12)

    assert world.logs.failures.has_offline_log_dir(DATA)
    assert world.manager.states.get(T0) is None


def test_time_since_the_last_run_is_reported() -> None:
    world = CleanerWorld()
    world.grab()

    world.still_clock.advance(1500)

    assert 1500 == world.manager.ms_since_last_run


def test_disabled_cleaner_writes_no_checkpoint(caplog: pytest.LogCaptureFixture) -> None:
    files = MemoryFiles()
    with caplog.at_level(logging.WARNING):
        manager = load(open_manager(files, cleaner=CleanerSettings(enabled=False)))

    assert manager.cleaner is None
    assert not files.exists(CHECKPOINT)
    assert "log.cleaner.enable is false" in caplog.text
    log = manager.get_or_create_log(T0, topic_id=TOPIC_ID, config=COMPACT)
    add(log, *(b"%d" % number for number in range(13)))
    manager.update_topic_configs({"t": config("compact", "delete", retention_ms=1)})
    manager.maintenance.check_retention()
    assert 0 == log.log_start_offset
    manager.update_topic_configs({"t": config("delete", retention_ms=1)})
    manager.maintenance.check_retention()
    manager.delete_logs([T0])
