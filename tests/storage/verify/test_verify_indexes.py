from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

import pytest

from barnabas.protocol.records.batch import build_batch_with_offsets
from barnabas.protocol.records.record import Record
from barnabas.storage.verify.context import DirectoryState, LogContext
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.segments import DIRECTORY
from tests.support.segments import FIRST_TIMESTAMP as T
from tests.support.verifying import log_violations

OFFSET_ENTRY, TIME_ENTRY = Struct(">ii"), Struct(">qi")
BASE = 10
TIMES = ((T + 5, T + 1), (T + 9,), (T + 2, T + 9, T + 3), (T + 4, T + 20))
"""The timestamps of the records of four batches, which end with offsets 11, 12, 15 and 17."""


def log_of(
    batches: Sequence[Sequence[int]],
    offsets: Sequence[tuple[int, int]],
    times: Sequence[tuple[int, int]],
    base: int = BASE,
) -> MemoryFiles:
    """
    A segment with the *batches* of records with these timestamps, and these entries of its indexes;
    offsets lead to batches by their number.
    """
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    path = DIRECTORY / f"{base:020d}.log"
    file = files.open(path)
    positions, offset = [], base
    for timestamps in batches:
        records = [Record(offset + at, time, b"k", b"v") for at, time in enumerate(timestamps)]
        positions.append(file.size())
        file.append(build_batch_with_offsets(records, base_offset=offset, partition_leader_epoch=0))
        offset += len(records)
    files.open(path.with_suffix(".index")).append(
        b"".join(OFFSET_ENTRY.pack(at - base, positions[number]) for at, number in offsets)
    )
    files.open(path.with_suffix(".timeindex")).append(
        b"".join(TIME_ENTRY.pack(time, at - base) for time, at in times)
    )
    return files


def found(
    offsets: Sequence[tuple[int, int]] = (),
    times: Sequence[tuple[int, int]] = ((T + 20, 17),),
    batches: Sequence[Sequence[int]] = TIMES,
    base: int = BASE,
) -> list[tuple[str, int | None]]:
    """
    The rules that are violated, and the number of the entry.
    """
    context = LogContext(state=DirectoryState.CLEAN, may_be_compacted=False)
    violations = log_violations(log_of(batches, offsets, times, base), context)
    return [(each.rule, each.entry) for each in violations]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], []),
        ([(12, 1), (15, 2), (17, 3)], []),
        ([(11, 0), (17, 3)], []),
        ([(13, 2)], [("offset-index-entry", 0)]),
        ([(12, 2)], [("offset-index-entry", 0)]),
        ([(12, 1), (12, 2)], [("offset-index-order", 1)]),
        ([(15, 2), (12, 1), (17, 3)], [("offset-index-order", 1)]),
        ([(9, 1)], [("offset-index-order", 0)]),
    ],
)
def test_offset_index_entry_must_have_position_and_last_offset_of_a_batch(
    entries: list[tuple[int, int]], expected: list[tuple[str, int | None]]
) -> None:
    assert expected == found(offsets=entries)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([(T + 5, 11), (T + 9, 12), (T + 20, 17)], []),
        ([(T + 20, 17)], []),
        # Until 3.x: the record that has the timestamp, not the last one of its batch.
        ([(T + 5, 10), (T + 9, 14), (T + 20, 17)], []),
        ([(T + 9, 15), (T + 20, 17)], []),
        # Not the largest of the batch.
        ([(T + 1, 11), (T + 20, 17)], [("time-index-entry", 0)]),
        # Not an offset that has it.
        ([(T + 9, 13), (T + 20, 17)], [("time-index-entry", 0)]),
        ([(T + 20, 16)], [("time-index-entry", 0)]),
        # Neither order nor end.
        ([(T + 9, 12), (T + 5, 11), (T + 20, 17)], [("time-index-order", 1)]),
        ([(T + 9, 12), (T + 20, 11)], [("time-index-order", 1), ("time-index-last", None)]),
        ([(T + 20, 17), (T + 30, 18)], [("time-index-entry", 1)]),
        ([(T + 9, 12)], [("time-index-last", None)]),
        ([], [("time-index-last", None)]),
    ],
)
def test_time_index_entry_must_have_the_largest_timestamp_up_to_its_batch(
    entries: list[tuple[int, int]], expected: list[tuple[str, int | None]]
) -> None:
    assert expected == found(times=entries)


def test_time_index_entry_below_an_earlier_timestamp_is_found() -> None:
    """
    A search for a time between both would skip the earlier batch.
    """
    batches = ((T + 9,), (T + 5, T + 1), (T + 2, T + 3, T + 3), (T + 4, T + 20))

    assert [("time-index-entry", 0)] == found(times=[(T + 5, 12), (T + 20, 17)], batches=batches)


def test_leading_index_entry_of_zeros_may_be_valid() -> None:
    """
    A closed segment with one record of timestamp 0 has one time index entry: 0 at offset 0.
    """
    assert [] == found(times=[(0, 0)], batches=[(0,)], base=0)
