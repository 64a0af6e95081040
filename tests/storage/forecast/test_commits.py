from __future__ import annotations

from typing import Final

import pytest

from barnabas.storage.forecast.commits import (
    ALONE_MS,
    MOST_COMMITS,
    PATIENCE_MS,
    SPACING_MS,
    CommitHistory,
    Movement,
)

MINUTE: Final = 60_000


def history(*commits: tuple[int, float]) -> CommitHistory:
    """
    Commits of offsets at minutes.
    """
    (first, minute), *others = commits
    made = CommitHistory(first, round(minute * MINUTE))
    for offset, at in others:
        made.add(offset, round(at * MINUTE))
    return made


def per_minute(commits: CommitHistory, minute: float) -> float:
    return commits.pace(round(minute * MINUTE)).records_per_ms * MINUTE


def test_group_moves_at_its_pace_since_its_last_commit() -> None:
    pace = history((100, 0), (160, 2), (220, 4)).pace(5 * MINUTE)

    assert (Movement.MOVES, 220, 4 * MINUTE) == (pace.movement, pace.offset, pace.committed_ms)
    assert (250, 0) == (pace.position, pace.since_ms)
    assert pytest.approx(30) == pace.records_per_ms * MINUTE


def test_commit_of_the_same_offset_confirms_that_the_group_stands_still() -> None:
    pace = history((0, 0), (60, 2), (60, 3)).pace(3 * MINUTE)

    assert (60, 2 * MINUTE) == (pace.position, pace.committed_ms)
    assert pytest.approx(20) == pace.records_per_ms * MINUTE


def test_group_that_has_not_moved_for_long_stands_still_since_its_last_move() -> None:
    commits = history((0, 0), (60, 1), (60, 2))
    moves = commits.pace(MINUTE + PATIENCE_MS)
    stands = commits.pace(MINUTE + PATIENCE_MS + 1)

    assert Movement.MOVES is moves.movement
    assert (Movement.STANDS, 0.0) == (stands.movement, stands.records_per_ms)
    assert (MINUTE, 60) == (stands.since_ms, stands.position)


def test_group_counts_as_moving_for_twice_its_commit_interval() -> None:
    commits = history((0, 0), (60, 30), (120, 60))

    assert Movement.MOVES is commits.pace(120 * MINUTE).movement
    assert Movement.STANDS is commits.pace(120 * MINUTE + 1).movement


def test_single_commit_has_no_pace_until_it_is_old() -> None:
    commits = history((5, 0))

    assert Movement.UNKNOWN is commits.pace(ALONE_MS).movement
    assert Movement.STANDS is commits.pace(ALONE_MS + 1).movement


def test_confirmed_single_commit_counts_as_standing_still_earlier() -> None:
    commits = history((5, 0), (5, 4), (5, 6))

    assert Movement.STANDS is commits.pace(6 * MINUTE).movement


def test_group_reset_to_an_earlier_offset_has_no_pace_until_it_moves() -> None:
    commits = history((0, 0), (600, 1), (100, 2))

    assert Movement.UNKNOWN is commits.pace(2 * MINUTE).movement
    assert 100 == commits.pace(2 * MINUTE).position
    commits.add(110, 3 * MINUTE)
    assert pytest.approx(10) == per_minute(commits, 3)


def test_pace_after_a_pause_excludes_the_pause() -> None:
    commits = history((0, 0), (10, 1), (5000, 300), (6000, 301))

    assert pytest.approx(1000) == per_minute(commits, 301)


def test_group_that_commits_every_two_hours_has_a_pace() -> None:
    commits = history((0, 0), (120, 120), (240, 240), (360, 360))

    assert Movement.MOVES is commits.pace(400 * MINUTE).movement
    assert pytest.approx(1) == per_minute(commits, 400)


def test_group_that_rarely_reads_a_record_has_a_pace() -> None:
    commits = history(*((minute // 15, minute) for minute in range(100)))

    assert Movement.MOVES is commits.pace(99 * MINUTE).movement
    assert pytest.approx(1 / 15, rel=0.15) == per_minute(commits, 99)


def test_jump_over_deleted_records_does_not_count_as_reading() -> None:
    commits = history((0, 0), (10, 1))
    commits.add(1010, 2 * MINUTE, log_start_offset=1000)

    assert pytest.approx(10) == per_minute(commits, 2)
    assert 1010 == commits.offset


def test_pace_covers_about_the_last_hour_in_few_commits() -> None:
    commits = history(*((minute, minute) for minute in range(100)))
    for minute in range(100, 300):
        commits.add(100 + (minute - 100) * 7, minute * MINUTE)

    assert MOST_COMMITS >= len(commits._commits)
    first, *_, before, _ = commits._commits
    assert before.time_ms - first.time_ms == (MOST_COMMITS - 2) * SPACING_MS
    assert pytest.approx(7) == per_minute(commits, 299)


def test_two_commits_in_the_same_millisecond_count_as_one() -> None:
    commits = history((0, 0), (5, 0))
    assert Movement.UNKNOWN is commits.pace(0).movement
    assert 5 == commits.offset

    commits.add(15, MINUTE)
    assert pytest.approx(10) == per_minute(commits, 1)


def test_copy_of_commits_is_independent() -> None:
    commits = history((0, 0), (10, 1))
    copied = commits.copied()
    copied.add(20, 2 * MINUTE)

    assert (10, 20) == (commits.offset, copied.offset)
    assert per_minute(commits, 2) == per_minute(copied, 2)
