from __future__ import annotations

from typing import Any

import pytest

from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.report import SegmentReport
from barnabas.storage.explain.wording.retention import keeping_sentences, leaving_sentences
from barnabas.storage.log.log import Log
from tests.support.explaining import look_at
from tests.support.logs import LogHome, append, bases, log_of, produce
from tests.support.segments import FIRST_TIMESTAMP
from tests.support.some import some

MINUTE = 60_000


def words(home: LogHome, each: SegmentReport) -> tuple[str, str]:
    report = look_at(home)
    return " ".join(keeping_sentences(report, each)), " ".join(leaving_sentences(report, each))


def filled(home: LogHome, *timestamps: int) -> Log:
    """
    Six batches to a segment, all of the same time: one segment for each of *timestamps*, in
    minutes.
    """
    log = home.open()
    for minutes in timestamps:
        append(log, 6, timestamp=FIRST_TIMESTAMP + minutes * MINUTE)
    return log


@pytest.mark.parametrize(
    "minutes",
    [(0, 1, 2), (5, 1, 2), (0, 9, 3), (2, 2, 2)],
    ids=["in order", "the oldest is late", "one is late", "all alike"],
)
def test_segment_is_deleted_at_the_first_retention_check_after_its_due_time(
    minutes: tuple[int, ...],
) -> None:
    home = LogHome(segment_bytes=900, retention_ms=10 * MINUTE, segment_ms=10**12)
    log = filled(home, *minutes)
    report = look_at(home)
    assert 3 == len(report.segments)

    for each in some(report.segments):
        earliest, latest = each.lifetime.unreadable
        assert earliest is not None
        assert earliest == each.lifetime.due_ms
        if not each.lifetime.is_active:
            assert latest == earliest + 300_000
        if earliest > home.clock.now_ms():
            home.clock.advance(earliest - 1 - home.clock.now_ms())
            log.delete_old_segments()
            assert each.segment.base_offset in bases(log)
            home.clock.advance(1)
        log.delete_old_segments()
        assert each.segment.base_offset not in bases(log)


def test_files_of_a_segment_are_removed_file_delete_delay_after_the_check() -> None:
    home = LogHome(segment_bytes=900, retention_ms=10 * MINUTE, file_delete_delay_ms=7_000)
    log = filled(home, 0, 1)
    lifetime = look_at(home).segments[0].lifetime
    assert lifetime.due_ms is not None

    home.clock.advance(lifetime.due_ms - home.clock.now_ms())
    log.delete_old_segments()
    assert lifetime.removed.earliest_ms is not None
    home.clock.advance(lifetime.removed.earliest_ms - 1 - home.clock.now_ms())
    log.remove_deleted_files()
    still_there = home.has_file(0, ".log.deleted")
    home.clock.advance(1)
    log.remove_deleted_files()

    assert still_there
    assert not home.has_file(0, ".log.deleted")
    assert lifetime.removed.latest_ms == lifetime.removed.earliest_ms + 300_000


def test_active_segment_is_deleted_retention_ms_after_its_last_possible_record() -> None:
    home = LogHome(segment_bytes=10_000, retention_ms=10 * MINUTE, segment_ms=5 * MINUTE)
    log = filled(home, 0)
    before = look_at(home).segments[0].lifetime

    append(log, 1, timestamp=FIRST_TIMESTAMP + 5 * MINUTE)
    after = look_at(home).segments[0].lifetime
    append(log, 1, timestamp=FIRST_TIMESTAMP + 5 * MINUTE + 1)
    ended = look_at(home).segments[0].lifetime

    assert before.due_ms == FIRST_TIMESTAMP + 10 * MINUTE + 1
    assert before.latest_due_ms == FIRST_TIMESTAMP + 15 * MINUTE + 1
    assert before.latest_due_ms == after.due_ms == after.latest_due_ms == ended.due_ms
    assert [0, 7] == bases(log)
    assert before.unreadable == (before.due_ms, before.latest_due_ms + 300_000)


def test_modification_time_decides_retention_without_timestamps() -> None:
    home, _ = log_of(1, timestamp=-1, retention_ms=10 * MINUTE)
    home.clock.advance(MINUTE)

    each = look_at(home).segments[0]

    assert not each.lifetime.has_timestamps
    assert each.lifetime.due_ms == FIRST_TIMESTAMP + 10 * MINUTE + 1
    assert each.lifetime.unreadable.latest_ms is None
    stays, goes = words(home, each)
    assert "no timestamps, so the modification time of its file counts" in stays
    assert "Its last time is unknown" in goes


