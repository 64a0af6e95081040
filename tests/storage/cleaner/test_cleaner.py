from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.errors import CorruptMessage
from barnabas.protocol.records.batch import HEADER_SIZE, build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.cleaner.batch_filter import RECORDS_PER_STEP
from barnabas.storage.cleaner.cleanable import LogToClean
from barnabas.storage.cleaner.states import LogCleaningAborted
from barnabas.storage.errors import KafkaError, KafkaStorageError
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.log.log import Log
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.disks.crashable import CrashableFiles, Crashed
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.cleaning import clean, new_cleaner, put
from tests.support.clock import StillClock
from tests.support.logs import (
    DIRECTORY,
    LogHome,
    bases,
    offsets,
    read_batches,
)
from tests.support.random_logs import RandomLog
from tests.support.segments import FIRST_TIMESTAMP

A, B, C = KEYS = [b"a", b"b", b"c"]
STEPS = 64
"""What a cleaning of ``four_segments`` does to the disk."""


def four_segments(files: MemoryFiles | None = None) -> tuple[LogHome, Log]:
    """
    Three segments of six records of three keys each, and an empty one.
    """
    home = LogHome(files=files, cleanup_policy=("compact",), segment_bytes=500)
    log = home.open()
    for _ in range(3):
        for value in (b"old", b"new"):
            put(log, *((key, value + bytes(50)) for key in KEYS))
        log.roll()
    assert [0, 6, 12, 18] == bases(log)
    return home, log


def compacted() -> tuple[LogHome, Log]:
    home = LogHome(cleanup_policy=("compact",))
    return home, home.open()


def after(questions: int, act: Callable[[], object]) -> Callable[[TopicPartition], None]:
    """
    A question whether to abort that is answered with *act* when it was asked so often.
    """
    left = count(questions, -1)

    def check(partition: TopicPartition) -> None:
        assert "t-0" == str(partition)
        if next(left) == 0:
            act()

    return check


def abort() -> None:
    raise LogCleaningAborted


def unfinished(home: LogHome) -> list[str]:
    return [name for name in home.names() if name.endswith((".cleaned", ".swap"))]


# What is left.


def test_cleaning_covers_every_segment_and_keeps_the_log_end_offset() -> None:
    home, log = four_segments()

    end, stats = clean(log, home.clock)

    assert (18, 18) == (end, log.log_end_offset)
    assert [15, 16, 17] == offsets(log)
    assert (18, 18, 3) == (stats.map_messages_read, stats.messages_read, stats.messages_written)
    assert 3 / 1000 == stats.buffer_utilization
    assert [] == unfinished(home)
    assert [0, 6, 12, 18] == bases(log)
    assert [0, 0] == [segment.size for segment in log.segments.values()[:2]]
    for suffix in (".log", ".index", ".timeindex"):
        assert b"" == home.file(0, suffix)


def test_small_segments_are_merged_and_the_other_producer_snapshots_deleted() -> None:
    home, log = four_segments()
    clean(log, home.clock)
    # What is empty is merged the next time.
    put(log, (b"x", b"1"))
    log.roll()

    clean(log, home.clock, first_dirty_offset=18)

    assert [0, 19] == bases(log)
    assert {"00000000000000000019.snapshot"} == {
        name for name in home.names() if name.endswith(".snapshot")
    }
    assert [15, 16, 17, 18] == offsets(log)
    home.clock.advance(60_000)
    log.remove_deleted_files()
    assert not [name for name in home.names() if name.endswith(".deleted")]


def test_cleaned_segment_has_the_modification_time_of_its_last_source() -> None:
    """
    Retention uses it where records have no timestamps.
    """
    home, log = four_segments()
    home.clock.advance(1000)
    put(log, (b"x", b"1"))
    log.roll()
    home.clock.advance(1000)
    clean(log, home.clock, first_dirty_offset=0)
    home.clock.advance(1000)
    put(log, (b"x", b"2"))
    log.roll()
    times = [segment.last_modified() - FIRST_TIMESTAMP for segment in log.segments.values()[:5]]
    assert [0, 0, 0, 1000, 3000] == times

    clean(log, home.clock, first_dirty_offset=19)

    assert [0, 20] == bases(log)
    assert 3000 == log.segments.values()[0].last_modified() - FIRST_TIMESTAMP


def test_records_above_the_uncleanable_offset_supersede_nothing() -> None:
    home, log = four_segments()

    end, _ = clean(log, home.clock, uncleanable_offset=6)

    assert 6 == end
    assert [3, 4, 5, *range(6, 18)] == offsets(log)


def test_keys_of_the_clean_part_are_not_indexed() -> None:
    home, log = four_segments()

    end, stats = clean(log, home.clock, first_dirty_offset=12)

    assert (18, 6) == (end, stats.map_messages_read)
    assert [15, 16, 17] == offsets(log)


