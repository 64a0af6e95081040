"""
A segment that is written to: batches, index entries, the largest timestamp.

The numbers are those that Apache Kafka's own classes gave for the same input.
"""

from __future__ import annotations

import pytest

from barnabas.storage.errors import KafkaStorageError, SegmentOffsetOverflow
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.clock import StillClock
from tests.support.segments import (
    DIRECTORY,
    INDEX,
    LOG,
    TIME_INDEX,
    append_padded,
    offset_entries,
    open_segment,
    padded_batch,
    time_entries,
)


@pytest.mark.scenario(15)
def test_a_new_segment_has_an_empty_log_and_no_other_files() -> None:
    """
    The indexes are made when they are needed: on a roll that is the first append.
    """
    files = MemoryFiles()
    segment = open_segment(files=files)
    assert [LOG.name] == files.names(DIRECTORY)

    append_padded(segment, range(1))

    assert [INDEX.name, LOG.name, TIME_INDEX.name] == files.names(DIRECTORY)
    assert [150, 10_485_760, 10_485_756] == [files.size(path) for path in (LOG, INDEX, TIME_INDEX)]


def test_an_append_of_several_batches_decides_for_each() -> None:
    """
    So that compaction writes the same entries as appends do.
    """
    segment = open_segment(interval=150)
    single = open_segment(interval=150)
    append_padded(single, range(10))

    segment.append(9, memoryview(b"".join(padded_batch(offset) for offset in range(10))))

    assert offset_entries(single) == offset_entries(segment)
    assert time_entries(single) == time_entries(segment)


def test_nothing_appended_is_nothing_done() -> None:
    """
    Not even an index is made.
    """
    files = MemoryFiles()

    open_segment(files=files).append(5, memoryview(b""))

    assert [LOG.name] == files.names(DIRECTORY)


@pytest.mark.scenario(12)
def test_records_without_a_timestamp_leave_no_time_entry() -> None:
    """
    The age of such a segment is that of its file.
    """
    clock = StillClock(5000)
    files = MemoryFiles(clock.now_ms)
    segment = open_segment(files=files, clock=clock, interval=0)

    append_padded(segment, range(3), timestamp=-1)

    assert [] == time_entries(segment)
    assert segment.largest_record_timestamp() is None
    assert 5000 == segment.largest_timestamp() == segment.last_modified()
    segment.close()
    assert 0 == files.size(TIME_INDEX)


def test_the_beginning_of_time_is_a_timestamp() -> None:
    """
    Only -1 means that there is none.
    """
    segment = open_segment(interval=0)

    append_padded(segment, range(2), timestamp=0)

    assert 0 == segment.largest_record_timestamp() == segment.largest_timestamp()
    assert [(0, 0)] == time_entries(segment)


@pytest.mark.scenario(26)
def test_offsets_have_to_fit_an_int32_above_the_base() -> None:
    """
    One more does not fit, and nothing of it is written.
    """
    segment = open_segment(100)
    furthest = 100 + 2**31 - 1
    segment.append(furthest, padded_batch(furthest))

    for offset in (furthest + 1, 99):
        with pytest.raises(SegmentOffsetOverflow) as refusal:
            segment.append(offset, padded_batch(offset))
        error = refusal.value
        assert (segment.log.path, 100, offset) == (error.path, error.base_offset, error.offset)

    assert 150 == segment.size


def test_an_append_that_fails_is_as_if_it_had_not_been() -> None:
    """
    The disk is full in the middle of a batch; when there is room again, all is well.
    """
    files = FailingFiles()
    segment = open_segment(files=files, interval=0)
    append_padded(segment, range(2))
    files.fail(only=frozenset({"write"}), written=70)

    with pytest.raises(KafkaStorageError):
        append_padded(segment, range(2, 3))

    assert 300 == segment.size
    assert segment.translate_offset(2) is None
    append_padded(segment, range(2, 4))
    assert [(1, 150), (2, 300), (3, 450)] == offset_entries(segment)
    assert [0, 1, 2, 3] == [batch.base_offset for batch in segment.log.batches()]
