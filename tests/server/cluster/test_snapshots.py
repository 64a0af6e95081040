from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest

from barnabas.coordination.cluster.image import Versioned
from barnabas.protocol.errors import CorruptMessage
from barnabas.protocol.internal_topics import metadata_records as records
from barnabas.protocol.records.batch import CRC_AT, batches
from barnabas.protocol.records.control import ControlRecordType
from barnabas.server.cluster.snapshots import (
    SnapshotId,
    find_snapshots,
    read_snapshot,
    snapshot_batches,
    write_snapshot,
)
from barnabas.testing.disks.crashable import CrashableFiles
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.crash.points import ALL, crash_images

HERE = Path("/log")
SNAPSHOT = SnapshotId(47, 3)
VOTERS = {ControlRecordType.KRAFT_VERSION: b"\0\0\0\1\0"}


def topics(count: int) -> list[Versioned]:
    named = [(f"topic-{number}", UUID(int=number + 1)) for number in range(count)]
    made: list[Versioned] = [
        (records.FeatureLevelRecord(name="metadata.version", feature_level=30), 0)
    ]
    return made + [(records.TopicRecord(name=name, topic_id=id_), 0) for name, id_ in named]


def content(count: int = 3) -> list[bytearray]:
    return list(
        snapshot_batches(topics(count), epoch=3, now_ms=2000, last_contained_ms=1000, quorum=VOTERS)
    )


def disk() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(HERE)
    return files


def test_metadata_snapshot_survives_a_round_trip() -> None:
    files = disk()

    write_snapshot(HERE, SNAPSHOT, content(), files)
    replay = read_snapshot(SNAPSHOT.path(HERE), files)

    assert ["topic-0", "topic-1", "topic-2"] == list(replay.image.topics_by_name)
    assert 1000 == replay.last_timestamp
    assert VOTERS == replay.quorum
    assert ["00000000000000000047-0000000003.checkpoint"] == files.names(HERE)


def test_snapshot_offsets_count_from_zero_and_batches_have_the_epoch() -> None:
    # Header and footer are control batches, as in Kafka.
    found = [batch for part in content() for batch in batches(part)]

    assert [(0, 1, True), (2, 5, False), (6, 6, True)] == [
        (batch.base_offset, batch.last_offset, batch.is_control) for batch in found
    ]
    assert {3} == {batch.partition_leader_epoch for batch in found}
    assert [83, 75] == [len(b"".join(part)) for part in (_header_alone(), content()[-1:])]


def _header_alone() -> list[bytearray]:
    return list(snapshot_batches([], epoch=0, now_ms=1, last_contained_ms=0, quorum={}))[:1]


def test_snapshot_records_are_split_into_batches() -> None:
    parts = content(25_000)

    found = [batch for part in parts for batch in batches(part)]
    assert [10_000, 10_000, 5_001] == [batch.record_count for batch in found[1:-1]]
    assert all(a.next_offset == b.base_offset for a, b in pairwise(found))


def test_truncated_metadata_snapshot_is_detected() -> None:
    files = disk()
    whole = b"".join(content())
    for size in range(len(whole)):
        files.write_atomically(SNAPSHOT.path(HERE), whole[:size])
        with pytest.raises(CorruptMessage, match="checkpoint"):
            read_snapshot(SNAPSHOT.path(HERE), files)


def test_flipped_bit_in_a_metadata_snapshot_is_detected() -> None:
    files = disk()
    whole = b"".join(content())
    covered = [
        position
        for batch in batches(whole)
        for position in range(batch.position + CRC_AT, batch.end, 5)
    ]
    for position in covered:
        damaged = bytearray(whole)
        damaged[position] ^= 4
        files.write_atomically(SNAPSHOT.path(HERE), bytes(damaged))
        with pytest.raises(CorruptMessage):
            read_snapshot(SNAPSHOT.path(HERE), files)


def test_crash_leaves_a_whole_metadata_snapshot_or_none() -> None:
    files = CrashableFiles()
    files.make_directory(HERE)

    with crash_images(files, ALL) as images:
        write_snapshot(HERE, SNAPSHOT, content(), files)

    found = set[int]()
    for image in images:
        after = CrashableFiles(image=image)
        complete = find_snapshots(HERE, after).complete
        found.add(len(complete))
        for snapshot in complete:
            read_snapshot(snapshot.path(HERE), after)
    assert {0, 1} == found
    files.crash()
    assert [SNAPSHOT] == find_snapshots(HERE, files).complete


def test_complete_snapshots_are_sorted_and_leftovers_distinguished_by_name() -> None:
    files = disk()
    for name in (
        "00000000000000000099.log",
        "00000000000000000009-0000000002.checkpoint",
        "00000000000000000009-0000000001.checkpoint",
        "00000000000000000002-0000000009.checkpoint",
        "00000000000000000100-0000000002-123.checkpoint.part",
        "00000000000000000001-0000000001.checkpoint.deleted",
        "leader-epoch-checkpoint",
        "quorum-state",
    ):
        files.open(HERE / name).close()

    found = find_snapshots(HERE, files)

    assert [(2, 9), (9, 1), (9, 2)] == found.complete
    assert [
        "00000000000000000001-0000000001.checkpoint.deleted",
        "00000000000000000100-0000000002-123.checkpoint.part",
    ] == [path.name for path in found.leftovers]
