from __future__ import annotations

from typing import Any

import pytest

from barnabas.storage.errors import CorruptRecord
from tests.support.logs import (
    DIRECTORY,
    LogHome,
    append,
    bases,
    log_of,
    offsets,
    produce,
    read_batches,
)
from tests.support.segments import FIRST_TIMESTAMP


def ten_batches(**config: Any) -> LogHome:
    """
    Segments 0 and 6 of six and four batches; the broker has crashed.
    """
    home, _ = log_of(10, segment_bytes=1000, **config)
    return home


def flip(home: LogHome, segment: int, position: int) -> None:
    home.file(segment, ".log")[position] ^= 0xFF


@pytest.mark.scenario(59)
def test_recovery_truncates_a_corrupt_last_batch() -> None:
    home = ten_batches()
    flip(home, 6, 3 * 150 + 100)

    log = home.open()

    assert 450 == log.active_segment.size
    assert (9, 0) == (log.log_end_offset, log.recovery_point)
    assert home.has_file(6, ".snapshot")
    assert home.has_file(9, ".snapshot")
    report = log.recovery_report
    assert (2, 150) == (report.recovered_segments, report.truncated_bytes)
    assert 1350 == report.recovered_bytes


@pytest.mark.scenario(60)
def test_corruption_below_the_recovery_point_is_not_checked() -> None:
    home = ten_batches()
    flip(home, 0, 2 * 150 + 100)

    log = home.open(recovery_point=6)

    assert 10 == log.log_end_offset
    assert not read_batches(log)[2].is_valid()


@pytest.mark.scenario(60)
def test_recovery_deletes_segments_behind_a_corrupt_one() -> None:
    home = ten_batches()
    flip(home, 0, 2 * 150 + 100)

    log = home.open()

    assert [0] == bases(log)
    assert 300 == log.size
    assert 2 == log.log_end_offset
    assert home.has_file(6, ".log.set-aside")
    assert home.has_file(2, ".snapshot")
    assert not home.has_file(6, ".snapshot")
    assert 1 == log.recovery_report.set_aside_segments
    append(log, 7)
    assert [0, 6] == bases(log)


@pytest.mark.scenario(61)
def test_corruption_is_not_checked_after_a_clean_shutdown() -> None:
    home, log = log_of(3)
    home.stop(log)
    flip(home, 0, 2 * 150 + 100)

    log = home.open()

    assert 3 == log.log_end_offset == log.recovery_point
    assert [True, True, False] == [batch.is_valid() for batch in read_batches(log)]


@pytest.mark.scenario(63)
def test_missing_offset_index_is_rebuilt() -> None:
    home, log = log_of(10, segment_bytes=1000, index_interval_bytes=150)
    home.stop(log)
    before = bytes(home.file(0, ".index")), bytes(home.file(0, ".timeindex"))
    home.remove(0, ".index")

    home.stop(home.open())

    assert before == (bytes(home.file(0, ".index")), bytes(home.file(0, ".timeindex")))


@pytest.mark.scenario(64)
def test_missing_time_index_is_created_empty() -> None:
    home, log = log_of(10, segment_bytes=1000)
    home.clock.advance(5000)
    home.stop(log)
    home.remove(0, ".timeindex")

    log = home.open()

    assert b"" == home.file(0, ".timeindex")
    first = log.segments.values()[0]
    assert None is first.largest_record_timestamp()
    assert FIRST_TIMESTAMP == first.largest_timestamp()
    found = log.fetch_offset_by_timestamp(FIRST_TIMESTAMP - 3)
    assert (FIRST_TIMESTAMP, 0) == (found and found[:2])


@pytest.mark.scenario(65)
def test_index_without_a_log_file_is_removed() -> None:
    home = ten_batches()
    home.files.open(DIRECTORY / f"{99:020d}.index").close()
    home.files.open(DIRECTORY / f"{99:020d}.txnindex").close()
    home.files.open(DIRECTORY / "notes.txt").close()

    home.open()

    assert not home.has_file(99, ".index")
    assert not home.has_file(99, ".txnindex")
    assert "notes.txt" in home.names()


@pytest.mark.scenario(68)
def test_recovery_truncates_preallocated_zeros_after_a_crash() -> None:
    home, _ = log_of(3, segment_bytes=1000, preallocate=True)
    assert 1000 == len(home.file(0, ".log"))

    log = home.open()

    assert (450, 3) == (len(home.file(0, ".log")), log.log_end_offset)


def test_zeros_at_the_end_after_a_clean_shutdown_are_an_error() -> None:
    home, log = log_of(3)
    home.stop(log)
    home.file(0, ".log").extend(bytes(300))

    with pytest.raises(CorruptRecord, match="Found record size 0"):
        home.open()


