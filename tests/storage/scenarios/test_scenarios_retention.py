from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import OffsetOutOfRange, PolicyViolation
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.log import Log
from tests.support.logs import DIRECTORY, LogHome, append, bases, log_of, offsets, produce
from tests.support.segments import FIRST_TIMESTAMP

HOUR = 3_600_000


def five_segments(**config: Any) -> tuple[LogHome, Log]:
    """
    Five segments of 1000 bytes, the last of them active.
    """
    home, log = log_of(5, size=1000, segment_bytes=1000, **config)
    assert [0, 1, 2, 3, 4] == bases(log)
    return home, log


@pytest.mark.scenario(49)
def test_retention_bytes_deletes_segments_while_the_log_stays_large_enough() -> None:
    _, log = five_segments(retention_bytes=2500, retention_ms=-1)

    assert 2 == log.delete_old_segments()

    assert [2, 3, 4] == bases(log)
    assert (2, 5, 5) == (log.log_start_offset, log.log_end_offset, log.high_watermark)


@pytest.mark.scenario(50)
def test_deleting_every_segment_leaves_an_empty_one_and_a_snapshot() -> None:
    home, log = five_segments(retention_bytes=0, retention_ms=-1)

    assert 5 == log.delete_old_segments()

    assert ([5], 5, 0) == (bases(log), log.log_start_offset, log.size)
    assert home.has_file(5, ".snapshot")
    append(log)
    assert [5] == offsets(log)


@pytest.mark.scenario(52)
def test_future_timestamp_keeps_all_later_segments(
    caplog: pytest.LogCaptureFixture,
) -> None:
    home, log = five_segments(retention_ms=1000, message_timestamp_after_max_ms=2**62)
    log.truncate_fully_and_start_at(0)
    append(log, size=1000, timestamp=FIRST_TIMESTAMP + 2 * HOUR)
    append(log, 3, size=1000, timestamp=FIRST_TIMESTAMP)
    home.clock.advance(HOUR)

    assert 0 == log.delete_old_segments()
    assert 0 == log.delete_old_segments()

    assert 1 == caplog.text.count("contains future timestamp(s)")


@pytest.mark.scenario(53)
def test_nothing_above_the_high_watermark_is_deleted() -> None:
    home, log = five_segments(retention_ms=1000)
    home.clock.advance(2 * HOUR)
    log.update_high_watermark(2)

    assert 2 == log.delete_old_segments()

    assert [2, 3, 4] == bases(log)
    assert 2 == log.log_start_offset == log.high_watermark


@pytest.mark.scenario(54)
def test_deleted_segment_files_are_marked_at_once_and_removed_later() -> None:
    home = LogHome(segment_bytes=1000, retention_bytes=0, retention_ms=-1, file_delete_delay_ms=500)
    log = home.open()
    produce(log, b"x", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    append(log, size=900)
    append(log, size=900)
    info = log.read(1, 10000, FetchIsolation.LOG_END, True)

    log.delete_old_segments()

    deleted = [name for name in home.names() if name.endswith(".deleted")]
    assert [
        f"{base:020d}{suffix}.deleted"
        for base, suffixes in (
            (0, (".index", ".log", ".timeindex")),
            (2, (".index", ".log", ".snapshot", ".timeindex")),
        )
        for suffix in suffixes
    ] == deleted
    home.clock.advance(499)
    log.remove_deleted_files()
    assert deleted == [name for name in home.names() if name.endswith(".deleted")]
    home.clock.advance(1)
    log.remove_deleted_files()
    assert [] == [name for name in home.names() if name.endswith(".deleted")]
    assert info.records is not None
    assert 900 == len(info.records.read())


@pytest.mark.scenario(55)
def test_delete_records_moves_the_log_start_offset_and_deletes_segments_below() -> None:
    home, log = log_of(12, segment_bytes=800)
    assert [0, 5, 10] == bases(log)

    assert 7 == log.delete_records(7)
    with pytest.raises(OffsetOutOfRange):
        log.read(6, 1000, FetchIsolation.HIGH_WATERMARK, True)
    assert 1 == log.delete_old_segments()
    assert [5, 10] == bases(log)
    home.stop(log)
    assert 7 == home.log_start_offset

    log = home.open()
    assert 7 == log.log_start_offset
    assert [7, 8, 9, 10, 11] == offsets(log)


@pytest.mark.scenario(56)
def test_delete_records_is_limited_to_offsets_within_the_log() -> None:
    log = LogHome(cleanup_policy=("compact",)).open()
    produce(log, b"v")
    with pytest.raises(PolicyViolation):
        log.delete_records(0)

    _, log = log_of(12)
    for offset in (13, -2):
        with pytest.raises(OffsetOutOfRange):
            log.delete_records(offset)
    assert 5 == log.delete_records(5)
    assert 5 == log.delete_records(3)
    assert 12 == log.delete_records(-1)


def test_empty_log_writes_no_snapshot_at_shutdown() -> None:
    home, log = log_of(5)
    log.delete_records(5)

    home.stop(log)

    assert not [name for name in home.names() if name.endswith(".snapshot")]


def test_first_leader_epoch_begins_at_the_log_start_offset() -> None:
    home, log = log_of(5)
    log.assign_epoch_start_offset(2, 5)
    append(log, 5, leader_epoch=2)

    log.delete_records(3)
    assert [(0, 3), (2, 5)] == list(log.leader_epochs.entries)
    log.delete_records(7)
    assert [(2, 7)] == list(log.leader_epochs.entries)
    home.stop(log)
    assert b"0\n1\n2 7\n" == home.files.read_bytes(DIRECTORY / "leader-epoch-checkpoint")


def test_changed_retention_applies_at_once() -> None:
    home, log = five_segments(retention_ms=-1)
    assert 0 == log.delete_old_segments()

    log.update_config(LogHome(segment_bytes=500, retention_bytes=2000, retention_ms=-1).config)

    assert 3 == log.delete_old_segments()
    append(log, 2, size=400)
    assert [3, 4, 5, 6] == bases(log)
    home.stop(log)
