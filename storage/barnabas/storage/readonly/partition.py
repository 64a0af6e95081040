"""
The directory of one partition.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Final

from barnabas.storage.fs.interface import Files
from barnabas.storage.producers.snapshots import SnapshotFile, list_snapshot_files
from barnabas.storage.readonly.files import read_if_exists
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
    PartitionMetadataFile,
    parse_partition_metadata,
)

_MARKS: Final = (DELETE_DIR_SUFFIX, FUTURE_DIR_SUFFIX, STRAY_DIR_SUFFIX)


def mark_of(directory: Path) -> str:
    """
    The suffix ``-delete``, ``-future`` or ``-stray`` of a log that is not in use, or nothing.
    """
    return next((mark for mark in _MARKS if directory.name.endswith(mark)), "")


class PartitionDirectory:
    """
    The log of one partition.

    The names of its files are those at the time when the object was made. A broker may remove a
    file later: it then counts as missing.
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
        """The names of everything in the directory, sorted."""

    @property
    def mark(self) -> str:
        return mark_of(self.path)

    @cached_property
    def segments(self) -> tuple[ReadOnlySegment, ...]:
        """
        The segments, by base offset.
        """
        found = []
        for name in self.names:
            if name.endswith(LOG_SUFFIX) and name.removesuffix(LOG_SUFFIX).isdecimal():
                with suppress(FileNotFoundError):
                    found.append(ReadOnlySegment(self.files, self.path / name))
        return tuple(sorted(found, key=lambda segment: segment.base_offset))

    @property
    def partition_metadata(self) -> PartitionMetadataFile | None:
        """
        None if there is no such file; the next start then takes the log for a stray.

        Raises:
            CorruptCheckpoint: the file has another form.
        """
        path = self.path / PARTITION_METADATA
        data = read_if_exists(self.files, path)
        return None if data is None else parse_partition_metadata(data, path)

    @property
    def leader_epochs(self) -> tuple[EpochEntry, ...]:
        """
        The entries in the order of the file; none if there is no file.

        Raises:
            CorruptCheckpoint: the file has another form.
        """
        path = self.path / LEADER_EPOCH_CHECKPOINT
        data = read_if_exists(self.files, path)
        return () if data is None else tuple(parse_checkpoint(data, path, parse_epoch_entry))

    @property
    def snapshots(self) -> tuple[SnapshotFile, ...]:
        """
        The snapshots of producers, by offset. ``read_snapshot`` reads one.
        """
        return tuple(list_snapshot_files(self.files, self.path))

    def __repr__(self) -> str:
        return f"<PartitionDirectory {self.path}>"
