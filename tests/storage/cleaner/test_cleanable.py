from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from barnabas.storage.cleaner.cleanable import (
    CleanableLog,
    CleaningPlan,
    CleaningVerdict,
    DirtyOrigin,
    Limit,
    plan_cleaning,
)
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.units import LONG_MAX

NOW = 1_700_000_000_000


@dataclass(frozen=True)
class Piece:
    base_offset: int
    size: int = 100
    latest: int = 0
    first: int = 0

    def largest_timestamp(self) -> int:
        return self.latest

    def first_batch_timestamp(self) -> int:
        return self.first


def plan(
    segments: Sequence[Piece],
    *,
    checkpoint: int | None = None,
    start: int = 0,
    stable: int = 100,
    end: int = 100,
    **config: Any,
) -> CleaningPlan[Piece]:
    log = CleanableLog(segments, start, stable, end)
    return plan_cleaning(log, LogConfig(**config), checkpoint, NOW)


THREE = (Piece(0), Piece(10), Piece(20))


@pytest.mark.parametrize(
    ("checkpoint", "start", "offset", "origin", "must_be_noted"),
    [
        (None, 0, 0, DirtyOrigin.NEVER_CLEANED, False),
        (None, 5, 5, DirtyOrigin.NEVER_CLEANED, False),
        (5, 5, 5, DirtyOrigin.CHECKPOINT, False),
        (12, 5, 12, DirtyOrigin.CHECKPOINT, False),
        (100, 5, 100, DirtyOrigin.CHECKPOINT, False),
        (4, 5, 5, DirtyOrigin.BELOW_LOG_START, True),
        (101, 5, 5, DirtyOrigin.BEYOND_LOG_END, True),
    ],
)
def test_first_dirty_offset_comes_from_the_checkpoint_within_the_bounds_of_the_log(
    checkpoint: int | None, start: int, offset: int, origin: DirtyOrigin, must_be_noted: bool
) -> None:
    first = plan(THREE, checkpoint=checkpoint, start=start).first_dirty

    assert (offset, origin, checkpoint) == (first.offset, first.origin, first.checkpoint)
    assert must_be_noted == first.must_be_noted


def test_the_active_segment_is_never_cleaned() -> None:
    found, nothing = plan(THREE), plan(THREE[:1])

    assert (Limit.ACTIVE_SEGMENT, 20) == (found.bound.limit, found.uncleanable_offset)
    assert list(THREE[:2]) == list(found.cleanable_segments)
    assert (0, 200, 1.0) == (found.clean_bytes, found.cleanable_bytes, found.ratio)
    assert CleaningVerdict.NOTHING_TO_CLEAN is nothing.verdict
    assert (0, 0.0) == (nothing.total_bytes, nothing.ratio)


@pytest.mark.parametrize(
    ("stable", "end"), [(10, 10), (15, 10), (19, 10), (9, 0), (0, 0), (20, 20)]
)
def test_segment_that_holds_the_last_stable_offset_is_not_cleanable(stable: int, end: int) -> None:
    found = plan(THREE, stable=stable)

    assert end == found.uncleanable_offset
    assert Limit.LAST_STABLE_OFFSET in {bound.limit for bound in found.bounds}
    if stable < 20:
        assert (Limit.LAST_STABLE_OFFSET, stable) == (found.bound.limit, found.bound.offset)


@pytest.mark.scenario(76)
def test_segment_younger_than_min_compaction_lag_protects_all_later_segments() -> None:
    ages = (60_000, 30_000, 90_000)
    segments = [Piece(10 * at, latest=NOW - age) for at, age in enumerate(ages)]

    found = plan([*segments, Piece(30)], min_compaction_lag_ms=60_000)

    bound = found.bound
    assert (Limit.MIN_COMPACTION_LAG, 10, 30_000) == (bound.limit, bound.offset, bound.age_ms)
    assert segments[:1] == list(found.cleanable_segments)


@pytest.mark.parametrize(
    ("lag", "age", "end"),
    [(60_000, 60_000, 20), (60_000, 59_999, 10), (60_000, -5, 10), (0, -1000, 20)],
)
def test_record_younger_than_min_compaction_lag_is_not_cleanable(
    lag: int, age: int, end: int
) -> None:
    segments = (Piece(0, latest=0), Piece(10, latest=NOW - age), Piece(20))

    assert end == plan(segments, min_compaction_lag_ms=lag).uncleanable_offset


