from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.log.directory import SegmentDirectory
from barnabas.storage.recovery.swap_files import clean_up, numbered
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.threads.deferred_work import DeferredWork
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.clock import StillClock
from tests.support.crash.points import ALL, NONE, Keep, any_part, crash_images
from tests.support.segments import DIRECTORY, append_padded, padded_batch
from tests.support.some import some

DELAY_MS = 500


def directory(files: MemoryFiles, clock: StillClock | None = None) -> SegmentDirectory:
    clock = clock or StillClock()
    files.make_directory(DIRECTORY)
    config = LogConfig(
        file_delete_delay_ms=DELAY_MS, index_interval_bytes=150, segment_index_bytes=400
    )
    return SegmentDirectory(
        DIRECTORY,
        TopicPartition("t", 0),
        config,
        files=files,
        clock=clock,
        deferred=DeferredWork(clock),
    )


def filled(place: SegmentDirectory, *ranges: range) -> list[LogSegment]:
    """
    Segments with a batch for each offset, all of them on the disk.
    """
    segments = []
    for offsets in ranges:
        segment = place.add_segment(offsets.start)
        append_padded(segment, offsets)
        segment.on_become_inactive_segment()
        segment.flush()
        segments.append(segment)
    place.files.sync_directory(DIRECTORY)
    return segments


def offsets_in(files: MemoryFiles) -> list[int]:
    """
    What a start finds in the directory.
    """
    place = directory(files)
    clean_up(place)
    assert all(name.count(".") == 1 for name in some(files.names(DIRECTORY)))
    found = []
    for name in numbered(place.files.names(place.path)):
        if name.endswith(".log"):
            segment = place.open_segment(int(name[:20]), file_already_exists=True)
            found += [batch.base_offset for batch in segment.log.batches()]
    return found


def test_replacement_removes_leftovers_of_an_earlier_one() -> None:
    files = MemoryFiles()
    place = directory(files)
    filled(place, range(5))
    left = place.create_new_cleaned_segment(0)
    left.append(7, padded_batch(7))

    again = place.create_new_cleaned_segment(0)

    assert 0 == again.size


def replacement(place: SegmentDirectory, old: list[LogSegment]) -> list[LogSegment]:
    """
    Segments with every second batch of *old*, in one piece for each two of them.
    """
    new = []
    for at in range(0, len(old), 2):
        piece = place.create_new_cleaned_segment(old[at].base_offset)
        for segment in old[at : at + 2]:
            for batch in list(segment.log.batches())[::2]:
                piece.append(batch.last_offset, batch.data)
        piece.on_become_inactive_segment()
        piece.flush()
        new.append(piece)
    return new


def test_segment_deleted_meanwhile_is_not_replaced() -> None:
    files = MemoryFiles()
    place = directory(files)
    old = filled(place, range(4), range(4, 8))
    new = replacement(place, old)
    place.remove_and_delete(old[:1], "retention")

    assert [4] == [segment.base_offset for segment in place.replace(new, old)]


def left_by_crashes(
    prepare: Callable[[SegmentDirectory], list[LogSegment]],
    work: Callable[[SegmentDirectory, list[LogSegment]], object],
    keep: Keep,
) -> list[list[int]]:
    """
    The offsets that are left when the machine crashes, before each change of *work* and after it.
    """
    files = CrashableFiles()
    place = directory(files)
    segments = prepare(place)
    with crash_images(files, keep) as images:
        work(place, segments)
    return [offsets_in(CrashableFiles(image=image)) for image in images]


def four(place: SegmentDirectory) -> list[LogSegment]:
    return filled(place, range(4), range(4, 8), range(8, 12), range(12, 16))


def replace(place: SegmentDirectory, old: list[LogSegment]) -> None:
    place.replace(replacement(place, old), old)
    place.sync()


KEEPS = pytest.mark.parametrize("keep", [NONE, ALL, any_part(1)], ids=lambda keep: keep.name)


@KEEPS
def test_crash_during_a_replacement_leaves_all_old_segments_or_all_new_ones(keep: Keep) -> None:
    outcomes = left_by_crashes(four, replace, keep)

    old, new = list(range(16)), list(range(0, 16, 2))
    assert (old, new) == (outcomes[0], outcomes[-1])
    assert all(outcome in (old, new) for outcome in some(outcomes))


FAR = 2**31 + 5


def overflowed(place: SegmentDirectory) -> LogSegment:
    (segment,) = filled(place, range(4))
    for offset in (FAR, FAR + 1):
        segment.log.append(padded_batch(offset))
    segment.flush()
    return segment


def test_segment_whose_offsets_do_not_fit_is_split() -> None:
    files = MemoryFiles()
    place = directory(files)

    result = place.split_overflowed_segment(overflowed(place))

    assert (0, FAR) == place.segments.base_offsets
    assert [] == result.deleted_segments
    assert [0, 1, 2, 3, FAR, FAR + 1] == offsets_in(files)
    assert [0, FAR] == [segment.base_offset for segment in result.new_segments]


def test_segment_whose_offsets_fit_is_not_split() -> None:
    place = directory(MemoryFiles())
    (segment,) = filled(place, range(4))

    with pytest.raises(ValueError, match="only permitted for segments with overflow"):
        place.split_overflowed_segment(segment)


def split(place: SegmentDirectory, segments: list[LogSegment]) -> None:
    place.split_overflowed_segment(segments[0])


@KEEPS
def test_crash_during_a_split_loses_nothing(keep: Keep) -> None:
    outcomes = left_by_crashes(lambda place: [overflowed(place)], split, keep)

    assert outcomes
    assert all([0, 1, 2, 3, FAR, FAR + 1] == outcome for outcome in some(outcomes))


def test_segment_directory_can_be_renamed() -> None:
    files = MemoryFiles()
    place = directory(files)
    filled(place, range(4))

    assert not place.rename(DIRECTORY.name)
    assert place.rename("u-0")

    assert DIRECTORY.with_name("u-0") == place.path
    active = place.segments.active_segment
    active.offset_index.resize(1000)
    active.time_index.resize(1000)
    append_padded(active, range(4, 6))
    assert 900 == files.size(place.path / f"{0:020d}.log")
