from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.records.batch import build_batch_with_offsets
from barnabas.protocol.records.record import Record
from tests.support.logs import LogHome, append, append_with_offsets, bases, log_of
from tests.support.segments import FIRST_TIMESTAMP, offset_entries, time_entries

EMPTY_SNAPSHOT = bytes.fromhex("000148674bc700000000")


@pytest.mark.scenario(15)
def test_new_log_has_a_log_file_and_two_preallocated_indexes() -> None:
    home = LogHome()
    log = home.open()
    log.remove_deleted_files()

    assert 0 == len(home.file(0, ".log"))
    assert 10485760 == len(home.file(0, ".index"))
    assert 10485756 == len(home.file(0, ".timeindex"))
    expected = [".index", ".log", ".timeindex"]
    assert [f"{0:020d}{suffix}" for suffix in expected] == home.names()[:3]
    assert ["leader-epoch-checkpoint"] == home.names()[3:]

    log.assign_epoch_start_offset(0, 0)
    path = log.dir / "leader-epoch-checkpoint"
    assert b"0\n1\n0 0\n" == home.files.nodes[path].data


@pytest.mark.scenario(16)
def test_index_interval_of_one_batch_indexes_every_second_batch() -> None:
    home, log = log_of(10, index_interval_bytes=150)
    home.stop(log)

    expected = "000000020000012c 0000000400000258 0000000600000384 00000008000004b0"
    assert bytes.fromhex(expected) == home.file(0, ".index")
    last = [2, 4, 6, 8, 9]
    assert b"".join(
        (FIRST_TIMESTAMP + offset).to_bytes(8) + offset.to_bytes(4) for offset in last
    ) == home.file(0, ".timeindex")


@pytest.mark.scenario(17)
def test_index_interval_restarts_when_a_log_is_opened() -> None:
    home, log = log_of(10, index_interval_bytes=150)
    home.stop(log)

    log = home.open()
    seen = []
    for _ in range(4):
        append(log)
        active = log.active_segment
        seen.append((active.offset_index.entries, active.time_index.entries))

    assert [(4, 5), (4, 5), (5, 6), (5, 6)] == seen


def scenario(number: int, expected: list[int], entries: int, size: int, **config: int) -> Any:
    return pytest.param(expected, entries, size, config, marks=pytest.mark.scenario(number))


@pytest.mark.parametrize(
    ("expected", "entries", "size", "config"),
    [
        scenario(18, [0, 49, 98], 24, 7350, segment_index_bytes=300, index_interval_bytes=150),
        scenario(19, [0, 25, 50, 75], 24, 3750, segment_index_bytes=300, index_interval_bytes=0),
        scenario(19, [0, 25, 50, 75], 24, 3750, segment_index_bytes=300, index_interval_bytes=149),
        scenario(21, [0, 15, 30], 7, 2250, segment_index_bytes=100, index_interval_bytes=150),
        scenario(22, [0, 20], 3, 20000, segment_bytes=20000),
    ],
)
def test_segment_rolls_when_its_log_or_an_index_is_full(
    expected: list[int], entries: int, size: int, config: dict[str, Any]
) -> None:
    home, log = log_of(expected[-1] + 1, size=size // expected[1], **config)

    assert expected == bases(log)
    for segment in log.segments.values()[:-1]:
        assert (size, entries) == (segment.size, segment.offset_index.entries)
        indexed = segment.time_index.entries
        assert entries + ("segment_bytes" in config) == indexed
        assert 8 * entries == len(home.file(segment.base_offset, ".index"))
        assert 12 * indexed == len(home.file(segment.base_offset, ".timeindex"))


@pytest.mark.scenario(20)
def test_constant_timestamp_fills_the_offset_index_first() -> None:
    _, log = log_of(40, timestamp=FIRST_TIMESTAMP, segment_index_bytes=300, index_interval_bytes=0)

    first, active = log.segments.values()
    assert (38, 5700) == (active.base_offset, first.size)
    assert (37, 1) == (first.offset_index.entries, first.time_index.entries)


@pytest.mark.scenario(25)
def test_segment_rolls_when_its_timestamps_span_more_than_segment_ms() -> None:
    log = LogHome(segment_ms=100).open()
    for timestamp in range(1000, 1200, 10):
        append(log, timestamp=timestamp)

    assert [0, 11] == bases(log)


@pytest.mark.scenario(23)
@pytest.mark.scenario(24)
@pytest.mark.parametrize("segment_bytes", [1000, 900])
def test_segment_rolls_before_it_exceeds_segment_bytes(segment_bytes: int) -> None:
    home, log = log_of(20, segment_bytes=segment_bytes)

    assert [0, 6, 12, 18] == bases(log)
    assert 900 == len(home.file(6, ".log"))
    assert 12 == len(home.file(6, ".timeindex"))
    assert b"" == home.file(6, ".index")
    assert EMPTY_SNAPSHOT == home.file(6, ".snapshot")


@pytest.mark.scenario(27)
def test_time_index_has_the_largest_timestamps_so_far() -> None:
    log = LogHome(index_interval_bytes=0).open()
    for timestamp in (100, 50, 200, 150, 200, 300):
        append(log, timestamp=timestamp)

    assert [(100, 0), (200, 2), (300, 5)] == time_entries(log.active_segment)
    assert [(at, at * 150) for at in range(1, 6)] == offset_entries(log.active_segment)


@pytest.mark.scenario(28)
def test_index_has_entries_per_batch_rather_than_per_record() -> None:
    home = LogHome(index_interval_bytes=0)
    log = home.open(log_start_offset=100)
    sizes = []
    for timestamps in ((100, 300, 300), (250, 260)):
        base_offset = log.log_end_offset
        records = [
            Record(base_offset + at, timestamp, b"k", b"v")
            for at, timestamp in enumerate(timestamps)
        ]
        batch = build_batch_with_offsets(records, base_offset=base_offset, partition_leader_epoch=0)
        append_with_offsets(log, memoryview(batch))
        sizes.append(len(batch))

    assert [(104, sizes[0])] == offset_entries(log.active_segment)
    assert [(300, 102)] == time_entries(log.active_segment)


def test_explicit_roll_begins_a_segment_at_the_log_end_offset() -> None:
    home, log = log_of(3)

    segment = log.roll()

    assert [0, 3] == bases(log)
    assert 3 == segment.base_offset
    assert 3 == log.log_end_offset_metadata.segment_base_offset
    assert EMPTY_SNAPSHOT == home.file(3, ".snapshot")


def test_roll_of_an_empty_segment_replaces_it() -> None:
    home = LogHome()
    log = home.open()

    log.roll()

    assert [0] == bases(log)
    assert home.has_file(0, ".log.deleted")
    assert home.has_file(0, ".log")


def test_rolled_segment_is_flushed_in_the_background() -> None:
    _, log = log_of(7, segment_bytes=1000)
    assert 0 == log.recovery_point

    log.remove_deleted_files()

    assert 6 == log.recovery_point


def test_index_of_one_slot_limits_a_segment_to_one_batch() -> None:
    """
    ``segment.index.bytes`` of 12 to 23 has room for one time index entry, which is reserved.
    """
    home, log = log_of(3, segment_index_bytes=23)

    assert [0, 1, 2] == bases(log)
    assert home.has_file(0, ".log.deleted")


def test_preallocated_segment_is_trimmed_when_it_rolls() -> None:
    home, log = log_of(7, segment_bytes=1000, preallocate=True)

    assert (900, 1000) == (len(home.file(0, ".log")), len(home.file(6, ".log")))
    home.stop(log)
    assert 150 == len(home.file(6, ".log"))
