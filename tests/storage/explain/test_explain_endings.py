from __future__ import annotations

from typing import Any

import pytest

from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.explain.endings import Cause, Certainty, Ending
from barnabas.storage.explain.report import PartitionReport
from barnabas.storage.explain.wording.endings import ending_sentence
from barnabas.storage.log.rolling import RollReason
from tests.support.explaining import look_at
from tests.support.logs import LogHome, append, log_of, produce
from tests.support.segments import FIRST_TIMESTAMP
from tests.support.some import some

SIZE, TIME = RollReason.SIZE, RollReason.TIME


def first_ending(home: LogHome, **facts: Any) -> Ending:
    return endings_of(look_at(home, **facts))[0]


def endings_of(report: PartitionReport) -> list[Ending]:
    return [report.ending(each) for each in report.segments]


def sentence(home: LogHome, ending: Ending) -> str:
    return ending_sentence(ending, home.config)


@pytest.mark.parametrize(
    ("config", "step_ms", "reason", "words"),
    [
        (
            {"segment_bytes": 1000},
            1,
            SIZE,
            "It was full: its 900 bytes and the next batch (offset 6, 150 bytes) are 1,050, more"
            " than internal.segment.bytes, 1,000.",
        ),
        (
            {"segment_ms": 30},
            10,
            TIME,
            "It was too old: the next batch (offset 4, 150 bytes) is of 2023-11-14T22:13:20.040Z,"
            " 40 ms after the first batch of the segment, more than segment.ms, 30 ms.",
        ),
        (
            {"segment_index_bytes": 48, "index_interval_bytes": 0},
            0,
            RollReason.OFFSET_INDEX_FULL,
            "Its offset index was full: segment.index.bytes, 48, has room for 6 entries.",
        ),
        (
            {"segment_index_bytes": 36, "index_interval_bytes": 0},
            1,
            RollReason.TIME_INDEX_FULL,
            "Its time index was full: segment.index.bytes, 36, has room for 3 entries, one of"
            " them reserved for the end; 2 were in use.",
        ),
    ],
)
def test_rule_that_rolled_a_segment_is_found_with_its_figures(
    config: dict[str, Any], step_ms: int, reason: RollReason, words: str
) -> None:
    home = LogHome(**config)
    log = home.open()
    for number in range(10):
        append(log, timestamp=FIRST_TIMESTAMP + number * step_ms)

    for ending in some(endings_of(look_at(home))[:-1]):
        assert (Cause.ROLLED, reason) == (ending.cause, ending.reason)
        assert Certainty.CERTAIN is ending.certainty

    assert words == sentence(home, first_ending(home))


def test_restart_does_not_change_the_reason_of_a_roll() -> None:
    """
    It adds an entry to the time index and trims both indexes.
    """
    home = LogHome(segment_index_bytes=60, index_interval_bytes=150)
    log = home.open()
    for restarted in range(4):
        append(log, 3)
        home.stop(log)
        log = home.open()
        assert restarted >= 0
    append(log, 4)

    endings = endings_of(look_at(home))[:-1]

    assert endings
    assert {RollReason.TIME_INDEX_FULL} == {ending.reason for ending in endings}


def test_roll_of_a_compacted_topic_is_explained_by_max_compaction_lag() -> None:
    home = LogHome(cleanup_policy=("compact",), max_compaction_lag_ms=50)
    log = home.open()
    produce(log, b"1")
    produce(log, b"2", timestamp=FIRST_TIMESTAMP + 51)

    ending = first_ending(home)

    assert (Cause.ROLLED, TIME) == (ending.cause, ending.reason)
    assert "more than max.compaction.lag.ms, 50 ms" in sentence(home, ending)


def test_roll_by_jitter_is_marked_as_inferred() -> None:
    home = LogHome(segment_ms=1000, segment_jitter_ms=900)
    log = home.open()
    for number in range(60):
        append(log, timestamp=FIRST_TIMESTAMP + number * 100)

    for ending in some(endings_of(look_at(home))[:-1]):
        assert ending.waited_ms is not None
        if ending.waited_ms <= 1000:
            assert (Cause.JITTER, TIME) == (ending.cause, ending.reason)
            assert Certainty.INFERRED is ending.certainty
            least = 1000 - ending.waited_ms + 1
            assert f"less a jitter of {least} ms or more" in sentence(home, ending)


