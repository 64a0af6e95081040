"""
When an append begins a new segment.

The numbers are those that Apache Kafka's own classes gave for the same input.
"""

from __future__ import annotations

import pytest

from barnabas.storage.log.rolling import (
    RollParams,
    RollReason,
    SegmentEnd,
    SegmentRoom,
    reason_to_roll,
    room_in,
)
from barnabas.storage.segment.segment import LogSegment
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.clock import StillClock
from tests.support.segments import (
    FIRST_TIMESTAMP,
    append_padded,
    batch_of,
    open_segment,
)

OFFSETS, TIMES = RollReason.OFFSET_INDEX_FULL, RollReason.TIME_INDEX_FULL


def roll_params(
    offset: int,
    *,
    timestamp: int | None = None,
    size: int = 150,
    segment_bytes: int = 1 << 30,
    segment_ms: int = 7 * 86_400_000,
    now: int = FIRST_TIMESTAMP,
) -> RollParams:
    """
    What there is to know about the padded batch of *offset*.
    """
    return RollParams(
        max_segment_ms=segment_ms,
        max_segment_bytes=segment_bytes,
        max_timestamp_in_messages=FIRST_TIMESTAMP + offset if timestamp is None else timestamp,
        max_offset_in_messages=offset,
        messages_size=size,
        now=now,
    )


def rolls(segment: LogSegment, params: RollParams) -> RollReason | None:
    return reason_to_roll(SegmentEnd.of(segment), params)


def room_of(segment: LogSegment, params: RollParams) -> SegmentRoom:
    return room_in(SegmentEnd.of(segment), params)


def test_segment_without_timestamps_rolls_by_the_clock() -> None:
    """
    Counted from when it was opened. An empty segment does not roll by time.
    """
    clock = StillClock(1000)
    segment = open_segment(clock=clock)
    assert not rolls(segment, roll_params(0, timestamp=-1, segment_ms=100, now=9999))
    append_padded(segment, range(1), timestamp=-1)

    assert not rolls(segment, roll_params(1, timestamp=-1, segment_ms=100, now=1100))
    assert rolls(segment, roll_params(1, timestamp=10**15, segment_ms=100, now=1101))
    assert 2**63 - 1 == segment.first_batch_timestamp()


def test_first_timestamp_of_a_reopened_segment_is_that_of_its_first_batch() -> None:
    files = MemoryFiles()
    segment = open_segment(files=files)
    segment.append(1, batch_of(0, [700, 500]))
    segment.append(2, batch_of(2, [900]))

    segment = open_segment(files=files)

    assert 700 == segment.first_batch_timestamp()
    assert 300 == SegmentEnd.of(segment).waited_ms(0, 1000)


@pytest.mark.scenario(26)
@pytest.mark.parametrize("jitter_ms", [0, 7])
def test_segment_rolls_exactly_beyond_each_limit(jitter_ms: int) -> None:
    segment = open_segment(100, jitter_ms=jitter_ms)
    append_padded(segment, range(100, 103), timestamp=1000)
    limits = {"segment_bytes": 1000, "segment_ms": 50}

    room = room_of(segment, roll_params(0, **limits))

    def reason(**more: int) -> RollReason | None:
        given = {"offset": 103, "timestamp": 1000, **limits, **more}
        return rolls(segment, roll_params(**given))

    assert 550 == room.size_bytes
    assert [None, RollReason.SIZE] == [reason(size=550), reason(size=551)]
    latest = room.latest_timestamp
    assert latest == 1050 - jitter_ms
    assert [None, RollReason.TIME] == [reason(timestamp=latest), reason(timestamp=latest + 1)]
    last = room.last_offset
    assert 100 + 2**31 - 1 == last
    assert [None, RollReason.OFFSET_OVERFLOW] == [reason(offset=last), reason(offset=last + 1)]
    assert RollReason.OFFSET_OVERFLOW is reason(offset=99)


@pytest.mark.parametrize(("timestamp", "reason"), [(None, TIMES), (FIRST_TIMESTAMP, OFFSETS)])
def test_full_index_rolls_the_segment(timestamp: int | None, reason: RollReason) -> None:
    segment = open_segment(index_bytes=300, interval=0)
    params = roll_params(0)
    offset = 0
    while rolls(segment, roll_params(offset, timestamp=timestamp)) is None:
        room = room_of(segment, params)
        assert room.offset_entries > 0
        assert room.time_entries > 0
        append_padded(segment, range(offset, offset + 1), timestamp=timestamp)
        offset += 1

    room = room_of(segment, params)

    assert 0 == (room.offset_entries if reason is OFFSETS else room.time_entries)
    assert reason is rolls(segment, roll_params(offset, timestamp=timestamp))


@pytest.mark.parametrize("batches", [0, 1])
def test_missing_timestamps_never_roll_by_time(batches: int) -> None:
    segment = open_segment()
    append_padded(segment, range(batches), timestamp=-1)

    assert room_of(segment, roll_params(0)).latest_timestamp is None
