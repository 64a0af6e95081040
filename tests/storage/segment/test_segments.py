from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.segment.segments import LogSegments
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.segments import append_padded, open_segment


def segments_of(*bases: int, files: MemoryFiles | None = None) -> LogSegments:
    files = files or MemoryFiles()
    segments = LogSegments("t-0")
    for base in bases:
        segments.add(open_segment(base, files=files))
    return segments


def base(segment: LogSegment | None) -> int | None:
    return None if segment is None else segment.base_offset


def bases(found: tuple[LogSegment, ...]) -> list[int]:
    return [segment.base_offset for segment in found]


def test_empty_segment_list_is_valid() -> None:
    """
    A log has none while it is being loaded.
    """
    segments = segments_of()

    assert segments.is_empty
    for nothing in (segments.last_segment, segments.first_segment_base_offset):
        assert nothing is None
    for search in (segments.floor_segment, segments.higher_segment, segments.lower_segment):
        assert search(0) is None
    assert () == segments.values_between(0, 10)
    assert 0 == segments.size_in_bytes


def test_added_segment_replaces_and_returns_one_with_the_same_base_offset() -> None:
    segments = segments_of(0, 10)
    old, new = segments.get(10), open_segment(10)

    assert old is segments.add(new)
    assert new is segments.get(10)
    assert segments.add(open_segment(20)) is None
    assert (0, 10, 20) == segments.base_offsets


def test_segments_are_removed_by_base_offset() -> None:
    segments = segments_of(0, 10, 20)

    segments.remove(10)
    segments.remove(11)

    assert (0, 20) == segments.base_offsets
    assert segments.contains(20)
    assert not segments.contains(10)
    segments.clear()
    assert segments.is_empty


def test_reader_sees_a_consistent_snapshot_of_all_segments() -> None:
    segments = segments_of(0, 10, 20)
    seen = segments.values()

    segments.replace(seen[:2], [open_segment(0)])

    assert [0, 10, 20] == bases(seen)
    assert (0, 20) == segments.base_offsets
    assert seen[0] is not segments.get(0)


@given(st.sets(st.integers(0, 40), min_size=1), st.integers(-1, 42), st.integers(-1, 42))
def test_segment_searches_agree_with_a_linear_search(
    offsets: set[int], start: int, end: int
) -> None:
    segments = segments_of(*offsets)
    ordered = sorted(offsets)
    below, above = ([at for at in ordered if at < start], [at for at in ordered if at > start])
    floor = start if start in offsets else max(below, default=None)

    assert ordered == list(segments.base_offsets) == bases(segments.values())
    assert len(ordered) == segments.number_of_segments
    assert ordered[0] == segments.first_segment_base_offset
    assert ordered[-1] == base(segments.last_segment) == base(segments.active_segment)
    assert floor == base(segments.floor_segment(start))
    assert max(below, default=None) == base(segments.lower_segment(start))
    assert min(above, default=None) == base(segments.higher_segment(start))
    assert above == bases(segments.higher_segments(start))
    if start < end:
        expected = [at for at in ordered if (start if floor is None else floor) <= at < end]
        assert expected == bases(segments.values_between(start, end))


def test_empty_range_has_no_segments_and_a_reversed_one_is_an_error() -> None:
    segments = segments_of(0, 10)

    assert () == segments.values_between(10, 10)
    with pytest.raises(ValueError, match="from offset 10 which is greater than limit offset 9"):
        segments.values_between(10, 9)


def test_segment_sizes_are_summed_and_segments_filtered() -> None:
    segments = segments_of(0, 10)
    first, second = segments.values()
    append_padded(first, range(2))
    append_padded(second, range(10, 13))

    assert 750 == segments.size_in_bytes
    assert [second] == segments.filter(lambda segment: segment.size > 300)


def test_close_continues_after_an_error() -> None:
    files = FailingFiles()
    segments = segments_of(0, 10, files=files)
    for segment in segments.values():
        append_padded(segment, range(segment.base_offset, segment.base_offset + 1))
    files.fail(only=frozenset({"sync"}))

    with pytest.raises(KafkaStorageError, match=r"00000000000000000000\.log"):
        segments.close()

    assert 12 == files.size(segments.active_segment.time_index.path)
    segments.close_handlers()
