from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.errors import CorruptIndex, InvalidOffset
from barnabas.storage.index.time_index import TimeIndex, TimestampOffset
from barnabas.testing.disks.memory import MemoryFiles

D = Path("/data")
PATH = D / "00000000000000000100.timeindex"


def index_with(
    *entries: tuple[int, int], files: MemoryFiles | None = None, size: int = 61_000
) -> TimeIndex:
    files = files or MemoryFiles()
    files.make_directory(D)
    index = TimeIndex.open(files, PATH, 100, size)
    for entry in entries:
        index.maybe_append(*entry)
    return index


def test_neither_timestamps_nor_offsets_may_decrease() -> None:
    index = index_with((100, 105))

    with pytest.raises(InvalidOffset, match=r"an offset \(104\) to slot 1 no larger"):
        index.maybe_append(200, 104)
    with pytest.raises(ValueError, match=r"a timestamp \(99\) to slot 1 no larger"):
        index.maybe_append(99, 106)
    index.maybe_append(200, 105)

    assert 2 == index.entries


def test_last_slot_is_reserved_for_the_final_entry() -> None:
    """
    It is written when the segment is rolled or closed.
    """
    index = index_with((100, 101), (200, 102), size=36)

    assert index.is_full
    assert 2 == index.entries
    with pytest.raises(ValueError, match="full time index"):
        index.maybe_append(300, 103)
    index.maybe_append(300, 103, skip_full_check=True)
    assert TimestampOffset(300, 103) == index.last_entry


def test_final_entry_fits_after_segment_index_bytes_was_lowered() -> None:
    index = index_with((100, 101), (200, 102), (300, 103))
    index.resize(0)

    index.maybe_append(400, 104, skip_full_check=True)

    assert [101, 102, 103, 104] == [index.entry(slot).offset for slot in range(index.entries)]
    assert 48 == index.length


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("00000000000000c8 00000001 0000000000000064 00000002", "last timestamp is 100"),
        ("00000000000000c8 ffffffff", "last offset is 99 which is less than the first offset 100"),
    ],
    ids=["timestamps decrease", "offset below the base"],
)
def test_time_index_that_contradicts_itself_is_corrupt(content: str, sentence: str) -> None:
    files = MemoryFiles()
    files.make_directory(D)
    files.write_atomically(PATH, bytes.fromhex(content))

    with pytest.raises(CorruptIndex, match=sentence):
        index_with(files=files).sanity_check()
    index_with((100, 101), (200, 103)).sanity_check()
    index_with().sanity_check()


@given(st.sets(st.integers(0, 5000)).map(sorted), st.integers(-1, 6000), st.integers(0, 200))
def test_lookups_agree_with_a_plain_list(timestamps: list[int], target: int, end: int) -> None:
    files = MemoryFiles()
    entries = [(-1, 100), *((timestamp, 100 + at) for at, timestamp in enumerate(timestamps))]
    index_with(*entries, files=files).close()

    index = index_with(files=files)

    assert [entry for entry in entries if entry[0] <= target][-1] == tuple(index.lookup(target))
    index.truncate_to(end)
    kept = [entry for entry in entries if entry[1] < end or entry[0] < 0]
    assert kept[-1] == tuple(index.last_entry)