def test_full_offset_map_ends_the_cleaning_at_its_last_key() -> None:
    """
    That may be in the middle of a batch; the next cleaning begins there.
    """
    home, log = compacted()
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", b"2"), (b"c", b"1"), (b"d", b"1"))
    put(log, (b"b", b"2"))
    log.roll()
    rounds = []
    first_dirty = 0
    while first_dirty < 6:
        first_dirty, _ = clean(
            log, home.clock, first_dirty_offset=first_dirty, slots=4, load_factor=0.75
        )
        rounds.append((first_dirty, offsets(log)))

    # a, b, c fit; d does not.
    assert [(4, [1, 2, 3, 4, 5]), (6, [2, 3, 4, 5])] == rounds


def test_offsets_without_any_batch_count_as_cleaned() -> None:
    home, log = four_segments()
    clean(log, home.clock)
    assert 0 == log.segments.values()[0].size

    end, stats = clean(log, home.clock, uncleanable_offset=6)

    assert (6, 0) == (end, stats.map_messages_read)


def test_last_batch_of_a_cleaning_retains_its_header_and_so_its_last_offset() -> None:
    """
    A restart may begin with this batch.
    """
    home, log = compacted()
    put(log, (b"a", b"1"), (b"b", None))
    put(log, (b"b", None))
    log.roll()
    clean(log, home.clock)
    home.clock.advance(86_400_000)
    clean(log, home.clock)

    assert [0] == offsets(log)
    assert [2] == [batch.last_offset for batch in read_batches(log) if batch.record_count == 0]
    end = log.log_end_offset
    home.stop(log)
    assert end == home.open().log_end_offset


@pytest.mark.scenario(74)
def test_producer_with_only_superseded_records_continues_after_a_restart() -> None:
    home, log = compacted()
    producer = {"producer_id": 4000, "producer_epoch": 3}
    put(log, (A, b"1"), (B, b"1"), **producer, base_sequence=0)
    put(log, (A, b"2"), (B, b"2"))
    log.roll()

    clean(log, home.clock)
    header = read_batches(log)[0]
    assert (HEADER_SIZE, 0) == (header.size, header.record_count)
    assert (0, 1) == (header.base_offset, header.last_offset)

    home.stop(log)
    for name in [name for name in home.names() if name.endswith(".snapshot")]:
        home.remove(int(name[:20]), ".snapshot")
    log = home.open(had_clean_shutdown=False, recovery_point=0)
    info = put(log, (A, b"3"), **producer, base_sequence=2)
    assert 4 == info.first_offset


# Its messages and metrics.


def test_throttler_counts_all_bytes_read_and_written() -> None:
    home, log = four_segments()
    size = log.size
    throttled: list[int] = []

    _, stats = clean(log, home.clock, throttle=throttled.append)

    assert size == stats.map_bytes_read == stats.bytes_read
    assert stats.bytes_written == log.size
    assert 2 * size + log.size == sum(throttled)


