from __future__ import annotations

import pytest

from barnabas.storage.cleaner.stats import CleanerStats
from tests.support.clock import StillClock

MIB = 1024 * 1024


def finished(**counters: float) -> CleanerStats:
    """
    Two seconds of the first pass, four of the second.
    """
    clock = StillClock()
    stats = CleanerStats(clock)
    clock.advance(2000)
    stats.index_done()
    clock.advance(4000)
    stats.all_done()
    for name, value in counters.items():
        setattr(stats, name, value)
    return stats


def test_cleaning_summary_is_one_line() -> None:
    stats = finished(
        map_bytes_read=100 * MIB,
        map_messages_read=1_000_000,
        bytes_read=200 * MIB,
        messages_read=2_000_000,
        bytes_written=50 * MIB,
        messages_written=500_000,
        buffer_utilization=0.125,
    )

    assert (
        "in 6.0 s: read 100.0 MiB (50.0 MiB/s) of dirty batches with 1,000,000 records, "
        "offset map 12.5% full; rewrote 200.0 MiB (50.0 MiB/s) with 2,000,000 records to 50.0 MiB "
        "with 500,000, 75.0% less"
    ) == str(stats)
    assert (6.0, 2.0, 0.75) == (stats.elapsed_secs, stats.elapsed_index_secs, stats.size_reduction)


def test_records_without_a_key_are_warned_about() -> None:
    assert str(finished(invalid_messages_read=1234)).endswith("; 1,234 records had no key")


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, "0 B"), (1023, "1,023 B"), (1536, "1.5 KiB"), (MIB, "1.0 MiB"), (3000 * MIB, "2.9 GiB")],
)
def test_summary_prints_sizes_in_a_suitable_unit(size: int, expected: str) -> None:
    assert f"to {expected} with" in str(finished(bytes_written=size))


def test_summary_has_no_rate_if_no_time_has_passed() -> None:
    stats = CleanerStats(StillClock())
    stats.bytes_read = 5
    stats.index_done()
    stats.all_done()

    assert "in 0.0 s: read 0 B of dirty batches" in str(stats)
    assert (0.0, 0.0, 1.0) == (stats.elapsed_secs, stats.elapsed_index_secs, stats.size_reduction)
