"""
The directory of one partition, to be read.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Final

from barnabas.storage.fs.interface import Files
from barnabas.storage.producers.snapshots import SnapshotFile, list_snapshot_files
from barnabas.storage.readonly.segment import ReadOnlySegment
from barnabas.storage.state_files.checkpoints import (
    LEADER_EPOCH_CHECKPOINT,
    EpochEntry,
    parse_checkpoint,
    parse_epoch_entry,
)
from barnabas.storage.state_files.file_names import (
    DELETE_DIR_SUFFIX,
    FUTURE_DIR_SUFFIX,
    LOG_SUFFIX,
    STRAY_DIR_SUFFIX,
    parse_topic_partition_name,
)
from barnabas.storage.state_files.partition_metadata import (
    PARTITION_METADATA,
    PartitionMetadata,
    parse_partition_metadata,
)

_MARKS: Final = (DELETE_DIR_SUFFIX, FUTURE_DIR_SUFFIX, STRAY_DIR_SUFFIX)


class PartitionDirectory:
    """
    The log of one partition.

    What files there are is found out when the object is made. A file that is gone when it is asked
    for counts as missing: a broker may be at work.
    """

    def __init__(self, path: Path, files: Files) -> None:
        """
        Raises:
            InvalidLogDirectory: the name of *path* is not one of a partition.
            FileNotFoundError: there is no such directory.
        """
        self.path = path
        self.files = files
        self.topic_partition = parse_topic_partition_name(path)
        self.names: tuple[str, ...] = tuple(files.names(path))
        """All that is in the directory, sorted."""

    @property
    def mark(self) -> str:
        """
        ``-delete``, ``-future`` or ``-stray``, or nothing if the log is in use.
        """
        return next((mark for mark in _MARKS if self.path.name.endswith(mark)), "")

    @cached_property
    def segments(self) -> tuple[ReadOnlySegment, ...]:
        """
        The segments, by base offset.
        """
        found = []
        for name in self.names:
            if name.endswith(LOG_SUFFIX) and name.removesuffix(LOG_SUFFIX).isdecimal():
                try:
                    found.append(ReadOnlySegment(self.files, self.path / name))
                except FileNotFoundError:
                    continue
        return tuple(sorted(found, key=lambda segment: segment.base_offset))

    @property
    def partition_metadata(self) -> PartitionMetadata | None:
        """
        None if there is no such file; the log would be a stray at the next start.

        Raises:
            CorruptCheckpoint: it is not as it should be.
        """
        path = self.path / PARTITION_METADATA
        try:
            data = self.files.read_bytes(path)
        except FileNotFoundError:
            return None
        return parse_partition_metadata(data, path)

    @property
    def leader_epochs(self) -> tuple[EpochEntry, ...]:
        """
        The entries in the order of the file; none if there is no file.

        Raises:
            CorruptCheckpoint: the file is not as it should be.
        """
        path = self.path / LEADER_EPOCH_CHECKPOINT
        try:
            data = self.files.read_bytes(path)
        except FileNotFoundError:
            return ()
        return tuple(parse_checkpoint(data, path, parse_epoch_entry))

    @property
    def snapshots(self) -> tuple[SnapshotFile, ...]:
        """
        The snapshots of producers, by offset. ``read_snapshot`` tells what is in one.
        """
        return tuple(list_snapshot_files(self.files, self.path))

    def __repr__(self) -> str:
        return f"<PartitionDirectory {self.path}>"
