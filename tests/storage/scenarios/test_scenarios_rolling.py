"""
Index entries, and where segments end, as seen in the files of a log.
"""

from __future__ import annotations

import pytest

from barnabas.protocol.records.batch import build_batch_with_offsets
from barnabas.protocol.records.record import Record
from barnabas.storage.log.log import Log
from tests.support.logs import LogHome, append, append_with_offsets, bases
from tests.support.segments import FIRST_TIMESTAMP, offset_entries, time_entries

EMPTY_SNAPSHOT = bytes.fromhex("000148674bc700000000")
LARGEST = 2**31 - 1


def entry_counts(log: Log) -> list[tuple[int, int]]:
    """
    How many entries the indexes of the rolled segments have.
    """
    return [
        (segment.offset_index.entries, segment.time_index.entries)
        for segment in log.segments.values()[:-1]
    ]


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
    home = LogHome(index_interval_bytes=150)
    log = home.open()
    append(log, 10)
    home.stop(log)

    expected = "000000020000012c 0000000400000258 0000000600000384 00000008000004b0"
    assert bytes.fromhex(expected) == home.file(0, ".index")
    last = [2, 4, 6, 8, 9]
    assert b"".join(
        (FIRST_TIMESTAMP + offset).to_bytes(8) + offset.to_bytes(4) for offset in last
    ) == home.file(0, ".timeindex")


@pytest.mark.scenario(17)
def test_index_interval_restarts_when_a_log_is_opened() -> None:
    home = LogHome(index_interval_bytes=150)
    log = home.open()
    append(log, 10)
    home.stop(log)

    log = home.open()
    seen = []
    for _ in range(4):
        append(log)
        active = log.active_segment
        seen.append((active.offset_index.entries, active.time_index.entries))

    assert [(4, 5), (4, 5), (5, 6), (5, 6)] == seen


@pytest.mark.scenario(18)
def test_full_time_index_rolls_the_segment() -> None:
    home = LogHome(segment_index_bytes=300, index_interval_bytes=150)
    log = home.open()
    append(log, 200)

    assert [0, 49, 98, 147, 196] == bases(log)
    assert [(24, 24)] * 4 == entry_counts(log)
    assert {7350} == {segment.size for segment in log.segments.values()[:-1]}
    assert (192, 288) == (len(home.file(49, ".index")), len(home.file(49, ".timeindex")))
    assert (49 + 2, 300) == offset_entries(log.segments.values()[1])[0]


@pytest.mark.scenario(19)
@pytest.mark.parametrize("interval", [0, 149])
def test_index_interval_below_a_batch_indexes_every_batch(interval: int) -> None:
    log = LogHome(segment_index_bytes=300, index_interval_bytes=interval).open()
    append(log, 80)

    assert [0, 25, 50, 75] == bases(log)
    assert [(24, 24)] * 3 == entry_counts(log)
    assert {3750} == {segment.size for segment in log.segments.values()[:-1]}


@pytest.mark.scenario(20)
def test_constant_timestamp_fills_the_offset_index_first() -> None:
    log = LogHome(segment_index_bytes=300, index_interval_bytes=0).open()
    append(log, 40, timestamp=FIRST_TIMESTAMP)

    assert [0, 38] == bases(log)
    assert [(37, 1)] == entry_counts(log)
    assert 5700 == log.segments.values()[0].size


@pytest.mark.scenario(21)
def test_smaller_indexes_fill_earlier() -> None:
    home = LogHome(segment_index_bytes=100, index_interval_bytes=150)
    log = home.open()
    append(log, 50)

    assert [0, 15, 30, 45] == bases(log)
    assert [(7, 7)] * 3 == entry_counts(log)
    assert (56, 84) == (len(home.file(15, ".index")), len(home.file(15, ".timeindex")))


@pytest.mark.scenario(22)
def test_segment_may_have_exactly_segment_bytes() -> None:
    log = LogHome(segment_bytes=20000).open()
    append(log, 25, size=1000)

    assert [0, 20] == bases(log)
    first = log.segments.values()[0]
    assert 20000 == first.size
    assert [(5, 5000), (10, 10000), (15, 15000)] == offset_entries(first)


@pytest.mark.scenario(23)
@pytest.mark.scenario(24)
@pytest.mark.parametrize("segment_bytes", [1000, 900])
def test_segment_rolls_before_it_exceeds_segment_bytes(segment_bytes: int) -> None:
    home = LogHome(segment_bytes=segment_bytes)
    log = home.open()
    append(log, 20)

    assert [0, 6, 12, 18] == bases(log)
    assert 900 == len(home.file(6, ".log"))
    assert 12 == len(home.file(6, ".timeindex"))
    assert b"" == home.file(6, ".index")
    assert EMPTY_SNAPSHOT == home.file(6, ".snapshot")


@pytest.mark.scenario(25)
def test_segment_rolls_when_its_timestamps_span_more_than_segment_ms() -> None:
    log = LogHome(segment_ms=100).open()
    for timestamp in range(1000, 1200, 10):
        append(log, timestamp=timestamp)

    assert [0, 11] == bases(log)


@pytest.mark.scenario(26)
@pytest.mark.parametrize(
    ("last_offset", "expected"), [(100 + LARGEST, [100]), (100 + LARGEST + 1, [100, 200])]
)
def test_offsets_of_a_segment_fit_into_31_bits(last_offset: int, expected: list[int]) -> None:
    log = LogHome().open(log_start_offset=100)
    append(log)
    record = Record(last_offset, FIRST_TIMESTAMP, b"k", b"v")
    batch = build_batch_with_offsets([record], base_offset=200, partition_leader_epoch=0)

    append_with_offsets(log, memoryview(batch))

    assert expected == bases(log)
    assert last_offset + 1 == log.log_end_offset


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


@pytest.mark.scenario(29)
def test_truncation_truncates_log_and_indexes() -> None:
    home = LogHome(index_interval_bytes=0)
    log = home.open()
    append(log, 5)

    assert log.truncate_to(3)

    assert 450 == log.size
    assert 3 == log.log_end_offset == log.high_watermark
    assert [(1, 150), (2, 300)] == offset_entries(log.active_segment)
    assert 10485760 == len(home.file(0, ".index"))
    append(log)
    assert 4 == log.log_end_offset


def test_explicit_roll_begins_a_segment_at_the_log_end_offset() -> None:
    home = LogHome()
    log = home.open()
    append(log, 3)

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
    log = LogHome(segment_bytes=1000).open()
    append(log, 7)
    assert 0 == log.recovery_point

    log.remove_deleted_files()

    assert 6 == log.recovery_point


def test_index_of_one_slot_limits_a_segment_to_one_batch() -> None:
    """
    ``segment.index.bytes`` of 12 to 23 has room for one time index entry, which is reserved.
    """
    home = LogHome(segment_index_bytes=23)
    log = home.open()
    append(log, 3)

    assert [0, 1, 2] == bases(log)
    assert home.has_file(0, ".log.deleted")


def test_preallocated_segment_is_trimmed_when_it_rolls() -> None:
    home = LogHome(segment_bytes=1000, preallocate=True)
    log = home.open()
    append(log, 7)

    assert (900, 1000) == (len(home.file(0, ".log")), len(home.file(6, ".log")))
    home.stop(log)
    assert 150 == len(home.file(6, ".log"))
