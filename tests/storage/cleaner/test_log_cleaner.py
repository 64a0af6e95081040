from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.protocol.structs import replace
from barnabas.storage.cleaner.cleanable import LogToClean
from barnabas.storage.cleaner.cleaner import Cleaner
from barnabas.storage.cleaner.manager import LogCleanerManager
from barnabas.storage.cleaner.settings import CleanerSettings
from barnabas.storage.cleaner.stats import CleanerStats
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from barnabas.storage.state_files.file_names import log_file
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import Node
from barnabas.testing.manual_clock import ManualClock
from tests.support.bombs import bomb, memory_below
from tests.support.cleaner_world import COMPACT, DATA, SETTINGS, CleanerWorld, add, config
from tests.support.cleaning import pairs, put
from tests.support.limits import stated
from tests.support.log_manager import T0, T1
from tests.support.logs import append_with_offsets, bases, end_transaction, offsets

OTHER = Path("/other")


def of_one_key(world: CleanerWorld, partition: TopicPartition = T0) -> Log:
    """
    A log with one key in two segments, and in the active one.
    """
    log = world.log(partition)
    add(log, *[b"k"] * 13)
    return log


def open_transaction(log: Log) -> None:
    guard = log.maybe_start_transaction_verification(7, 0, 0, supports_epoch_bump=False)
    batch = build_batch(
        [SimpleRecord(log._clock.now_ms(), b"t", b"1")],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    log.append_as_leader(memoryview(batch), 0, verification_guard=guard)
    log.update_high_watermark(log.log_end_offset)


# One round, in the thread of the test.


@pytest.mark.scenario(72)
def test_only_the_last_record_of_each_key_below_the_active_segment_stays() -> None:
    world = CleanerWorld()
    log = world.log(T0)
    for pair in ((b"a", b"1"), (b"b", b"1"), (b"a", b"2")):
        put(log, pair)
    log.roll()
    put(log, (b"c", b"1"))

    assert world.cleaner.round()

    assert [(1, b"b", b"1"), (2, b"a", b"2"), (3, b"c", b"1")] == pairs(log)
    assert ("0\n1\nt 0 3\n", 4) == (world.checkpoint(), log.log_end_offset)
    assert [0, 3] == bases(log)
    first = log.read(0, 1000, FetchIsolation.HIGH_WATERMARK, True)
    assert 1 == first.fetch_offset_metadata.message_offset
    assert not world.cleaner.round()


@pytest.mark.scenario(77)
def test_segments_from_the_start_of_an_open_transaction_on_are_not_cleaned() -> None:
    world = CleanerWorld()
    log = world.log(T0)
    add(log, *[b"k"] * 8)
    open_transaction(log)
    log.roll()
    add(log, *[b"k"] * 12)

    assert world.cleaner.round()

    assert [5, *range(6, 21)] == offsets(log)
    assert "0\n1\nt 0 6\n" == world.checkpoint()
    end_transaction(log, 7)
    log.update_high_watermark(log.log_end_offset)
    assert world.cleaner.round()
    assert [8, 14, *range(15, 22)] == offsets(log)


@pytest.mark.parametrize("policy", [("compact", "delete"), ("delete",)])
def test_cleaner_applies_retention_to_compacted_logs_and_the_manager_to_the_others(
    policy: tuple[str, ...],
) -> None:
    world = CleanerWorld(log_config=config(*policy, retention_ms=60_000))
    log = world.log(T0, 13)
    world.cleaner.round()
    world.still_clock.advance(60_001)
    checks = [world.logs.maintenance.check_retention, world.cleaner.round]
    other, responsible = checks if "compact" in policy else reversed(checks)

    other()
    assert 0 == log.log_start_offset
    responsible()
    assert 13 == log.log_start_offset
    assert world.manager.states.get(T0) is None


def test_deleted_records_of_a_compacted_log_are_removed_without_delete_policy() -> None:
    world = CleanerWorld(log_config=config("compact", "delete"))
    log = world.log(T0, 13)
    log.delete_records(7)
    log.update_config(COMPACT)

    world.cleaner.round()

    assert 6 == log.first_segment_base_offset


def test_delete_records_between_two_rounds_is_handled() -> None:
    world = CleanerWorld(log_config=config("compact", "delete"))
    log = world.log(T0, 13)
    world.cleaner.round()
    add(log, *[b"k"] * 30)

    assert 20 == log.delete_records(20)
    assert not world.cleaner.round()
    assert (18, 20) == (log.first_segment_base_offset, world.manager.plan(log).first_dirty.offset)

    assert world.cleaner.round()
    assert [41, 42] == [offset for offset in offsets(log) if offset >= 20]
    assert 20 == log.log_start_offset


# Failures.


@pytest.mark.parametrize("action", ["create", "write", "sync", "rename"])
def test_disk_write_error_takes_its_directory_offline(action: str) -> None:
    files = FailingFiles()
    world = CleanerWorld(DATA, OTHER, files=files)
    log = of_one_key(world)
    files.fail(only=frozenset({action}))

    assert world.cleaner.round()

    assert world.logs.failures.has_offline_log_dir(log.parent_dir)
    assert [T0] == world.logs.handle_failures()
    assert set() == world.manager.uncleanable_partitions(log.parent_dir)
    other = of_one_key(world, T1)
    assert other.parent_dir != log.parent_dir
    assert world.cleaner.round()
    assert [11, 12] == offsets(other)


def assert_left_alone(world: CleanerWorld, log: Log) -> None:
    """
    Assert that *log* is marked, has not changed, and that others are cleaned.
    """
    before = {name: world.files.read_bytes(log.dir / name) for name in world.files.names(log.dir)}
    assert not world.cleaner.round()
    assert {log.topic_partition} == world.manager.uncleanable_partitions(DATA)
    assert before == {name: world.files.read_bytes(log.dir / name) for name in before}
    assert not [name for name in world.files.names(log.dir) if "cleaned" in name]
    assert not world.logs.failures.any_offline
    other = of_one_key(world, T1)
    assert world.cleaner.round()
    assert [11, 12] == offsets(other)
    assert not world.cleaner.round()


def with_endless_record(file: Node) -> None:
    """
    The first record of the second batch says that it is endless.
    """
    file.data[150 + 61 : 150 + 71] = b"\xff" * 10


@pytest.mark.parametrize("damage", [with_endless_record, lambda file: file.cut(200)])
def test_damaged_log_is_skipped_and_the_others_are_cleaned(
    damage: Callable[[Node], None], caplog: pytest.LogCaptureFixture
) -> None:
    world = CleanerWorld()
    log = of_one_key(world)
    damage(world.files.nodes[log_file(log.dir, 0)])

    assert_left_alone(world, log)

    assert "t-0, which is left alone from now on" in caplog.text


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec])
def test_decompression_bomb_makes_only_its_log_uncleanable(
    codec: CompressionType, caplog: pytest.LogCaptureFixture
) -> None:
    """
    For codecs that cannot expand that far, a truncated stream.
    """
    world = CleanerWorld()
    log = world.log(T0)
    log.update_config(LogConfig(cleanup_policy=("compact",)))
    # A leader would refuse it.
    append_with_offsets(log, memoryview(bomb(codec)))
    log.update_config(COMPACT)
    add(log, *[b"k"] * 13)

    with memory_below(2 * int(stated("decompressed"))):
        assert_left_alone(world, log)

    (said,) = re.findall(
        r"t-0, which is left alone from now on: Cleaning has failed: (\w+)", caplog.text
    )
    assert said in {"CorruptCompressedData", "CorruptRecord", "DecompressedTooLarge"}


