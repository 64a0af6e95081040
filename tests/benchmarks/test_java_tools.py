from __future__ import annotations

from benchmarks import java_tools

PRODUCED = """\
8000 records sent, 2000.5 records/sec (0.19 MB/sec), 30.0 ms avg latency, 900.00 ms max latency, \
20 ms 50th, 400 ms 95th, 850 ms 99th, 890 ms 99.9th.
5000 steady state records sent, 1999.2 records/sec (0.19 MB/sec), 1.2 ms avg latency, \
30.00 ms max latency, 1 ms 50th, 3 ms 95th, 7 ms 99th, 21 ms 99.9th.
"""
CONSUMED = (
    "2026-01-31 12:00:00:000, 2026-01-31 12:00:04:000, 976.5625, 244.1406, 1000000, 250000.0, "
    "3000, 1000, 976.5625, 1000000.0\n"
)

SHARED = (
    "2026-01-31 12:00:00:000, 2026-01-31 12:00:04:000, 190.7349, 47.6837, 500000.0, 2000000, 4000\n"
)


def test_warm_up_is_excluded_from_the_produced_records() -> None:
    assert {"per_second": 1999.2} == java_tools.parse_produced(PRODUCED)


def test_time_to_join_the_group_is_excluded_for_consumers() -> None:
    assert {"records": 1_000_000, "seconds": 1.0} == java_tools.parse_consumed(CONSUMED)


def test_time_to_join_the_group_is_included_for_share_consumers() -> None:
    assert {"records": 2_000_000, "seconds": 4.0} == java_tools.parse_shared(SHARED)