def test_segment_is_deleted_once_the_missing_bytes_were_appended() -> None:
    home = LogHome(segment_bytes=900, retention_bytes=2000, retention_ms=-1)
    log = filled(home, 0, 0, 0)
    segments = look_at(home).segments
    assert [200, 1100, 2000] == [each.lifetime.bytes_missing for each in segments]
    first = segments[0]
    stays, goes = words(home, first)
    assert "Without it the log would have 1,800 bytes, 200 less than retention.bytes" in stays
    assert "after 200 more bytes were appended" in goes

    append(log, 1, size=199)
    log.delete_old_segments()
    lacking = bases(log)
    append(log, 1, size=150)
    oldest = look_at(home).segments[0]
    going = oldest.lifetime.goes_by
    stays, _ = words(home, oldest)
    log.delete_old_segments()

    assert 0 in lacking
    assert going is not None
    assert "retention.bytes" == going.value
    assert "Without it the log still has retention.bytes, 2,000; no check" in stays
    assert 0 not in bases(log)


def test_segment_waits_for_an_older_one_with_future_timestamps() -> None:
    home = LogHome(segment_bytes=900, retention_ms=MINUTE, message_timestamp_after_max_ms=2**62)
    filled(home, 600, 0, 0)
    home.clock.advance(5 * MINUTE)

    first, second, _ = look_at(home).segments

    assert "it keeps this segment and all later ones" in words(home, first)[0]
    stays, goes = words(home, second)
    assert stays.startswith("The older segment 0 is kept, so this one is kept as well.")
    assert "together with segment 0" in goes
    assert first.lifetime.unreadable == second.lifetime.unreadable


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"retention_ms": -1}, "Never: neither"),
        ({"cleanup_policy": ()}, "Only after DeleteRecords"),
        ({"cleanup_policy": ("compact",)}, "Never as a whole"),
    ],
)
def test_segment_without_retention_limits_is_never_deleted(
    config: dict[str, Any], expected: str
) -> None:
    home = LogHome(segment_bytes=900, **config)
    log = home.open()
    produce(log, *[bytes(80)] * 6)
    produce(log, *[bytes(80)] * 6)
    home.clock.advance(10**12)

    for each in some(look_at(home).segments):
        assert words(home, each)[1].startswith(expected)
        assert each.lifetime.unreadable == (None, None)


def test_segment_below_the_log_start_offset_is_deleted() -> None:
    home = LogHome(segment_bytes=900, retention_ms=-1)
    log = filled(home, 0, 0)
    log.delete_records(4)
    home.checkpoint(log)
    home.write_checkpoint("log-start-offset-checkpoint", 4)

    inside = words(home, look_at(home).segments[0])[1]
    log.delete_records(6)
    home.write_checkpoint("log-start-offset-checkpoint", 6)
    beyond = look_at(home).segments[0]
    log.delete_old_segments()

    assert "after DeleteRecords has moved that offset to 6" in inside
    assert beyond.lifetime.goes_by is not None
    assert "log start offset" == beyond.lifetime.goes_by.value
    assert [6] == bases(log)


def test_segment_above_the_high_watermark_is_kept() -> None:
    """
    With several replicas only the checkpoint tells the high watermark.
    """
    home = LogHome(segment_bytes=900, retention_ms=MINUTE)
    filled(home, 0, 0)
    home.write_checkpoint("replication-offset-checkpoint", 3)
    home.clock.advance(10 * MINUTE)

    report = look_at(home, replicas=3)

    assert 3 == report.opened.log.high_watermark
    stays, goes = words(home, report.segments[0])
    assert "beyond the high watermark" in stays
    assert goes.startswith("Not before the high watermark has passed it")
    assert look_at(home, replicas=1).segments[0].lifetime.goes_by is not None


@pytest.mark.parametrize(
    ("cleaner_enabled", "interval", "expected"), [(True, 15_000, "the cleaner"), (False, None, "")]
)
def test_retention_of_compacted_logs_is_checked_by_the_cleaner(
    cleaner_enabled: bool, interval: int | None, expected: str
) -> None:
    home = LogHome(cleanup_policy=("compact", "delete"), retention_ms=MINUTE)
    produce(home.open(), b"v")

    each = look_at(home, cleaner_enabled=cleaner_enabled).segments[0]

    assert interval == each.lifetime.check_interval_ms
    assert expected in words(home, each)[1]
    assert cleaner_enabled or words(home, each)[1].startswith("Never: ")


def test_explanation_accepts_an_assumed_time_and_assumed_settings() -> None:
    home = LogHome(segment_bytes=900, retention_ms=-1)
    filled(home, 0, 1)
    supposed = LogConfig(internal_segment_bytes=900, retention_ms=MINUTE)

    now = look_at(home, supposed=supposed).segments[0].lifetime
    later = look_at(home, supposed=supposed, now_ms=FIRST_TIMESTAMP + MINUTE + 1)

    assert now.goes_by is None
    assert later.segments[0].lifetime.goes_by is not None
    assert later.segments[1].lifetime.goes_by is None


def test_empty_active_segment_is_kept() -> None:
    home = LogHome(retention_ms=MINUTE)
    home.open()

    stays, goes = words(home, look_at(home).segments[0])

    assert stays.startswith("It is the active segment, and has no record")
    assert goes.startswith("Never while it is empty")
