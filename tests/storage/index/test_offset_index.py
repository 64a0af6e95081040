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


def index_with(
    *entries: tuple[int, int], files: MemoryFiles | None = None, size: int = 40_000
) -> OffsetIndex:
    files = files or MemoryFiles()
    files.make_directory(D)
    index = OffsetIndex.open(files, PATH, 100, size)
    for entry in entries:
        index.append(*entry)
    return index


def test_end_of_a_read_is_bounded_by_the_first_entry_at_or_behind_its_last_byte() -> None:
    index = index_with((104, 300), (108, 600), (110, 900), (112, 1200))

    assert [(104, 300), (108, 600), (112, 1200), None] == [
        index.fetch_upper_bound_offset(OffsetPosition(100, 100), size)
        for size in (100, 500, 900, 1200)
    ]


def test_offsets_must_increase() -> None:
    index = index_with((100, 5))

    with pytest.raises(InvalidOffset, match="an offset 100 to position 1 no larger") as refusal:
        index.append(100, 10)

    assert 100 == refusal.value.offset
    assert 1 == index.entries


def test_append_to_a_full_index_is_an_error() -> None:
    index = index_with((101, 1), (102, 2), size=20)

    assert index.is_full
    with pytest.raises(ValueError, match="full index"):
        index.append(103, 3)


def test_index_whose_last_offset_is_below_the_base_is_corrupt() -> None:
    files = MemoryFiles()
    files.make_directory(D)
    files.write_atomically(PATH, bytes.fromhex("ffffffff 00000000"))

    with pytest.raises(CorruptIndex, match="last offset is 99 which is less than the base offset"):
        index_with(files=files).sanity_check()
    index_with((104, 300)).sanity_check()
    index_with().sanity_check()


@given(st.sets(st.integers(100, 5000)).map(sorted), st.integers(0, 6000), st.integers(0, 6000))
def test_lookups_agree_with_a_plain_list(offsets: list[int], target: int, end: int) -> None:
    files = MemoryFiles()
    entries = [(offset, at) for at, offset in enumerate(offsets)]
    index_with(*entries, files=files).close()

    index = index_with(files=files)

    below = [(100, 0), *(entry for entry in entries if entry[0] <= target)]
    assert below[-1] == tuple(index.lookup(target))
    assert entries == [tuple(index.entry(slot)) for slot in range(index.entries)]
    index.truncate_to(end)
    assert [100, *(offset for offset in offsets if offset < end)][-1] == index.last_offset
