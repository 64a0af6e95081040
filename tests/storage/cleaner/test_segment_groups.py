"""
Which segments become one.
"""

from __future__ import annotations

import pytest

from barnabas.storage.cleaner.segment_groups import group_segments_by_size
from barnabas.storage.segment.segment import LogSegment
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.clock import StillClock
from tests.support.segments import DIRECTORY, Config, padded_batch

INT_MAX = 2**31 - 1
PLENTY = 1 << 30


def segments(**batches: int) -> list[LogSegment]:
    """
    Segments by their base offsets, as in ``_0=3``, with so many batches of 150 bytes, of which each
    but the first of a segment has entries in the indexes.
    """
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    made = []
    for name, count in batches.items():
        base_offset = int(name[1:])
        config = Config(index_interval_bytes=0)
        segment = LogSegment(DIRECTORY, base_offset, config, StillClock(), files=files)
        for offset in range(base_offset, base_offset + count):
            segment.append(offset, padded_batch(offset))
        segment.on_become_inactive_segment()
        made.append(segment)
    return made


def groups(
    made: list[LogSegment],
    *,
    max_size: int = PLENTY,
    max_index_size: int = PLENTY,
    uncleanable_offset: int = 1000,
) -> list[list[int]]:
    found = group_segments_by_size(
        made,
        max_size=max_size,
        max_index_size=max_index_size,
        uncleanable_offset=uncleanable_offset,
    )
    return [[segment.base_offset for segment in group] for group in found]


def test_no_segments_make_no_groups() -> None:
    assert [] == groups([])


@pytest.mark.parametrize(
    ("max_size", "expected"),
    [
        (750, [[0, 3], [5, 6]]),
        (749, [[0], [3, 5, 6]]),
        (450, [[0], [3, 5], [6]]),
        (1, [[0], [3], [5], [6]]),
    ],
)
def test_batches_of_a_group_fit_into_one_segment(max_size: int, expected: list[list[int]]) -> None:
    """
    A segment that is already too large forms a group of its own.
    """
    assert expected == groups(segments(_0=3, _3=2, _5=1, _6=1), max_size=max_size)


@pytest.mark.parametrize(
    ("max_index_size", "expected"),
    [(84, [[0, 4, 8]]), (83, [[0, 4], [8]]), (35, [[0], [4], [8]])],
)
def test_index_entries_of_a_group_fit_into_one_index(
    max_index_size: int, expected: list[list[int]]
) -> None:
    """
    The time index decides, as its entries are larger: four entries in the first group, including
    the final one.
    """
    made = segments(_0=4, _4=4, _8=1)
    assert [24, 24, 0] == [segment.offset_index.size_in_bytes for segment in made]
    assert [36, 36, 12] == [segment.time_index.size_in_bytes for segment in made]

    assert expected == groups(made, max_index_size=max_index_size)


def test_offsets_of_a_group_fit_into_one_index() -> None:
    made = segments(_0=1, _1=1)

    assert [[0, 1]] == groups(made, uncleanable_offset=INT_MAX + 1)
    assert [[0], [1]] == groups(made, uncleanable_offset=INT_MAX + 2)


def test_last_offset_of_a_segment_is_known_from_the_next_segment() -> None:
    made = segments(**{"_0": 1, "_1": 1, f"_{INT_MAX + 2}": 1})

    assert [[0], [1], [INT_MAX + 2]] == groups(made, uncleanable_offset=2 * INT_MAX)


def test_empty_segment_has_no_offsets_and_fits_into_any_group() -> None:
    made = segments(**{"_0": 1, "_1": 0, f"_{INT_MAX + 5}": 1})

    assert [[0, 1], [INT_MAX + 5]] == groups(made, uncleanable_offset=2 * INT_MAX)
