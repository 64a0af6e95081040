"""
A segment that is written to: batches, index entries, the largest timestamp.

The numbers are those that Apache Kafka's own classes gave for the same input.
"""

from __future__ import annotations

import pytest

from barnabas.storage.errors import KafkaStorageError, SegmentOffsetOverflow
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.segments import (
    DIRECTORY,
    LOG,
    append_padded,
    offset_entries,
    open_segment,
    padded_batch,
    time_entries,
)


def test_append_of_several_batches_indexes_each_of_them() -> None:
    segment = open_segment(interval=150)
    single = open_segment(interval=150)
    append_padded(single, range(10))

    segment.append(9, memoryview(b"".join(padded_batch(offset) for offset in range(10))))

    assert offset_entries(single) == offset_entries(segment)
    assert time_entries(single) == time_entries(segment)


def test_empty_append_creates_no_index() -> None:
    files = MemoryFiles()

    open_segment(files=files).append(5, memoryview(b""))

    assert [LOG.name] == files.names(DIRECTORY)


def test_timestamp_0_is_a_valid_timestamp() -> None:
    segment = open_segment(interval=0)

    append_padded(segment, range(2), timestamp=0)

    assert 0 == segment.largest_record_timestamp() == segment.largest_timestamp()
    assert [(0, 0)] == time_entries(segment)


@pytest.mark.scenario(26)
def test_offsets_must_fit_an_int32_above_the_base_offset() -> None:
    segment = open_segment(100)
    furthest = 100 + 2**31 - 1
    segment.append(furthest, padded_batch(furthest))

    for offset in (furthest + 1, 99):
        with pytest.raises(SegmentOffsetOverflow) as refusal:
            segment.append(offset, padded_batch(offset))
        error = refusal.value
        assert (segment.log.path, 100, offset) == (error.path, error.base_offset, error.offset)

    assert 150 == segment.size


def test_failed_append_can_be_retried() -> None:
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
