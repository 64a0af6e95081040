"""
Looking up entries of sorted indexes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from struct import Struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.errors import CorruptIndex, KafkaStorageError
from barnabas.storage.fs.disk import DiskFiles, DiskMappedFile
from barnabas.storage.fs.interface import Files
from barnabas.storage.index.offset_index import OffsetIndex
from barnabas.storage.index.search import WARM_BYTES, SearchResult, search
from barnabas.storage.index.time_index import TimeIndex
from barnabas.testing.disks.failing import FailingFiles
from barnabas.testing.disks.memory import MemoryFiles

D = Path("/data")
PATH = D / "i"
INT = Struct(">i")


def disk() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(D)
    return files


def slot_of(keys: list[int], target: int, result: SearchResult) -> int:
    view = memoryview(b"".join(map(INT.pack, keys)))
    return search(view, len(keys), target, result, unpack=INT.unpack_from, width=4, shift=0)


# More entries than the warm section has, so that both halves of the search are taken.
KEYS = st.builds(
    lambda gaps, factor: [sum(gaps[: at % len(gaps)]) + at * factor for at in range(3000)],
    st.lists(st.integers(0, 3), min_size=1, max_size=5),
    st.integers(20, 100),
) | st.lists(st.integers(-50, 50), unique=True).map(sorted)


@given(KEYS, st.integers(-60, 400_000))
def test_a_search_finds_the_last_entry_that_is_not_greater(keys: list[int], target: int) -> None:
    """
    As looking at all of them would.
    """
    expected = max((at for at, key in enumerate(keys) if key <= target), default=-1)

    assert expected == slot_of(keys, target, SearchResult.LARGEST_LOWER_BOUND)


@given(KEYS, st.integers(-60, 400_000))
def test_a_search_finds_the_first_entry_that_is_greater_or_one_that_is_equal(
    keys: list[int], target: int
) -> None:
    """
    For a bound from above, an entry that equals the target may do or be passed over, as in Kafka.
    """
    slot = slot_of(keys, target, SearchResult.SMALLEST_UPPER_BOUND)

    behind = bisect_right(keys, target)
    if target in keys:
        assert slot in (behind - 1, behind if behind < len(keys) else -1)
    else:
        assert (behind if behind < len(keys) else -1) == slot


@pytest.mark.parametrize(
    ("keys", "target", "expected"),
    [
        ([], 5, -1),
        ([10], 5, 0),
        ([10], 10, -1),
        ([10, 20], 10, 1),
        ([10, 20, 30], 20, 1),
        ([10, 20, 30], 25, 2),
        ([10, 20, 30], 30, 2),
        ([10, 20, 30], 31, -1),
    ],
)
def test_upper_bounds_are_kafkas(keys: list[int], target: int, expected: int) -> None:
    """
    The exact match is found only if the search happens to look at it.
    """
    assert expected == slot_of(keys, target, SearchResult.SMALLEST_UPPER_BOUND)


def test_the_warm_section_begins_behind_its_first_entry() -> None:
    """
    So that a bound which equals that entry is found by the search of the part before it.
    """
    keys = list(range(0, 30_000, 10))
    first_warm = len(keys) - 1 - WARM_BYTES // 4

    assert first_warm == slot_of(keys, keys[first_warm], SearchResult.SMALLEST_UPPER_BOUND)
    assert first_warm + 1 == slot_of(keys, keys[first_warm] + 1, SearchResult.SMALLEST_UPPER_BOUND)


def test_the_end_is_searched_without_looking_at_the_beginning() -> None:
    """
    Lookups near the end of a large index touch the pages of its end only.
    """
    keys = list(range(0, 100_000, 10))
    view = memoryview(b"".join(map(INT.pack, keys)))
    looked: list[int] = []

    def unpack(view: memoryview, at: int) -> tuple[int]:
        looked.append(at)
        return INT.unpack_from(view, at)

    slot = search(
        view,
        len(keys),
        99_905,
        SearchResult.LARGEST_LOWER_BOUND,
        unpack=unpack,
        width=4,
        shift=0,
    )

    assert keys.index(99_900) == slot
    assert min(looked) >= 4 * (len(keys) - 1) - WARM_BYTES


OpenIndex = Callable[[Files, int], OffsetIndex | TimeIndex]


def open_offset_index(files: Files, size: int) -> OffsetIndex:
    return OffsetIndex.open(files, PATH, 100, size)


def open_time_index(files: Files, size: int) -> TimeIndex:
    return TimeIndex.open(files, PATH, 100, size)


def fill(index: OffsetIndex | TimeIndex, count: int) -> None:
    for entry in range(index.entries, count):
        if isinstance(index, OffsetIndex):
            index.append(101 + entry, 10 * entry)
        else:
            index.maybe_append(1000 + entry, 101 + entry, skip_full_check=True)


@pytest.fixture(params=[open_offset_index, open_time_index], ids=["offset", "time"])
def open_index(request: pytest.FixtureRequest) -> OpenIndex:
    opener: OpenIndex = request.param
    return opener


@pytest.mark.parametrize(
    ("size", "offset_length", "time_length"),
    [(10_485_760, 10_485_760, 10_485_756), (300, 296, 300), (1000, 1000, 996), (12, 8, 12)],
)
@pytest.mark.scenario(15)
def test_new_files_have_their_greatest_length_at_once(
    size: int, offset_length: int, time_length: int
) -> None:
    """
    ``segment.index.bytes`` less what is no whole entry.
    """
    offsets, times = open_offset_index(disk(), size), open_time_index(disk(), size)

    assert (offset_length, offset_length // 8, 0) == (
        offsets.length,
        offsets.max_entries,
        offsets.entries,
    )
    assert (time_length, time_length // 12, 0) == (times.length, times.max_entries, times.entries)


def test_an_index_that_cannot_hold_an_entry_is_refused(open_index: OpenIndex) -> None:
    """
    And its file is not made. A file that is there is opened whatever the limit.
    """
    files = disk()

    with pytest.raises(ValueError, match="Invalid max index size: 7"):
        open_index(files, 7)

    assert not files.exists(PATH)
    open_index(files, 24).close()
    assert 0 == open_index(files, 7).entries


def test_an_existing_file_is_taken_to_be_full(open_index: OpenIndex) -> None:
    """
    Also by zeros that no process has trimmed.
    """
    files = disk()
    open_index(files, 48)

    index = open_index(files, 480)

    assert (48, 48 // index.entry_size) == (index.length, index.entries)
    assert index.is_full


def test_closing_cuts_off_the_hole(open_index: OpenIndex) -> None:
    """
    And a closed index finds nothing, instead of failing.
    """
    files = disk()
    index = open_index(files, 480)
    fill(index, 3)

    index.close()

    assert 3 * index.entry_size == files.size(PATH)
    if isinstance(index, OffsetIndex):
        assert (100, 0) == index.lookup(102)
    else:
        assert (-1, 100) == index.lookup(1002)
    again = open_index(files, 480)
    assert 3 == again.entries


def test_a_disk_that_failed_is_not_touched_again(open_index: OpenIndex) -> None:
    """
    The file stays as long as it was.
    """
    files = FailingFiles()
    files.make_directory(D)
    index = open_index(files, 480)
    files.fail(forever=True)

    index.close_handler()

    assert 480 == len(files.nodes[PATH].data)


def test_resizing_keeps_the_entries(open_index: OpenIndex) -> None:
    """
    To what is asked for, rounded down; never so that an entry is lost.
    """
    index = open_index(disk(), 480)
    fill(index, 3)
    width = index.entry_size

    assert index.resize(10 * width + 3)
    assert (10 * width, 10) == (index.length, index.max_entries)
    assert not index.resize(10 * width)
    assert index.resize(width)
    assert (3 * width, 3, 3) == (index.length, index.max_entries, index.entries)
    assert 103 == index.entry(2).offset


@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
def test_an_index_may_be_filled_before_it_has_a_file(kind: type[OffsetIndex | TimeIndex]) -> None:
    """
    As in a recovery. What the file is going to hold are its entries.
    """
    files = disk()
    index, other = kind.unwritten(PATH, 100, 480), kind.open(files, PATH, 100, 480)
    assert (other.length, other.full_at) == (index.length, index.full_at)

    fill(index, 3)
    fill(other, 3)
    other.close()

    assert 3 == index.entries
    assert files.read_bytes(PATH) == index.content


@given(st.integers(0, 40), st.integers(90, 150))
def test_truncating_keeps_what_lies_below(count: int, offset: int) -> None:
    """
    All entries of smaller offsets, none of others, for any number of entries.
    """
    for opener in (open_offset_index, open_time_index):
        index = opener(disk(), 480)
        fill(index, count)

        index.truncate_to(offset)

        kept = [index.entry(slot).offset for slot in range(index.entries)]
        assert [101 + entry for entry in range(count) if 101 + entry < offset] == kept
        fill(index, 40)
        assert 140 == index.entry(39).offset


def test_entries_that_are_not_there_cannot_be_asked_for(open_index: OpenIndex) -> None:
    """
    The file may have bytes there.
    """
    index = open_index(disk(), 480)
    fill(index, 2)

    with pytest.raises(ValueError, match="2th entry"):
        index.entry(2)


def test_relative_offsets_have_to_fit_an_int32(open_index: OpenIndex) -> None:
    """
    The base is 100.
    """
    index = open_index(disk(), 480)

    assert [0, 2**31 - 1] == [index.relative_offset(offset) for offset in (100, 99 + 2**31)]
    for offset in (99, 100 + 2**31):
        with pytest.raises(ValueError, match="Integer overflow"):
            index.relative_offset(offset)


def test_an_odd_length_is_corrupt(open_index: OpenIndex) -> None:
    """
    A start does not check that, but tools do.
    """
    files = disk()
    files.write_atomically(PATH, bytes(19))

    index = open_index(files, 480)

    assert 19 // index.entry_size == index.entries
    with pytest.raises(CorruptIndex, match="found 19 bytes which is neither positive nor") as found:
        index.sanity_check()
    assert PATH == found.value.path


def test_reading_tools_make_no_files() -> None:
    """
    Nor do they change any.
    """
    files = disk()

    with pytest.raises(FileNotFoundError):
        OffsetIndex.open(files, PATH, 0, writable=False)
    index = open_offset_index(files, 480)
    fill(index, 1)
    assert 60 == OffsetIndex.open(files, PATH, 100, writable=False).entries


def test_a_full_disk_leaves_the_index_as_it_was() -> None:
    """
    What could not be written is not counted.
    """
    files = FailingFiles()
    files.make_directory(D)
    index = open_offset_index(files, 480)
    fill(index, 2)
    files.fail(only=frozenset({"write"}))

    with pytest.raises(KafkaStorageError):
        index.append(200, 300)

    assert (2, 102) == (index.entries, index.last_offset)
    index.append(200, 300)
    assert (200, 300) == index.lookup(500)


def test_a_reader_survives_whatever_happens_to_the_file(tmp_path: Path) -> None:
    """
    It has looked at how many entries there are, and then the index is trimmed, closed, removed.
    """
    files = DiskFiles()
    index = OffsetIndex.open(files, tmp_path / "i", 100, 10_000)
    fill(index, 1000)

    class Meddling(DiskMappedFile):
        """
        Shortens the index when it is asked for its bytes.
        """

        __slots__ = ()
        path, created = index.path, False

        def __init__(self) -> None: ...

        @property
        def view(self) -> memoryview:
            if reader.entries == 1000 == index.entries:
                index.truncate_to(200)
                index.trim_to_valid_size()
            mapped: memoryview = index._mapped.view
            return mapped

        @view.setter
        def view(self, value: memoryview) -> None: ...

    reader = OffsetIndex(index._mapped, 100, 10_000)
    reader.entries = 1000
    reader._mapped = Meddling()

    assert (199, 980) == reader.lookup(5000)
    index.close()
    files.remove(tmp_path / "i")
    assert (100, 0) == index.lookup(5000)