def test_min_compaction_lag_is_not_checked_for_clean_segments() -> None:
    segments = (Piece(0, latest=NOW), Piece(10, latest=0), Piece(20))

    found = plan(segments, checkpoint=10, min_compaction_lag_ms=60_000)

    assert 20 == found.uncleanable_offset
    assert (100, 100, 0.5) == (found.clean_bytes, found.cleanable_bytes, found.ratio)


def test_segment_that_holds_the_first_dirty_offset_counts_as_clean_and_dirty() -> None:
    found = plan(THREE, checkpoint=15)

    assert (200, 100) == (found.clean_bytes, found.cleanable_bytes)
    assert [THREE[1]] == list(found.cleanable_segments)


def test_uncleanable_offset_is_never_below_the_first_dirty_offset() -> None:
    found = plan(THREE, checkpoint=15, stable=5)

    assert (5, 10, 0) == (found.bound.offset, found.uncleanable_offset, found.cleanable_bytes)


def test_cleanable_range_ends_at_the_active_segment() -> None:
    found = plan(THREE, checkpoint=25)

    assert (20, 0) == (found.uncleanable_offset, found.cleanable_bytes)
    assert CleaningVerdict.NOTHING_TO_CLEAN is found.verdict


@pytest.mark.scenario(75)
def test_log_at_exactly_min_cleanable_dirty_ratio_is_not_cleaned() -> None:
    half = plan(THREE, checkpoint=10, min_cleanable_dirty_ratio=0.5)
    more = plan((Piece(0), Piece(10, 101), Piece(20)), checkpoint=10, min_cleanable_dirty_ratio=0.5)

    assert (0.5, CleaningVerdict.CLEAN_ENOUGH) == (half.ratio, half.verdict)
    assert not half.verdict.is_due
    assert CleaningVerdict.DIRTY is more.verdict
    assert more.verdict.is_due


def test_min_cleanable_dirty_ratio_of_0_is_exceeded_by_any_dirty_byte() -> None:
    any_byte = plan((Piece(0), Piece(10, 1), Piece(11)), checkpoint=10, min_cleanable_dirty_ratio=0)
    none = plan((Piece(0), Piece(10)), checkpoint=10, min_cleanable_dirty_ratio=0)

    assert CleaningVerdict.DIRTY is any_byte.verdict
    assert CleaningVerdict.NOTHING_TO_CLEAN is none.verdict


@pytest.mark.parametrize(
    ("first", "delay", "verdict"),
    [
        (NOW - 60_001, 1, CleaningVerdict.LAG_EXCEEDED),
        (NOW - 60_000, 0, CleaningVerdict.CLEAN_ENOUGH),
        (LONG_MAX, 0, CleaningVerdict.CLEAN_ENOUGH),
        (0, 0, CleaningVerdict.CLEAN_ENOUGH),
    ],
)
def test_record_older_than_max_compaction_lag_makes_the_log_due(
    first: int, delay: int, verdict: CleaningVerdict
) -> None:
    segments = (Piece(0, 1000, first=1), Piece(10, first=first), Piece(20, first=1))

    found = plan(segments, checkpoint=10, max_compaction_lag_ms=60_000)

    assert (delay, verdict) == (found.delay.delay_ms, found.verdict)


def test_max_compaction_lag_counts_from_the_earliest_dirty_record() -> None:
    segments = (Piece(0, first=NOW - 3000), Piece(10, first=NOW - 4000), Piece(20, first=1))

    delay = plan(segments, max_compaction_lag_ms=1000).delay

    assert (NOW - 4000, 3000) == (delay.earliest_timestamp, delay.delay_ms)


def test_max_compaction_lag_does_not_apply_without_cleanable_segments() -> None:
    segments = (Piece(0, first=1), Piece(10))

    found = plan(segments, stable=5, max_compaction_lag_ms=1000)

    assert found.delay.delay_ms > 0
    assert CleaningVerdict.NOTHING_TO_CLEAN is found.verdict


def test_first_timestamps_are_not_read_without_max_compaction_lag() -> None:
    class Unread(Piece):
        def first_batch_timestamp(self) -> int:
            raise AssertionError("read")

    assert CleaningVerdict.DIRTY is plan((Unread(0), Unread(10))).verdict
