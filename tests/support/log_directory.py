"""
A log directory on the disk, written by the storage engine, as a broker would leave it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barnabas.protocol.records.batch import BatchOptions, build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.fs.disk import DiskFiles
from barnabas.storage.log.log import Log
from barnabas.storage.readonly.log_root import LogRoot
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.state_files.checkpoints import format_checkpoint
from barnabas.storage.topic_partition import TopicPartition
from tests.support.clock import StillClock
from tests.support.logs import config_with, new_log
from tests.support.segments import FIRST_TIMESTAMP

HIGH_WATERMARKS = "replication-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"


class WrittenDirectory:
    """
    Logs that are open, and the checkpoints that their broker would have noted.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = DiskFiles()
        self.clock = StillClock(FIRST_TIMESTAMP)
        self.logs: dict[TopicPartition, Log] = {}

    def log(self, topic: str = "events", partition: int = 0, **config: Any) -> Log:
        """
        Make a log. Its segments may have any size.
        """
        name = TopicPartition(topic, partition)
        log = new_log(
            self.path / str(name), config_with(**config), files=self.files, clock=self.clock
        )
        self.logs[name] = log
        return log

    @property
    def events(self) -> Log:
        """
        The log that is made when nothing is said.
        """
        return self.logs[TopicPartition("events", 0)]

    def checkpoint(self, name: str = HIGH_WATERMARKS, **offsets: int) -> None:
        """
        Note *offsets* by topic, all of partition 0; else the ends of all logs.
        """
        noted = {TopicPartition(topic, 0): offset for topic, offset in offsets.items()} or {
            partition: log.log_end_offset for partition, log in self.logs.items()
        }
        lines = [f"{topic} {partition} {at}" for (topic, partition), at in noted.items()]
        (self.path / name).write_bytes(format_checkpoint(lines))

    def stop(self) -> None:
        self.checkpoint()
        for log in self.logs.values():
            log.flush(force_flush_active_segment=True)
            log.close()


def append(log: Log, records: list[SimpleRecord], **options: Any) -> None:
    """
    One batch; *options* are those of ``build_batch``.
    """
    more: BatchOptions = {**options}  # type: ignore[typeddict-item]  # any of them
    log.append_as_leader(memoryview(build_batch(records, **more)), 0)


def some_records(count: int, *, start: int = 0, size: int = 20) -> list[SimpleRecord]:
    """
    Records of which each is different, one a millisecond.
    """
    return [
        SimpleRecord(FIRST_TIMESTAMP + number, b"key %d" % number, b"%0*d" % (size, number))
        for number in range(start, start + count)
    ]


def stored_rows(path: Path, topic: str | None = None) -> Iterator[tuple[Any, ...]]:
    """
    Key, value, topic, partition, offset, timestamp (ms), timestamp type and headers of all records
    in a log directory, found batch by batch and record by record.
    """
    for partition in LogRoot(path, DiskFiles()).partitions:
        if topic in (None, partition.topic_partition.topic):
            yield from stored_rows_of(partition)


def stored_rows_of(partition: PartitionDirectory) -> Iterator[tuple[Any, ...]]:
    for segment in partition.segments:
        for _, batch in segment.batches():
            if batch.is_control:
                continue
            for record in batch.records():
                yield (
                    record.key,
                    record.value,
                    *partition.topic_partition,
                    record.offset,
                    record.timestamp,
                    int(batch.timestamp_type),
                    [(name, value) for name, value in record.headers] or None,
                )
