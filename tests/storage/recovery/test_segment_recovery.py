from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.index.txn_index import AbortedTxn
from barnabas.storage.log.leader_epochs import LeaderEpochFileCache
from barnabas.storage.producers.snapshots import ProducerSnapshots
from barnabas.storage.producers.state import ProducerStateManager, ProducerStateManagerConfig
from barnabas.storage.recovery.segment_recovery import recover_segment
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.state_files.checkpoints import LeaderEpochCheckpointFile
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.clock import StillClock
from tests.support.segments import (
    DIRECTORY,
    FIRST_TIMESTAMP,
    INDEX,
    LOG,
    TIME_INDEX,
    append_padded,
    batch_of,
    offset_entries,
    open_segment,
    padded_batch,
    time_entries,
)


def recover(segment: LogSegment, files: MemoryFiles) -> tuple[int, ProducerStateManager]:
    """
    Recover *segment*; how many bytes were cut off, and the producers it has.
    """
    producers = ProducerStateManager(
        "t-0", ProducerSnapshots(files, DIRECTORY), ProducerStateManagerConfig(), StillClock()
    )
    return recover_segment(segment, producers, epochs_on(files)), producers


def epochs_on(files: MemoryFiles) -> LeaderEpochFileCache:
    checkpoint = LeaderEpochCheckpointFile(files, DIRECTORY)
    return LeaderEpochFileCache("t-0", checkpoint, checkpoint.read())


def written(files: MemoryFiles, content: bytes) -> LogSegment:
    """
    A segment whose file holds *content*.
    """
    files.make_directory(DIRECTORY)
    files.open(LOG).append(content)
    return open_segment(files=files, interval=150)


def ten_batches() -> bytes:
    return b"".join(padded_batch(offset) for offset in range(10))


def test_recovery_keeps_a_whole_segment_and_rebuilds_its_indexes() -> None:
    """
    The indexes equal those of a segment appended in one run and closed.
    """
    files, other = MemoryFiles(), MemoryFiles()
    segment = written(files, ten_batches())
    appended = open_segment(files=other, interval=150)
    append_padded(appended, range(10))
    appended.close()

    cut, _ = recover(segment, files)

    assert 0 == cut
    for path in (LOG, INDEX, TIME_INDEX):
        assert other.read_bytes(path) == files.read_bytes(path)


@pytest.mark.parametrize(
    ("scenario", "kept", "damage"),
    [
        (62, 10, lambda data: data + b"garbage"),
        (62, 10, lambda data: data + bytes(range(1, 150))),
        (68, 10, lambda data: data + bytes(1000)),
        (59, 9, lambda data: data[:-75]),
        (59, 9, lambda data: data[:-140]),
        (59, 9, lambda data: flipped(data, 1499)),
        (60, 2, lambda data: flipped(data, 300 + 80)),
        (60, 2, lambda data: replaced(data, 300 + 16, 0)),
        (60, 2, lambda data: replaced(data, 300 + 8, -1)),
        (60, 2, lambda data: replaced(data, 300 + 8, 20)),
        (60, 2, lambda data: replaced(data, 300 + 8, 10**9)),
        (60, 0, lambda data: flipped(data, 80)),
        (68, 0, lambda data: b""),
    ],
)
def test_recovery_truncates_at_the_first_bad_batch(
    scenario: int, kept: int, damage: Callable[[bytes], bytes]
) -> None:
    content = damage(ten_batches())
    files = MemoryFiles()
    segment = written(files, content)

    cut, producers = recover(segment, files)

    assert len(content) - 150 * kept == cut
    assert ten_batches()[: 150 * kept] == files.read_bytes(LOG)
    assert (150 * kept, kept) == (segment.size, segment.read_next_offset())
    assert kept == producers.map_end_offset
    append_padded(segment, range(kept, kept + 1))
    assert kept + 1 == segment.read_next_offset()


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def replaced(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + struct.pack(">i", value) + data[at + 4 :]


def test_recovery_ignores_the_previous_contents_of_indexes() -> None:
    files = MemoryFiles()
    segment = written(files, ten_batches())
    files.open(INDEX).append(b"\xff" * 19)
    files.open(TIME_INDEX).append(b"\x7f" * 240)
    segment.txn_index.append(AbortedTxn(1, 2, 3, 4))

    recover(segment, files)

    assert [(offset, 150 * offset) for offset in (2, 4, 6, 8)] == offset_entries(segment)
    assert [(FIRST_TIMESTAMP + at, at) for at in (2, 4, 6, 8, 9)] == time_entries(segment)
    assert segment.txn_index.is_empty


def test_recovery_accepts_decreasing_timestamps() -> None:
    timestamps = [100, 50, 200, 150, 200, 300, 10]
    files = MemoryFiles()
    segment = written(
        files, b"".join(padded_batch(at, timestamp=time) for at, time in enumerate(timestamps))
    )

    recover(segment, files)

    assert [(200, 2), (300, 5)] == time_entries(segment)


def test_recovery_adds_no_time_index_entry_for_batches_without_timestamps() -> None:
    files = MemoryFiles()
    segment = written(files, b"".join(padded_batch(at, timestamp=-1) for at in range(5)))

    recover(segment, files)

    assert (0, 1) == (files.size(TIME_INDEX), segment.offset_index.entries - 1)


def test_recovery_adds_unknown_later_leader_epochs() -> None:
    files = MemoryFiles()
    epochs = enumerate([-1, 0, 0, 2, 1, -1, 5])
    batches = [batch_of(offset, [1], leader_epoch=epoch) for offset, epoch in epochs]
    segment = written(files, b"".join(batches))

    recover(segment, files)

    assert [(0, 1), (2, 3), (5, 6)] == [tuple(entry) for entry in epochs_on(files).entries]


def test_recovery_succeeds_after_segment_index_bytes_was_lowered() -> None:
    files = MemoryFiles()
    written(files, ten_batches())
    segment = open_segment(files=files, interval=0, index_bytes=40)

    cut, _ = recover(segment, files)

    assert 0 == cut
    assert [(1, 150), (2, 300)] == offset_entries(segment)
    assert (FIRST_TIMESTAMP + 9, 9) == time_entries(segment)[-1]
    assert [(at, 150 * at, 150) for at in range(10)] == [
        segment.translate_offset(at) for at in range(10)
    ]


@given(st.data(), st.integers(0, 10))
def test_flushed_batches_survive_any_crash_and_the_rest_is_a_whole_prefix(
    data: st.DataObject, flushed: int
) -> None:
    files = CrashableFiles()
    segment = open_segment(files=files, interval=150, index_bytes=300)
    append_padded(segment, range(flushed))
    segment.flush()
    files.sync_directory(DIRECTORY)
    append_padded(segment, range(flushed, 12))

    files.crash(lambda most: data.draw(st.integers(0, most)))

    segment = open_segment(files=files, interval=150, index_bytes=300)
    recover(segment, files)
    found = [batch.base_offset for batch in segment.log.batches()]
    assert list(range(len(found))) == found
    assert flushed <= len(found) <= 12
    for offset in found:
        assert (offset, 150 * offset, 150) == segment.translate_offset(offset)
    for index in segment.indexes:
        index.grow()
    append_padded(segment, range(len(found), 13))
    assert 13 == segment.read_next_offset()
