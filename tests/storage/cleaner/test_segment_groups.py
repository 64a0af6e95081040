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


def groups(made: list[LogSegment], **limits: int) -> list[list[int]]:
    given = {"max_size": PLENTY, "max_index_size": PLENTY, "uncleanable_offset": 1000, **limits}
    found = group_segments_by_size(made, **given)
    return [[segment.base_offset for segment in group] for group in found]


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


@pytest.mark.parametrize(
    ("batches", "uncleanable_offset", "expected"),
    [
        ({0: 1, 1: 1}, INT_MAX + 1, [[0, 1]]),
        ({0: 1, 1: 1}, INT_MAX + 2, [[0], [1]]),
        ({0: 1, 1: 1, INT_MAX + 2: 1}, 2 * INT_MAX, [[0], [1], [INT_MAX + 2]]),
        ({0: 1, 1: 0, INT_MAX + 5: 1}, 2 * INT_MAX, [[0, 1], [INT_MAX + 5]]),
        ({}, INT_MAX, []),
    ],
    ids=["fits", "ends too late", "ends before the next", "an empty one has no offsets", "nothing"],
)
def test_offsets_of_a_group_fit_into_one_index(
    batches: dict[int, int], uncleanable_offset: int, expected: list[list[int]]
) -> None:
    made = segments(**{f"_{base}": count for base, count in batches.items()})

    assert expected == groups(made, uncleanable_offset=uncleanable_offset)