def test_roll_by_the_clock_is_marked_as_inferred() -> None:
    home, log = log_of(timestamp=-1, segment_ms=1000)
    home.clock.advance(1001)
    append(log, timestamp=-1)

    ending = first_ending(home)

    assert (Cause.CLOCK, Certainty.INFERRED) == (ending.cause, ending.certainty)
    assert "the first batch has no timestamp" in sentence(home, ending)


def test_changed_settings_leave_a_roll_unexplained() -> None:
    """
    The explanation then states what the current settings would have allowed.
    """
    home, _ = log_of(7, segment_bytes=1000)
    now = LogHome(files=home.files, segment_bytes=2000)
    now.clock = home.clock

    ending = first_ending(now)

    assert (Cause.UNEXPLAINED, Certainty.UNKNOWN) == (ending.cause, ending.certainty)
    assert "was reached, with 1,050 of 2,000 bytes, 6 ms of 7 days" in sentence(now, ending)


def test_assumed_settings_may_explain_a_roll() -> None:
    home, _ = log_of(7, segment_bytes=1000)
    now = LogHome(files=home.files, segment_bytes=2000)

    ending = first_ending(now, supposed=LogConfig(internal_segment_bytes=1000))

    assert (Cause.ROLLED, SIZE, True) == (ending.cause, ending.reason, ending.is_supposed)
    assert sentence(home, ending).endswith("The settings of --set were used.")


def test_reason_of_a_roll_before_an_empty_segment_is_unknown_unless_an_index_is_full() -> None:
    endings = []
    for slots in (10, 3):
        home = LogHome(segment_index_bytes=12 * slots, index_interval_bytes=0)
        log = home.open()
        append(log, 3)
        log.roll()
        endings.append(first_ending(home))
    unknown, full = endings

    assert (Cause.NOTHING_FOLLOWS, Certainty.UNKNOWN) == (unknown.cause, unknown.certainty)
    assert "Unknown: the next segment has no records." in sentence(home, unknown)
    assert (Cause.ROLLED, RollReason.TIME_INDEX_FULL) == (full.cause, full.reason)


def test_final_time_index_entry_does_not_count_as_a_full_index() -> None:
    """
    One of five slots was free when the next batch came, besides the reserved one.
    """
    home, log = log_of(8, segment_index_bytes=60, index_interval_bytes=150)
    log.roll()
    append(log)

    ending = first_ending(home)

    assert 4 == look_at(home).segments[0].segment.time_index.entries
    assert (Cause.UNEXPLAINED, 3, 4) == (ending.cause, ending.time_entries, ending.time_slots)


def test_segment_written_by_compaction_is_explained_as_compacted() -> None:
    home = LogHome(cleanup_policy=("compact",), segment_bytes=900)
    log = home.open()
    for _ in range(3):
        produce(log, bytes(700))
    home.write_checkpoint("cleaner-offset-checkpoint", 1)

    first, second, _ = endings_of(look_at(home))

    assert (Cause.COMPACTED, Certainty.INFERRED) == (first.cause, first.certainty)
    assert Cause.ROLLED is second.cause


def test_active_segment_reports_its_remaining_room_exactly() -> None:
    home, log = log_of(3, segment_bytes=1000, segment_ms=100, index_interval_bytes=0)

    ending = first_ending(home)

    assert ending.room is not None
    assert (550, FIRST_TIMESTAMP + 100) == (ending.room.size_bytes, ending.room.latest_timestamp)
    assert (
        "It is the active segment. It ends before a batch that has more than 550 bytes"
        " (internal.segment.bytes), or is later than 2023-11-14T22:13:20.100Z (segment.ms)."
        " Without a new record it does not end."
    ) == sentence(home, ending)
    append(log, size=550, timestamp=FIRST_TIMESTAMP + 100)
    assert 1 == log.segments.number_of_segments
    append(log, timestamp=FIRST_TIMESTAMP)
    assert 2 == log.segments.number_of_segments


def test_active_segment_reports_a_nearly_full_index() -> None:
    home, log = log_of(3, segment_index_bytes=60, index_interval_bytes=0)
    nearly = sentence(home, first_ending(home))
    append(log, 2)
    full = sentence(home, first_ending(home))
    append(log)

    assert "It also ends after 2 more entries in an index (segment.index.bytes)." in nearly
    assert "its index is full: any batch begins the next segment" in full
    assert 2 == log.segments.number_of_segments
