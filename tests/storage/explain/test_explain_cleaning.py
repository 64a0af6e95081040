from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.cleaner.cleanable import CleaningVerdict
from barnabas.storage.explain.as_text import summary_text
from barnabas.storage.explain.cleaning import Cleaning, LogPart, horizons_in
from barnabas.storage.explain.report import report_on_segment
from barnabas.storage.explain.wording.cleaning import (
    cleaner_sentences,
    cleaning_sentences,
    horizon_sentence,
    part_sentence,
)
from barnabas.storage.log.log import Log
from tests.support.explaining import look_at
from tests.support.logs import LogHome, append_with_offsets, produce
from tests.support.segments import FIRST_TIMESTAMP


def four_segments(home: LogHome) -> Log:
    log = home.open()
    for number in range(4):
        produce(log, bytes(40), timestamp=FIRST_TIMESTAMP + number * 1000)
    return log


def compacted(**config: Any) -> LogHome:
    return LogHome(cleanup_policy=("compact",), segment_bytes=150, **config)


def cleaning(home: LogHome, **facts: Any) -> tuple[Cleaning, str]:
    """
    What is known of the cleaning of a log, and the sentences about it.
    """
    report = look_at(home, **facts)
    assert report.cleaning is not None
    return report.cleaning, " ".join(cleaning_sentences(report))


def test_log_without_compaction_has_no_cleaning_plan() -> None:
    home = LogHome()
    home.open()

    assert look_at(home).cleaning is None


def test_log_that_was_never_cleaned_is_dirty() -> None:
    home = compacted()
    four_segments(home)

    found, words = cleaning(home)

    assert CleaningVerdict.DIRTY is found.plan.verdict
    assert [LogPart.CLEANABLE] * 3 + [LogPart.ACTIVE] == list(found.parts.values())
    assert (
        "It is dirty from its start, offset 0: it was never cleaned. A cleaning would read 3"
        " segments, 327 bytes, from segment 0 up to offset 3: the active segment, 3, is not"
        " cleaned before it has ended. It is due: 327 of 327 bytes, 100.0%, are dirty, more than"
        " min.cleanable.dirty.ratio, 50.0%; an idle cleaner looks every 15 seconds."
    ) == words
    assert f"Cleaner {words}" in " ".join(summary_text(look_at(home)).split())


def test_cleaner_checkpoint_decides_which_segments_are_clean() -> None:
    home = compacted()
    four_segments(home)
    home.write_checkpoint("cleaner-offset-checkpoint", 2)

    found, words = cleaning(home)

    assert [LogPart.CLEAN] * 2 + [LogPart.CLEANABLE, LogPart.ACTIVE] == list(found.parts.values())
    assert "It is clean up to offset 2, the end of the last cleaning." in words
    assert "It is not due: 109 of 327 bytes, 33.3%, are dirty" in words
    assert [
        "It was cleaned.",
        "It was cleaned.",
        "A cleaning, when due, reads it, and removes records whose key has a later record.",
        "It is not cleaned before it has ended.",
    ] == [part_sentence(part, found) for part in found.parts.values()]


def test_min_compaction_lag_bounds_the_cleanable_segments() -> None:
    home = compacted(min_compaction_lag_ms=5000)
    four_segments(home)
    home.clock.advance(5500)

    found, words = cleaning(home)

    expected = [LogPart.CLEANABLE, LogPart.UNCLEANABLE, LogPart.UNCLEANABLE, LogPart.ACTIVE]
    assert expected == list(found.parts.values())
    assert "up to offset 1: the latest record of segment 1 is 4 seconds 500 ms old" in words


def test_open_transaction_bounds_the_cleanable_segments() -> None:
    """
    Also if no producer snapshot records it, because the broker is running.
    """
    home = compacted()
    log = home.open()
    produce(log, bytes(40))
    produce(log, bytes(40), is_transactional=True, producer_id=9, producer_epoch=0, base_sequence=0)
    for _ in range(2):
        produce(log, bytes(40))

    assert "a transaction is open from offset 1 on" in cleaning(home)[1]


def test_max_compaction_lag_makes_the_log_due_at_an_exact_time() -> None:
    home = compacted(max_compaction_lag_ms=60_000, min_cleanable_dirty_ratio=1.0)
    four_segments(home)
    home.clock.advance(1000)
    found, words = cleaning(home)
    due_ms = found.due_ms
    assert due_ms is not None

    (before, _), (after, exceeded) = (cleaning(home, now_ms=due_ms + ms) for ms in (-1, 0))

    assert CleaningVerdict.CLEAN_ENOUGH is before.plan.verdict
    assert CleaningVerdict.LAG_EXCEEDED is after.plan.verdict
    assert "max.compaction.lag.ms makes it due at 2023-11-14T22:14:20.001Z" in words
    assert "is exceeded by 1 ms" in exceeded


def test_disabled_cleaner_is_reported() -> None:
    home = compacted()
    four_segments(home)

    assert "The cleaner is switched off" in cleaning(home, cleaner_enabled=False)[1]


@pytest.mark.parametrize(("now", "passed"), [(499, 0), (500, 1)])
def test_delete_horizons_are_reported(now: int, passed: int) -> None:
    home = compacted()
    log = home.open()
    append_with_offsets(log, with_horizon(FIRST_TIMESTAMP + 500))
    report = report_on_segment(look_at(home, now_ms=FIRST_TIMESTAMP + now), 0)
    assert report.chosen is not None

    horizons = report.chosen.horizons

    assert horizons is not None
    assert (1, passed) == (horizons.batches, horizons.passed)
    assert FIRST_TIMESTAMP + 500 == horizons.earliest_ms
    sentence = (
        "A cleaning removes the tombstones or markers in 1 batch after their delete horizon:"
        f" 2023-11-14T22:13:20.500Z; it has passed for {passed}."
    )
    assert sentence == horizon_sentence(horizons)
    assert sentence == cleaner_sentences(report, report.chosen)[-1]


def with_horizon(horizon_ms: int) -> memoryview:
    records = [SimpleRecord(FIRST_TIMESTAMP, b"k", None)]
    return memoryview(build_batch(records, delete_horizon_ms=horizon_ms))


def test_segment_without_delete_horizons_has_no_sentence_about_them() -> None:
    home = compacted()
    log = four_segments(home)

    assert "" == horizon_sentence(horizons_in(log.active_segment, FIRST_TIMESTAMP))
