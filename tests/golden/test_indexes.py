"""
The index files that Apache Kafka has written, made again from the batches beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from barnabas.protocol.records.batch import RecordBatch
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.log.leader_epochs import LeaderEpochFileCache
from barnabas.storage.log.rolling import RollParams, RollReason, SegmentEnd, reason_to_roll
from barnabas.storage.producers.snapshots import ProducerSnapshots
from barnabas.storage.producers.state import ProducerStateManager, ProducerStateManagerConfig
from barnabas.storage.recovery.segment_recovery import recover_segment
from barnabas.storage.segment.records import FileRecords
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.state_files.checkpoints import (
    LEADER_EPOCH_CHECKPOINT,
    LeaderEpochCheckpointFile,
    parse_checkpoint,
    parse_epoch_entry,
)
from barnabas.storage.state_files.file_names import offset_from_file_name
from tests.support.clock import StillClock
from tests.support.some import some

FILES = DiskFiles()


@dataclass(frozen=True)
class Topic:
    """
    What the topic was configured with, where it matters here, and how it was written to.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 86_400_000
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    rolls_at_random: bool = False
    restarted_at: tuple[int, ...] = ()

    def random_segment_jitter(self) -> int:
        return 0


TOPICS = {
    "canary": Topic(segment_bytes=16384),
    "canary-index300": Topic(
        segment_bytes=16384, segment_index_bytes=300, index_interval_bytes=150
    ),
    "canary-index300-default": Topic(segment_bytes=16384, segment_index_bytes=300),
    "index-full-150": Topic(segment_index_bytes=300, index_interval_bytes=150),
    "index-full-0": Topic(segment_index_bytes=300, index_interval_bytes=0),
    "constant-time": Topic(segment_index_bytes=300, index_interval_bytes=0),
    "index-100": Topic(segment_index_bytes=100, index_interval_bytes=150),
    "interval-4096": Topic(segment_bytes=20000),
    "size-1000": Topic(segment_bytes=1000),
    "size-exact": Topic(segment_bytes=900),
    "roll-ms": Topic(segment_ms=100),
    "roll-jitter": Topic(segment_ms=1000, rolls_at_random=True),
    "no-timestamp": Topic(segment_ms=100, index_interval_bytes=0, rolls_at_random=True),
    "out-of-order": Topic(index_interval_bytes=0, segment_bytes=1200),
    "multi-record": Topic(index_interval_bytes=0, segment_bytes=600),
    "future": Topic(segment_bytes=1000, index_interval_bytes=300),
    "append-time": Topic(segment_bytes=1000, index_interval_bytes=300),
    "preallocated": Topic(segment_bytes=4000, segment_index_bytes=1000),
    "restarts": Topic(segment_bytes=2000, index_interval_bytes=150, restarted_at=(7, 14)),
    "empty": Topic(),
}


def logs_of(directory: Path) -> list[int]:
    """
    The base offsets of the segments in *directory*.
    """
    return sorted(offset_from_file_name(path.name) for path in directory.glob("*.log"))


def batches_of(directory: Path, base_offset: int) -> Iterator[RecordBatch]:
    path = directory / f"{base_offset:020d}.log"
    return FileRecords.open(FILES, path, mutable=False).batches()


def index_files(directory: Path, base_offset: int, *suffixes: str) -> dict[str, bytes]:
    """
    The bytes of the index files of a segment; those that are missing are left out.
    """
    paths = [directory / f"{base_offset:020d}{suffix}" for suffix in suffixes]
    return {path.name: path.read_bytes() for path in paths if path.exists()}


def open_segment(directory: Path, base_offset: int, topic: Topic) -> LogSegment:
    return LogSegment(directory, base_offset, topic, StillClock(), files=FILES)


def roll_reason(segment: LogSegment, batch: RecordBatch, topic: Topic) -> RollReason | None:
    return reason_to_roll(
        SegmentEnd.of(segment),
        RollParams(
            max_segment_ms=topic.segment_ms,
            max_segment_bytes=topic.segment_bytes,
            max_timestamp_in_messages=batch.max_timestamp,
            max_offset_in_messages=batch.last_offset,
            messages_size=batch.size,
            now=StillClock().now_ms(),
        ),
    )


@pytest.mark.parametrize("name", TOPICS)
def test_appending_kafkas_batches_again_gives_the_same_indexes(
    name: str, golden: Path, tmp_path: Path
) -> None:
    """
    Byte for byte, and the log rolls where Kafka's did.
    """
    topic = TOPICS[name]
    theirs = golden / "segments" / "data" / f"{name}-0"
    base_offsets = logs_of(theirs)

    for base_offset in some(base_offsets):
        segment = open_segment(tmp_path, base_offset, topic)
        for batch in batches_of(theirs, base_offset):
            if batch.base_offset in topic.restarted_at:
                segment.close()
                segment = open_segment(tmp_path, base_offset, topic)
                for index in segment.indexes:
                    index.grow()
            assert topic.rolls_at_random or not roll_reason(segment, batch, topic)
            segment.append(batch.last_offset, batch.data)
        if base_offset == base_offsets[-1]:
            # As a log is stopped.
            segment.on_become_inactive_segment()
            segment.flush()
            segment.close()
        else:
            following = next(batches_of(theirs, segment.read_next_offset()))
            assert topic.rolls_at_random or roll_reason(segment, following, topic)
            segment.on_become_inactive_segment()

        suffixes = (".log", ".index", ".timeindex")
        expected = index_files(theirs, base_offset, *suffixes)
        assert 3 == len(expected)
        assert expected == index_files(tmp_path, base_offset, *suffixes)


@pytest.mark.parametrize("version", ["tv0", "tv1", "tv2"])
@pytest.mark.parametrize("partition", ["txn-0", "txn-1", "idem-0"])
def test_recovering_kafkas_segments_gives_the_same_indexes(
    version: str, partition: str, golden: Path, tmp_path: Path
) -> None:
    """
    Offset, time and transaction indexes, and the leader epochs.
    """
    theirs = golden / f"transactions-{version}" / "data" / partition
    clock = StillClock()
    checkpoint = LeaderEpochCheckpointFile(FILES, tmp_path)
    epochs = LeaderEpochFileCache(partition, checkpoint, checkpoint.read())
    producers = ProducerStateManager(
        partition, ProducerSnapshots(FILES, tmp_path), ProducerStateManagerConfig(), clock
    )

    for base_offset in some(logs_of(theirs)):
        name = f"{base_offset:020d}.log"
        (tmp_path / name).write_bytes((theirs / name).read_bytes())
        segment = open_segment(tmp_path, base_offset, Topic(index_interval_bytes=200))

        assert 0 == recover_segment(segment, producers, epochs)

        suffixes = (".log", ".index", ".timeindex", ".txnindex")
        expected = index_files(theirs, base_offset, *suffixes)
        assert len(expected) >= 3
        assert expected == index_files(tmp_path, base_offset, *suffixes)
    data = (theirs / LEADER_EPOCH_CHECKPOINT).read_bytes()
    assert parse_checkpoint(data, theirs, parse_epoch_entry) == list(epochs.entries)
