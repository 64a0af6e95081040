from __future__ import annotations

from itertools import count

import pytest

from benchmarks.migration import Waits


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    """
    Wait times by a clock that moves by a second with each reading.
    """
    seconds = count(1)
    monkeypatch.setattr("benchmarks.migration.time.monotonic", lambda: float(next(seconds)))
    return Waits()


def test_longest_wait_lasts_until_a_member_reads_a_record(waits: Waits) -> None:
    waits.produced(0, 0)  # at second 1
    waits.produced(1, 0)  # 2
    waits.read(1, 0)  # 3
    waits.read(0, 0)  # 4
    waits.read(0, 0)  # 5: another member reads it again

    assert 3 == waits.longest()


def test_record_that_no_member_has_read_is_reported_missing(waits: Waits) -> None:
    waits.produced(0, 0)
    waits.produced(0, 1)
    waits.read(0, 1)

    assert 1 == waits.missing()
