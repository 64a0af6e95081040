"""
The offset index.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.errors import CorruptIndex, InvalidOffset
from barnabas.storage.index.offset_index import OffsetIndex, OffsetPosition
from barnabas.testing.disks.memory import MemoryFiles

D = Path("/data")
PATH = D / "00000000000000000100.index"


def index_with(*entries: tuple[int, int], size: int = 4096) -> OffsetIndex:
    files = MemoryFiles()
    files.make_directory(D)
    index = OffsetIndex.open(files, PATH, 100, size)
    for entry in entries:
        index.append(*entry)
    return index


def test_offset_index_entry_is_eight_bytes() -> None:
    """
    Relative offset and position.
    """
    files = MemoryFiles()
    files.make_directory(D)
    index = OffsetIndex.open(files, PATH, 100, 80)

    index.append(104, 87)
    index.close()

    assert bytes.fromhex("00000004 00000057") == files.read_bytes(PATH)


def test_offset_lookup_finds_the_last_entry_not_above_the_offset() -> None:
    """
    Without one, the beginning of the segment.
    """
    index = index_with((104, 300), (108, 600), (110, 900))

    assert [(100, 0), (100, 0), (104, 300), (104, 300), (108, 600), (110, 900)] == [
        tuple(index.lookup(offset)) for offset in (0, 103, 104, 107, 109, 2**40)
    ]


def test_end_of_a_read_is_bounded_by_the_first_entry_at_or_behind_its_last_byte() -> None:
    index = index_with((104, 300), (108, 600), (110, 900), (112, 1200))

    assert [(104, 300), (108, 600), (112, 1200), None] == [
        index.fetch_upper_bound_offset(OffsetPosition(100, 100), size)
        for size in (100, 500, 900, 1200)
    ]


def test_offsets_must_increase() -> None:
    """
    The first may equal the base offset.
    """
    index = index_with((100, 5))

    with pytest.raises(InvalidOffset, match="an offset 100 to position 1 no larger") as refusal:
        index.append(100, 10)

    assert 100 == refusal.value.offset
    assert 1 == index.entries


def test_append_to_a_full_index_is_an_error() -> None:
    """
    The caller must check for a full index before.
    """
    index = index_with((101, 1), (102, 2), size=20)

    assert index.is_full
    with pytest.raises(ValueError, match="full index"):
        index.append(103, 3)


def test_offset_too_far_from_the_base_offset_is_an_error() -> None:
    """
    The segment must be rolled before.
    """
    index = index_with()
    index.append(100 + 2**31 - 1, 1)

    with pytest.raises(ValueError, match="Integer overflow"):
        index.append(100 + 2**31, 2)


def test_last_offset_is_that_of_the_last_entry() -> None:
    """
    Also after opening and truncating; the base offset if there is no entry.
    """
    index = index_with((104, 300), (108, 600))

    assert 108 == index.last_offset
    index.truncate_to(108)
    assert 104 == index.last_offset
    index.truncate()
    assert 100 == index.last_offset


def test_index_whose_last_offset_is_below_the_base_is_corrupt() -> None:
    files = MemoryFiles()
    files.make_directory(D)
    files.write_atomically(PATH, bytes.fromhex("ffffffff 00000000"))
    index = OffsetIndex.open(files, PATH, 100, 80)

    with pytest.raises(CorruptIndex, match="last offset is 99 which is less than the base offset"):
        index.sanity_check()
    index_with((104, 300)).sanity_check()
    index_with().sanity_check()


@given(st.sets(st.integers(100, 5000)).map(sorted), st.integers(0, 6000))
def test_lookups_agree_with_a_plain_list(offsets: list[int], target: int) -> None:
    """
    For any entries and any offset, also in a reopened index.
    """
    files = MemoryFiles()
    files.make_directory(D)
    index = OffsetIndex.open(files, PATH, 100, 40_000)
    for position, offset in enumerate(offsets):
        index.append(offset, position)
    index.close()
    index = OffsetIndex.open(files, PATH, 100, 40_000)

    below = [(offset, at) for at, offset in enumerate(offsets) if offset <= target]
    assert (below[-1] if below else (100, 0)) == tuple(index.lookup(target))
    assert offsets == [index.entry(slot).offset for slot in range(index.entries)]
