"""
The time index.
"""

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


def index_with(*entries: tuple[int, int], size: int = 4096) -> TimeIndex:
    files = MemoryFiles()
    files.make_directory(D)
    index = TimeIndex.open(files, PATH, 100, size)
    for entry in entries:
        index.maybe_append(*entry)
    return index


def test_time_index_entry_is_twelve_bytes() -> None:
    """
    Timestamp and relative offset.
    """
    files = MemoryFiles()
    files.make_directory(D)
    index = TimeIndex.open(files, PATH, 100, 120)

    index.maybe_append(300, 102)
    index.close()

    assert bytes.fromhex("000000000000012c 00000002") == files.read_bytes(PATH)


def test_time_lookup_finds_the_last_entry_that_is_not_later() -> None:
    """
    Without one, no timestamp and the base offset.
    """
    index = index_with((100, 101), (200, 103), (300, 105))

    assert [(-1, 100), (100, 101), (100, 101), (200, 103), (300, 105)] == [
        tuple(index.lookup(timestamp)) for timestamp in (99, 100, 199, 200, 10**15)
    ]


@pytest.mark.scenario(27)
def test_only_a_later_timestamp_adds_an_entry() -> None:
    """
    Equal timestamps and missing ones are skipped.
    """
    index = index_with((-1, 100), (100, 100), (100, 101), (200, 102), (200, 103))

    assert [(100, 100), (200, 102)] == [tuple(index.entry(slot)) for slot in range(index.entries)]
    assert TimestampOffset(200, 102) == index.last_entry


def test_neither_timestamps_nor_offsets_may_decrease() -> None:
    """
    An equal offset with a later timestamp is accepted.
    """
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


def test_time_index_of_one_slot_is_always_full() -> None:
    """
    Each batch then gets a segment of its own.
    """
    assert index_with(size=12).is_full
    assert index_with(size=23).is_full
    assert not index_with(size=24).is_full


def test_final_entry_fits_after_segment_index_bytes_was_lowered() -> None:
    index = index_with((100, 101), (200, 102), (300, 103))
    index.resize(0)

    index.maybe_append(400, 104, skip_full_check=True)

    assert [101, 102, 103, 104] == [index.entry(slot).offset for slot in range(index.entries)]
    assert 48 == index.length


def test_truncation_removes_entries_at_and_above_the_offset() -> None:
    index = index_with((100, 101), (200, 103), (300, 105))

    index.truncate_to(104)
    assert TimestampOffset(200, 103) == index.last_entry
    index.truncate_to(103)
    assert TimestampOffset(100, 101) == index.last_entry
    index.truncate_to(0)
    assert TimestampOffset(-1, 100) == index.last_entry


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("00000000000000c8 00000001 0000000000000064 00000002", "last timestamp is 100"),
        ("00000000000000c8 ffffffff", "last offset is 99 which is less than the first offset 100"),
    ],
)
def test_time_index_that_contradicts_itself_is_corrupt(content: str, sentence: str) -> None:
    """
    The last timestamp is before the first, or the last offset below the base.
    """
    files = MemoryFiles()
    files.make_directory(D)
    files.write_atomically(PATH, bytes.fromhex(content))

    with pytest.raises(CorruptIndex, match=sentence):
        TimeIndex.open(files, PATH, 100, 120).sanity_check()
    index_with((100, 101), (200, 103)).sanity_check()
    index_with().sanity_check()


@given(st.sets(st.integers(0, 5000)).map(sorted), st.integers(-1, 6000))
def test_lookups_agree_with_a_plain_list(timestamps: list[int], target: int) -> None:
    """
    For any entries and any time, also in a reopened index.
    """
    files = MemoryFiles()
    files.make_directory(D)
    index = TimeIndex.open(files, PATH, 100, 61_000)
    for at, timestamp in enumerate(timestamps):
        index.maybe_append(timestamp, 100 + at)
    index.close()
    index = TimeIndex.open(files, PATH, 100, 61_000)

    below = [
        (timestamp, 100 + at) for at, timestamp in enumerate(timestamps) if timestamp <= target
    ]
    assert (below[-1] if below else (-1, 100)) == tuple(index.lookup(target))
    assert (timestamps[-1] if timestamps else -1) == index.last_entry.timestamp
