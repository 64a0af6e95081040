from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
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
FIRST_WARM = 2999 - WARM_BYTES // 4


def disk() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(D)
    return files


def slot_of(keys: Sequence[int], target: int, result: SearchResult) -> int:
    view = memoryview(b"".join(map(INT.pack, keys)))
    return search(view, len(keys), target, result, unpack=INT.unpack_from, width=4, shift=0)


# More entries than the warm section has, so that both halves of the search are taken.
KEYS = st.builds(
    lambda gaps, factor: [sum(gaps[: at % len(gaps)]) + at * factor for at in range(3000)],
    st.lists(st.integers(0, 3), min_size=1, max_size=5),
    st.integers(20, 100),
) | st.lists(st.integers(-50, 50), unique=True).map(sorted)


@given(KEYS, st.integers(-60, 400_000))
def test_search_finds_the_neighbours_of_the_target(keys: list[int], target: int) -> None:
    """
    As in Kafka, a search for the upper bound may return or skip an entry equal to the target.
    """
    behind = bisect_right(keys, target)
    above = behind if behind < len(keys) else -1

    assert behind - 1 == slot_of(keys, target, SearchResult.LARGEST_LOWER_BOUND)
    slot = slot_of(keys, target, SearchResult.SMALLEST_UPPER_BOUND)
    assert slot in ({behind - 1, above} if target in keys else {above})


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
        # The cold section of a large index ends with the first entry of the warm one.
        (range(0, 30_000, 10), 10 * FIRST_WARM, FIRST_WARM),
        (range(0, 30_000, 10), 10 * FIRST_WARM + 1, FIRST_WARM + 1),
    ],
)
def test_upper_bound_search_returns_the_same_entry_as_kafka(
    keys: Sequence[int], target: int, expected: int
) -> None:
    assert expected == slot_of(keys, target, SearchResult.SMALLEST_UPPER_BOUND)


def test_search_near_the_end_does_not_touch_the_beginning() -> None:
    keys = list(range(0, 100_000, 10))
    view = memoryview(b"".join(map(INT.pack, keys)))
    looked: list[int] = []

    def unpack(view: memoryview, at: int) -> tuple[int]:
        looked.append(at)
        return INT.unpack_from(view, at)

    lower = SearchResult.LARGEST_LOWER_BOUND
    slot = search(view, len(keys), 99_905, lower, unpack=unpack, width=4, shift=0)

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
def test_new_index_file_is_preallocated_to_segment_index_bytes(
    size: int, offset_length: int, time_length: int
) -> None:
    offsets, times = open_offset_index(disk(), size), open_time_index(disk(), size)

    assert (offset_length, time_length) == (offsets.length, times.length)
    assert (offset_length // 8, time_length // 12) == (offsets.max_entries, times.max_entries)
    assert 0 == offsets.entries == times.entries


def test_index_too_small_for_an_entry_is_refused_and_not_created(open_index: OpenIndex) -> None:
    files = disk()

    with pytest.raises(ValueError, match="Invalid max index size: 7"):
        open_index(files, 7)

    assert not files.exists(PATH)
    open_index(files, 24).close()
    assert 0 == open_index(files, 7).entries


def test_existing_index_file_counts_as_full(open_index: OpenIndex) -> None:
    files = disk()
    open_index(files, 48)

    index = open_index(files, 480)

    assert (48, 48 // index.entry_size) == (index.length, index.entries)
    assert index.is_full


def test_close_trims_the_index_to_its_entries(open_index: OpenIndex) -> None:
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


def test_index_on_a_failed_disk_is_closed_without_a_write(open_index: OpenIndex) -> None:
    files = FailingFiles()
    files.make_directory(D)
    index = open_index(files, 480)
    files.fail(forever=True)

    index.close_handler()

    assert 480 == len(files.nodes[PATH].data)


def test_resize_keeps_the_entries(open_index: OpenIndex) -> None:
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
def test_index_may_be_filled_in_memory_before_it_has_a_file(
    kind: type[OffsetIndex | TimeIndex],
) -> None:
    """
    As in a recovery; the file later contains exactly these entries.
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
def test_truncation_keeps_exactly_the_entries_below_the_offset(count: int, offset: int) -> None:
    for opener in (open_offset_index, open_time_index):
        index = opener(disk(), 480)
        fill(index, count)

        index.truncate_to(offset)

        kept = [index.entry(slot).offset for slot in range(index.entries)]
        assert [101 + entry for entry in range(count) if 101 + entry < offset] == kept
        fill(index, 40)
        assert 140 == index.entry(39).offset


def test_entries_beyond_the_count_cannot_be_read(open_index: OpenIndex) -> None:
    index = open_index(disk(), 480)
    fill(index, 2)

    with pytest.raises(ValueError, match="2th entry"):
        index.entry(2)


def test_relative_offsets_must_fit_an_int32(open_index: OpenIndex) -> None:
    index = open_index(disk(), 480)

    assert [0, 2**31 - 1] == [index.relative_offset(offset) for offset in (100, 99 + 2**31)]
    for offset in (99, 100 + 2**31):
        with pytest.raises(ValueError, match="Integer overflow"):
            index.relative_offset(offset)


def test_odd_index_length_is_reported_as_corrupt_by_tools(open_index: OpenIndex) -> None:
    """
    A broker start does not check it.
    """
    files = disk()
    files.write_atomically(PATH, bytes(19))

    index = open_index(files, 480)

    assert 19 // index.entry_size == index.entries
    with pytest.raises(CorruptIndex, match="found 19 bytes which is neither positive nor") as found:
        index.sanity_check()
    assert PATH == found.value.path


def test_read_only_index_neither_creates_nor_changes_files() -> None:
    files = disk()

    with pytest.raises(FileNotFoundError):
        OffsetIndex.open(files, PATH, 0, writable=False)
    index = open_offset_index(files, 480)
    fill(index, 1)
    assert 60 == OffsetIndex.open(files, PATH, 100, writable=False).entries


def test_full_disk_leaves_the_index_unchanged() -> None:
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


def test_reader_survives_trim_close_and_removal_of_the_index(tmp_path: Path) -> None:
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
