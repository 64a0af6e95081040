from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import UnknownServerError
from barnabas.storage.segment.fetch_data import FetchDataInfo
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.segments import (
    DIRECTORY,
    append_padded,
    batch_of,
    open_segment,
    padded_batch,
)


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize(
    ("start", "max_size", "min_one", "size", "incomplete"),
    [
        (0, 100, True, 150, False),
        (0, 100, False, 100, True),
        (2, 300, False, 300, False),
        (2, 299, False, 299, False),
        (2, 0, True, 150, False),
        (2, 0, False, 0, False),
        (4, 1000, False, 150, False),
        (4, 10, True, 150, False),
        (4, 10, False, 10, True),
    ],
)
@pytest.mark.scenario(31)
def test_read_is_limited_by_size(
    *, start: int, max_size: int, min_one: bool, size: int, incomplete: bool, reopened: bool
) -> None:
    files = MemoryFiles()
    segment = open_segment(files=files)
    append_padded(segment, range(5))
    if reopened:
        segment = open_segment(files=files)

    info = segment.read(start, max_size, segment.size, min_one_message=min_one)

    assert info is not None
    assert LogOffsetMetadata(start, 0, 150 * start) == info.fetch_offset_metadata
    data = b"" if info.records is None else info.records.read()
    whole = b"".join(padded_batch(offset) for offset in range(start, 5))
    assert whole[:size] == bytes(data)
    assert incomplete == info.first_entry_incomplete


def test_read_ends_at_the_high_watermark() -> None:
    """
    If its position is unknown, nothing is read.
    """
    segment = open_segment()
    append_padded(segment, range(5))

    info = segment.read(1, 10_000, 450)
    assert info is not None
    assert info.records is not None
    assert (150, 300) == (info.records.position, info.records.size)
    assert isinstance(nothing := segment.read(1, 10_000, None), FetchDataInfo)
    assert nothing.records is None
    with pytest.raises(UnknownServerError, match="cannot have -1 bytes"):
        segment.read(1, -1, 450)
    assert segment.read(5, 100, segment.size) is None


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(100, 400)), min_size=1),
    st.booleans(),
)
def test_offset_translation_agrees_with_a_scan(
    batches: list[tuple[int, int, int]], reopened: bool
) -> None:
    files = MemoryFiles()
    segment = open_segment(10, files=files, interval=300, index_bytes=30_000)
    placed: list[tuple[int, int, int, int]] = []
    offset, position = 10, 0
    for count, gap, _ in batches:
        offset += gap
        batch = batch_of(offset, [1] * count)
        segment.append(offset + count - 1, batch)
        placed.append((offset, offset + count - 1, position, len(batch)))
        offset, position = offset + count, position + len(batch)
    if reopened:
        segment.close()
        segment = open_segment(10, files=files, index_bytes=30_000)

    for target in range(8, offset + 3):
        expected = next(((b, p, s) for b, last, p, s in placed if last >= target), None)
        assert expected == segment.translate_offset(target)
    assert offset == segment.read_next_offset()


def test_next_offset_of_an_empty_segment_is_its_base_offset() -> None:
    files = MemoryFiles()
    assert 100 == open_segment(100, files=files).read_next_offset()
    files.open(DIRECTORY / "00000000000000000100.log").append(padded_batch(100)[:100])
    assert 100 == open_segment(100, files=files).read_next_offset()