def test_batch_that_exhausts_memory_makes_only_its_log_uncleanable(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = CleanerWorld()
    log = of_one_key(world)
    clean = Cleaner.clean

    def clean_others(cleaner: Cleaner, to_clean: LogToClean) -> tuple[int, CleanerStats]:
        if to_clean.log is log:
            raise MemoryError
        return clean(cleaner, to_clean)

    monkeypatch.setattr(Cleaner, "clean", clean_others)
    assert_left_alone(world, log)

    assert "t-0, which is left alone from now on: Cleaning has failed: MemoryError()" in caplog.text


@pytest.mark.parametrize(("error", "uncleanable"), [(ValueError, 1), (KafkaStorageError, 0)])
def test_failed_retention_releases_all_logs(
    error: type[Exception], uncleanable: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = CleanerWorld()
    world.log(T0, 1)
    world.log(T1, 1)

    def fail(self: Log) -> int:
        raise error("broken")

    monkeypatch.setattr(Log, "delete_old_segments", fail)
    assert not world.cleaner.round()

    assert uncleanable == len(world.manager.uncleanable_partitions(DATA))
    assert (None, None) == (world.manager.states.get(T0), world.manager.states.get(T1))


def test_offset_map_memory_is_held_only_while_there_is_work() -> None:
    world = CleanerWorld()
    log = of_one_key(world)

    assert world.cleaner.round()
    thread = world.cleaner._by_hand
    assert thread is not None
    assert thread._cleaner is not None
    assert not world.cleaner.round()
    assert thread._cleaner is None
    add(log, *[b"k"] * 20)
    assert world.cleaner.round()


def test_switch_interval_is_shorter_while_a_log_is_cleaned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = CleanerWorld()
    of_one_key(world)
    usual = sys.getswitchinterval()
    during: list[float] = []
    clean = Cleaner.clean

    def clean_and_look(cleaner: Cleaner, to_clean: LogToClean) -> tuple[int, CleanerStats]:
        during.append(sys.getswitchinterval())
        return clean(cleaner, to_clean)

    monkeypatch.setattr(Cleaner, "clean", clean_and_look)
    world.cleaner.round()
    after = sys.getswitchinterval()

    assert [True] == [interval < usual for interval in during]
    assert usual == after


def test_cleaner_statistics_are_available() -> None:
    world = CleanerWorld()
    log = of_one_key(world)

    world.cleaner.round()

    assert world.cleaner._by_hand is not None
    stats = world.cleaner._by_hand.last_stats
    assert (12, 1) == (stats.messages_read, stats.messages_written)
    assert 1.0 == world.manager.dirtiest_ratio
    world.cleaner.round()
    assert 0.0 == world.manager.dirtiest_ratio
    assert 2 == len(pairs(log))


# In threads, on a clock that the test moves.


class Running(CleanerWorld):
    """
    The cleaner's thread runs; it may read and write *rate* bytes a second.
    """

    def __init__(self, rate: float) -> None:
        self.moving_clock = ManualClock(1_700_000_000_000)
        super().__init__(
            clock=self.moving_clock, settings=replace(SETTINGS, max_io_bytes_per_second=rate)
        )

    def start(self) -> None:
        self.cleaner.start()
        self.moving_clock.until_waiting(self.cleaner.threads[0].thread.thread)

    def start_in_the_middle(self) -> Log:
        """
        Start to clean a log; the throttle stops the thread in the middle.
        """
        log = of_one_key(self)
        self.moving_clock.advance(1.0)
        self.start()
        self.moving_clock.advance(0.0)
        assert self.manager.states.get(T0) is not None
        return log


def running(rate: float) -> Iterator[Running]:
    world = Running(rate)
    yield world
    world.cleaner.stop(10)


@pytest.fixture(name="running")
def without_throttle() -> Iterator[Running]:
    yield from running(1e300)


@pytest.fixture
def slow() -> Iterator[Running]:
    yield from running(1.0)


def test_dirty_log_is_cleaned_after_the_backoff(running: Running) -> None:
    running.start()
    running.moving_clock.advance(0.0)
    log = of_one_key(running)

    running.moving_clock.advance(14.9)
    assert 13 == len(pairs(log))
    running.moving_clock.advance(0.1)
    assert [11, 12] == offsets(log)


def test_all_due_logs_are_cleaned_without_backoff_between_them(running: Running) -> None:
    logs = [of_one_key(running, partition) for partition in (T0, T1)]
    running.start()

    running.moving_clock.advance(0.0)

    assert [[11, 12]] * 2 == [offsets(log) for log in logs]


def test_throttled_cleaning_is_slower_with_the_same_result(slow: Running) -> None:
    log = slow.start_in_the_middle()

    slow.moving_clock.advance(600.0)
    assert 13 == len(pairs(log))
    slow.moving_clock.advance(6000.0)

    assert [11, 12] == offsets(log)


def test_the_excess_over_the_largest_lag_is_known_while_a_log_is_cleaned(slow: Running) -> None:
    slow.log(T0, 19, config("compact", max_compaction_lag_ms=60_000))
    slow.moving_clock.advance(60.5)

    slow.start()
    slow.moving_clock.advance(0.0)

    assert 0.5 == slow.cleaner.max_compaction_delay_seconds


def test_largest_excess_of_all_cleaner_threads_counts(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = [SimpleNamespace(max_compaction_delay_ms=delay) for delay in (500, 2000, 0)]
    threads = tuple(SimpleNamespace(last_look=look) for look in looks)
    monkeypatch.setattr(running.cleaner, "threads", threads)

    assert 2 == running.cleaner.max_compaction_delay_seconds


def test_log_can_be_deleted_while_it_is_cleaned(slow: Running) -> None:
    slow.start_in_the_middle()

    slow.logs.delete_logs([T0])

    assert slow.logs.get_log(T0) is None
    assert "0\n0\n" == slow.checkpoint()
    assert slow.manager.states.get(T0) is None
    # The throttle continues with the next log.
    log = of_one_key(slow, T1)
    slow.moving_clock.advance(60.0)
    assert slow.manager.states.get(T1) is not None
    assert 13 == len(pairs(log))


def test_policy_change_aborts_the_cleaning_of_a_log(slow: Running) -> None:
    log = slow.start_in_the_middle()

    slow.logs.update_topic_configs({"t": config("delete")})

    assert slow.manager.states.get(T0) is None
    slow.moving_clock.advance(100_000.0)
    assert 13 == len(pairs(log))
    assert "0\n1\nt 0 0\n" == slow.checkpoint()


def test_cleaner_thread_can_be_stopped_in_the_middle_of_a_log(slow: Running) -> None:
    log = slow.start_in_the_middle()
    (thread,) = slow.cleaner.threads

    slow.cleaner.stop(10)

    assert 13 == len(pairs(log))
    assert not thread.thread.thread.is_alive()
    assert not [name for name in slow.files.names(log.dir) if "cleaned" in name]
    assert slow.manager.states.get(T0) is None
    assert (False, 0) == (thread.is_dead, slow.manager.plan(log).first_dirty.offset)
    assert not slow.logs.failures.any_offline


def test_shutdown_of_the_log_manager_stops_the_cleaner_first(slow: Running) -> None:
    slow.start_in_the_middle()
    (thread,) = slow.cleaner.threads

    assert slow.logs.shutdown()

    assert not thread.thread.thread.is_alive()
    again = CleanerWorld(files=slow.files)
    assert again.cleaner.round()
    assert [11, 12] == offsets(again.found(T0))


def test_dead_cleaner_thread_is_detected_and_restarted_by_the_next_reconfiguration(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a defect")

    with monkeypatch.context() as patch:
        patch.setattr(LogCleanerManager, "grab_filthiest_compacted_log", fail)
        running.start()
        running.moving_clock.advance(0.0)
        assert running.cleaner.threads[0].thread.join(60)

    assert 1 == running.cleaner.dead_thread_count
    assert "log-cleaner-0 has died" in caplog.text
    log = of_one_key(running)
    running.cleaner.reconfigure(replace(running.cleaner.settings, threads=2))
    assert 0 == running.cleaner.dead_thread_count
    for thread in running.cleaner.threads:
        running.moving_clock.until_waiting(thread.thread.thread)
    running.moving_clock.advance(0.0)
    assert [11, 12] == offsets(log)


def test_changed_throttle_rate_applies_at_once(slow: Running) -> None:
    log = slow.start_in_the_middle()

    slow.cleaner.reconfigure(replace(slow.cleaner.settings, max_io_bytes_per_second=1e9))
    slow.moving_clock.until_waiting(slow.cleaner.threads[0].thread.thread)
    slow.moving_clock.advance(0.0)

    assert [11, 12] == offsets(log)


def test_stopped_cleaner_does_not_start_again(running: Running) -> None:
    running.start()
    running.cleaner.stop(10)

    running.cleaner.start()
    running.cleaner.reconfigure(replace(SETTINGS, threads=2))

    assert () == running.cleaner.threads


def test_any_settings_are_accepted_before_the_threads_start() -> None:
    world = CleanerWorld()

    world.cleaner.reconfigure(replace(SETTINGS, threads=7))

    assert (7, ()) == (world.cleaner.settings.threads, world.cleaner.threads)
    with pytest.raises(ValueError, match="too small"):
        world.cleaner.reconfigure(replace(SETTINGS, load_factor=0))


def test_nothing_is_cleaned_without_a_cleaner_thread(caplog: pytest.LogCaptureFixture) -> None:
    world = CleanerWorld(settings=replace(SETTINGS, threads=0))
    cleaner = world.cleaner

    cleaner.start()

    assert ((), 0) == (cleaner.threads, cleaner.dead_thread_count)
    assert "log.cleaner.threads is 0" in caplog.text
    assert 0 == cleaner.recopy_ratio == cleaner.max_clean_seconds == cleaner.max_buffer_utilization


# What it may take of the machine.


def test_dedupe_buffer_is_shared_among_the_threads() -> None:
    settings = CleanerSettings(threads=4)

    assert (32 * 1024 * 1024, 64 * 1024) == (settings.map_bytes, settings.read_buffer_bytes)
    assert 2**31 - 1 == CleanerSettings(dedupe_buffer_bytes=2**40).map_bytes


@pytest.mark.parametrize(
    "settings",
    [
        CleanerSettings(dedupe_buffer_bytes=24),
        CleanerSettings(dedupe_buffer_bytes=48, load_factor=0.5),
        CleanerSettings(dedupe_buffer_bytes=96, threads=4),
        CleanerSettings(load_factor=0),
        CleanerSettings(load_factor=float("nan")),
    ],
)
def test_dedupe_buffer_without_room_for_a_key_is_refused(settings: CleanerSettings) -> None:
    with pytest.raises(ValueError, match="offset map is too small"):
        CleanerWorld(settings=settings)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (1, 0, "at least 1"),
        (4, 1, "reduced to less than half the current value 4"),
        (4, 9, "more than double the current value 4"),
    ],
)
def test_thread_count_changes_at_most_by_a_factor_of_two(
    before: int, after: int, sentence: str
) -> None:
    settings = CleanerSettings(threads=before)

    with pytest.raises(ValueError, match=sentence):
        settings.check_change(CleanerSettings(threads=after))
    settings.check_change(CleanerSettings(threads=before * 2))
    settings.check_change(CleanerSettings(threads=max(1, before // 2)))
