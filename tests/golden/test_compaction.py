"""
Topics that Apache Kafka has compacted, compacted again from what they were before.

The same records were sent to several topics; ``dirty`` still has all of them. Batches of which
Kafka kept something tell where they began and ended; the others are gone, whatever they were.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.protocol.records.batch import RecordBatch, batches, build_batch_with_offsets
from barnabas.protocol.records.record import Record
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.log.log import Log
from barnabas.storage.state_files.file_names import offset_from_file_name
from tests.golden.test_replay import written
from tests.support.cleaning import clean
from tests.support.clock import StillClock
from tests.support.kafka_directory import topic_configs
from tests.support.logs import append_with_offsets, config_with, new_log

FILES = DiskFiles()
DAY_MS = 86_400_000
SUFFIXES = (".log", ".index", ".timeindex")


CLEANED_MS = 1_795_227_870_000
TOPICS = {
    "compact": CLEANED_MS,
    "tombstone-gone": CLEANED_MS,
    # Horizons tell the time to the millisecond.
    "compact-lz4": 1_795_314_250_092 - DAY_MS,
    "compact-delete": 1_795_314_250_209 - DAY_MS,
    "append-time": CLEANED_MS,
}
"""When each compacted topic was."""


def before(offset: int, sent: dict[int, Record]) -> Record:
    """
    The record with an offset: one that was sent to all topics, or one of two keys behind them.
    """
    filler = Record(offset, 1_700_000_005_000, b"filler%d" % (offset % 2), b"x")
    return sent.get(offset, filler)


def as_sent(kept: RecordBatch, sent: dict[int, Record]) -> bytes:
    """
    The batch that *kept* was made of.
    """
    if kept.base_offset >= len(sent):
        return bytes(kept.data)
    return bytes(
        build_batch_with_offsets(
            [sent[offset] for offset in range(kept.base_offset, kept.next_offset)],
            base_offset=kept.base_offset,
            partition_leader_epoch=kept.partition_leader_epoch,
            compression=kept.compression,
            log_append_time=kept.max_timestamp if kept.timestamp_type else None,
        )
    )


def write_again(log: Log, theirs: Path, bases: list[int]) -> None:
    """
    Write what the topic had before it was compacted, in segments that begin at *bases*.
    """
    sent = {
        record.offset: record
        for batch in written(theirs.parent / "dirty-0")
        for record in batch.records()
    }
    kept = {batch.base_offset: batch for batch in written(theirs)}
    end = max(batch.next_offset for batch in kept.values())
    while (offset := log.log_end_offset) < end:
        if offset in bases[1:] and offset != log.active_segment.base_offset:
            log.roll()
        if offset in kept:
            data = as_sent(kept[offset], sent)
        else:
            data = bytes(build_batch_with_offsets([before(offset, sent)], base_offset=offset))
        append_with_offsets(log, memoryview(bytearray(data)))
    log.update_high_watermark(log.log_end_offset)


@pytest.mark.parametrize("topic", TOPICS)
def test_cleaning_a_compacted_log_of_kafka_again_gives_the_same_files(
    golden: Path, tmp_path: Path, topic: str
) -> None:
    theirs = golden / "compaction" / "data" / f"{topic}-0"
    config = topic_configs(golden / "compaction")[topic]
    bases = sorted(offset_from_file_name(path.name) for path in theirs.glob("*.log"))
    clock = StillClock(TOPICS[topic])
    ours = tmp_path / "t-0"
    uncleaned = config_with(
        cleanup_policy=("delete",), index_interval_bytes=config.index_interval_bytes
    )
    log = new_log(ours, uncleaned, files=FILES, clock=clock, producer_config=None)
    write_again(log, theirs, bases)
    log.update_config(config)

    end, stats = clean(log, clock)
    log.close()

    assert bases[-1] == end
    assert stats.messages_written < stats.messages_read
    for base in bases:
        for suffix in SUFFIXES:
            name = f"{base:020d}{suffix}"
            assert (theirs / name).read_bytes() == (ours / name).read_bytes(), name


def test_cleaning_a_dirty_log_keeps_the_records_that_kafka_kept(
    golden: Path, tmp_path: Path
) -> None:
    """
    Kafka's batches have other boundaries.
    """
    data = golden / "compaction" / "data"
    clock = StillClock(CLEANED_MS)
    ours = tmp_path / "t-0"
    dirty = topic_configs(golden / "compaction")["dirty"]
    log = new_log(ours, dirty, files=FILES, clock=clock, producer_config=None)
    for batch in written(data / "dirty-0"):
        append_with_offsets(log, memoryview(bytearray(batch.data)))
    log.roll()
    log.update_high_watermark(log.log_end_offset)
    bases = list(log.segments.base_offsets)

    clean(log, clock)
    log.close()

    assert [0, 20, 37, 54] == bases[:4]
    first = min((data / "compact-0").glob("*.log"))
    expected = [record for batch in batches(first.read_bytes()) for record in batch.records()]
    tombstone = Record(55, 1_700_000_000_550, b"key4", None)
    found = [record for batch in written(ours) for record in batch.records()]
    assert expected == [record for record in found if record != tombstone]