@pytest.mark.parametrize("records", [1, 90])
def test_cleaning_yields_to_other_threads_between_batches(records: int) -> None:
    home, log = compacted()
    for _ in range(200):
        put(log, *[(b"a", b"1")] * records)
    log.roll()
    pauses: list[int] = []

    clean(log, home.clock, pause=lambda: pauses.append(1), io_buffer_bytes=1_000_000)

    batches_per_pause = -(-RECORDS_PER_STEP // (records + 10))
    # Each pass, and once more after each read.
    assert 2 * (200 // batches_per_pause + 1) == len(pauses)


def test_cleaning_logs_a_summary_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    home, log = four_segments()

    with caplog.at_level(logging.INFO, "barnabas.storage.cleaner.cleaner"):
        clean(log, home.clock)

    (line,) = [record.message for record in caplog.records if record.name.endswith("cleaner")]
    assert line.startswith("t-0: cleaned up to offset 18 in 0.0 s: read 1.4 KiB of dirty batches")


def test_offset_map_too_small_for_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="too small to fit in even a single message"):
        new_cleaner(StillClock(), slots=1)
    new_cleaner(StillClock(), slots=2)


# When it is cut off.


@pytest.mark.parametrize("questions", range(12))
def test_aborted_cleaning_leaves_whole_segments(questions: int) -> None:
    home, log = four_segments()
    cleaner = new_cleaner(home.clock, check_done=after(questions, abort))
    to_clean = LogToClean(log=log, first_dirty_offset=0, uncleanable_offset=18)

    with pytest.raises(LogCleaningAborted):
        cleaner.clean(to_clean)

    assert [] == unfinished(home)
    assert 0 == cleaner.offset_map.size
    assert offsets(log) in ([*range(18)], [*range(6, 18)], [*range(12, 18)])
    assert ([*range(18)] == offsets(log)) == (questions < 8)
    clean(log, home.clock)
    assert [15, 16, 17] == offsets(log)


@pytest.mark.parametrize(("questions", "left"), [(0, 0), (8, 6)], ids=["first pass", "second pass"])
def test_malformed_batch_stops_the_cleaning_and_leaves_whole_segments(
    questions: int, left: int
) -> None:
    home, log = four_segments()
    data = home.file(6, ".log")
    before = bytes(data)

    with pytest.raises(CorruptMessage):
        clean(log, home.clock, check_done=after(questions, partial(data.__setitem__, 16, 9)))

    assert [] == unfinished(home)
    assert [0, 6, 12, 18] == bases(log)
    home.file(6, ".log")[:] = before
    assert [*range(left, 18)] == offsets(log)


def test_segment_with_offsets_too_far_apart_is_split_first() -> None:
    home, log = compacted()
    put(log, (b"a", b"1"))
    put(log, (b"b", b"1"))
    log.roll()
    far = build_batch([SimpleRecord(FIRST_TIMESTAMP, b"b", b"2")], base_offset=2**31)
    # A broker before 2.0 could write that.
    segment = log.segments.values()[0]
    segment.log.append(far)
    end = 2**31 + 1

    with pytest.raises(LogCleaningAborted, match="overflow"):
        clean(log, home.clock, uncleanable_offset=2)

    assert [0, 2, 2**31] == bases(log) or [0, 2**31, 2] == bases(log)
    assert [] == unfinished(home)
    assert end > log.log_end_offset


# When the disk fails.


def test_read_error_in_dirty_batches_fails_only_that_log() -> None:
    files = FailingFiles()
    home, log = four_segments(files)
    files.fail(only=frozenset({"read"}), errno=errno.EIO)

    with pytest.raises(KafkaError, match="while loading offset map") as error:
        clean(log, home.clock)

    assert not isinstance(error.value, KafkaStorageError)
    assert isinstance(error.value.__cause__, KafkaStorageError)
    assert [*range(18)] == offsets(log)


@pytest.mark.parametrize("action", ["write", "sync", "rename"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_disk_error_while_cleaning_is_a_storage_error(action: str, number: int) -> None:
    files = FailingFiles()
    home, log = four_segments(files)
    files.fail(only=frozenset({action}), errno=number)

    with pytest.raises(KafkaStorageError):
        clean(log, home.clock)

    log.close_handlers()
    home.failures = LogDirFailureChannel()
    log = home.open(had_clean_shutdown=False)
    assert [15, 16, 17] == offsets(log)[-3:]
    assert [] == unfinished(home)


# When the machine stops.


@settings(max_examples=50)
@given(data=st.data(), step=st.integers(0, STEPS))
def test_last_record_of_each_key_survives_a_crash_during_cleaning(
    data: st.DataObject, step: int
) -> None:
    files = CrashableFiles()
    home, log = four_segments(files)
    log.flush(force_flush_active_segment=True)
    files.crash_before(step)

    with suppress(Crashed):
        clean(log, home.clock)
    files.crash(lambda most: data.draw(st.integers(0, most)))
    log = home.open(had_clean_shutdown=False, recovery_point=18)

    assert 18 == log.log_end_offset
    assert offsets(log) in ([*range(18)], [*range(6, 18)], [*range(12, 18)], [15, 16, 17])
    clean(log, home.clock)
    assert [15, 16, 17] == offsets(log)


def test_cleaning_takes_a_fixed_number_of_disk_operations() -> None:
    files = CrashableFiles()
    home, log = four_segments(files)
    log.flush(force_flush_active_segment=True)
    before = files.steps

    clean(log, home.clock)

    assert STEPS == files.steps - before


# Whatever is in the log.


def committed(log: Log) -> dict[bytes, bytes | None]:
    """
    What a consumer of committed records ends up with.
    """
    aborted = log.collect_aborted_transactions(0, log.log_end_offset)
    latest: dict[bytes, bytes | None] = {}
    for batch in read_batches(log):
        is_aborted = any(
            txn.producer_id == batch.producer_id
            and txn.first_offset <= batch.base_offset <= txn.last_offset
            for txn in aborted
        )
        if batch.is_control or (batch.is_transactional and is_aborted):
            continue
        for record in batch.records():
            if record.key is not None:
                latest[record.key] = record.value
    return latest


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_consumer_sees_the_same_final_state_after_cleaning(seed: int) -> None:
    clock = StillClock(FIRST_TIMESTAMP + 1_000_000)
    random_log = RandomLog(seed, DIRECTORY, MemoryFiles(clock.now_ms), clock)
    random_log.configs["segment.index.bytes"] = "10000"
    random_log.write(25)
    log = random_log.open("compact")
    before = {key: value for key, value in committed(log).items() if value is not None}
    size, end = log.size, log.log_end_offset

    for _ in range(3):
        clean(log, clock, io_buffer_bytes=random_log.random.choice((100, 1000, 100_000)))

        after = committed(log)
        assert before == {key: value for key, value in after.items() if value is not None}
        assert end == log.log_end_offset
        clock.advance(86_400_000)

    assert log.size <= size + 3 * len(after)


def test_cleaning_again_is_idempotent() -> None:
    clock = StillClock(FIRST_TIMESTAMP + 1_000_000)
    files = MemoryFiles(clock.now_ms)
    random_log = RandomLog(5, DIRECTORY, files, clock)
    random_log.configs["delete.retention.ms"] = "86400000"
    random_log.write(60)
    log = random_log.open("compact")
    for _ in range(3):
        clean(log, clock)
    before = [bytes(batch.data) for batch in read_batches(log)]

    clean(log, clock)

    assert before == [bytes(batch.data) for batch in read_batches(log)]