@pytest.mark.scenario(69)
@pytest.mark.parametrize("clean", [True, False])
def test_log_that_ends_below_its_start_offset_is_restarted_there(clean: bool) -> None:
    home, log = log_of(50, segment_bytes=1000)
    home.stop(log)

    log = home.open(log_start_offset=100, had_clean_shutdown=clean)

    assert [100] == bases(log)
    assert 100 == log.log_end_offset == log.log_start_offset == log.high_watermark
    assert (True, []) == (log.leader_epochs.is_empty, offsets(log))


def test_clean_start_without_snapshots_has_no_producers() -> None:
    """
    A clean shutdown writes a snapshot, so without one there were no producers.
    """
    home = LogHome(segment_bytes=1000)
    log = home.open()
    produce(log, b"v", producer_id=1, producer_epoch=0, base_sequence=0)
    append(log, 14)
    home.stop(log)
    for name in [name for name in home.names() if name.endswith(".snapshot")]:
        del home.files.nodes[DIRECTORY / name]

    log = home.open()

    assert [] == log.active_producers()
    snapshots = [name for name in home.names() if name.endswith(".snapshot")]
    assert [f"{base:020d}.snapshot" for base in (*bases(log)[-2:], 15)] == snapshots


def test_missing_snapshots_are_rewritten_where_recovery_would_begin() -> None:
    home, log = log_of(27, segment_bytes=1000)
    home.stop(log)
    for offset in (12, 18, 24, 27):
        home.remove(offset, ".snapshot")

    home.open()

    snapshots = [int(name[:20]) for name in home.names() if name.endswith(".snapshot")]
    assert [6, 18, 24, 27] == snapshots


def test_decreasing_offsets_truncate_the_whole_segment_on_recovery() -> None:
    """
    The checksum does not cover the offset. This is what Kafka does.
    """
    home = ten_batches(index_interval_bytes=0)
    home.file(6, ".log")[300:308] = (6).to_bytes(8)

    log = home.open()

    assert ([0, 6], 6) == (bases(log), log.log_end_offset)
    assert 600 == log.recovery_report.truncated_bytes
    append(log)
    assert [*range(6), 6] == offsets(log)


def test_leader_epoch_without_records_is_removed_on_load() -> None:
    home = ten_batches()
    home.open().assign_epoch_start_offset(5, 10)

    log = home.open()

    assert [(0, 0)] == list(log.leader_epochs.entries)
    log.remove_deleted_files()
    assert b"0\n1\n0 0\n" == home.files.read_bytes(DIRECTORY / "leader-epoch-checkpoint")


def test_recovery_does_not_advance_the_recovery_point() -> None:
    home, log = log_of(8, segment_bytes=1000)
    log.flush()
    home.checkpoint(log)
    append(log, 8)

    log = home.open()

    assert (8, 16) == (log.recovery_point, log.log_end_offset)
    assert 2 == log.recovery_report.recovered_segments


def test_segment_with_offsets_too_far_apart_is_split() -> None:
    home = ten_batches()
    log = home.open()
    home.stop(log)
    home.config = home.config.replaced(cleanup_policy=("compact",))
    far = 2**31 + 6
    data = home.file(6, ".log")
    data[450:458] = far.to_bytes(8)

    log = home.open(had_clean_shutdown=False)

    assert [0, 6, far] == bases(log)
    assert [*range(9), far] == offsets(log)
    assert 1 == log.recovery_report.split_segments


@pytest.mark.parametrize(
    ("policy", "was_compacted", "expected"),
    [("delete", False, [0]), ("compact", False, [0, 6, 12]), ("delete", True, [0, 6, 12])],
)
def test_recovery_ends_the_log_at_a_gap_unless_it_was_compacted(
    policy: str, was_compacted: bool, expected: list[int]
) -> None:
    """
    A machine crash may keep a later segment and lose the end of an earlier one.
    """
    home, _ = log_of(13, segment_bytes=1000)
    del home.file(0, ".log")[450:]
    home.config = home.config.replaced(cleanup_policy=(policy,))

    log = home.open(was_compacted=was_compacted)

    assert expected == bases(log)
    assert [0, 1, 2, *(range(6, 13) if len(expected) > 1 else [])] == offsets(log)


def test_torn_segment_does_not_block_one_without_an_index() -> None:
    home, _ = log_of(13, segment_bytes=1000)
    home.file(6, ".log")[150:] = bytes(300)
    home.remove(12, ".index")

    log = home.open()

    assert [0, 6] == bases(log)
    assert list(range(7)) == offsets(log)


def test_lost_leader_epochs_are_restored_from_the_batches() -> None:
    home, log = log_of(5, segment_bytes=1000)
    append(log, 5, leader_epoch=3)
    del home.files.nodes[DIRECTORY / "leader-epoch-checkpoint"]

    log = home.open()

    assert [(0, 0), (3, 5)] == list(log.leader_epochs.entries)
