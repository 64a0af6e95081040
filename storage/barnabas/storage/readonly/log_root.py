"""
One of the directories in ``log.dirs``, to be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

from barnabas.storage.directories.cleaner_checkpoint import CLEANER_CHECKPOINT
from barnabas.storage.directories.directory import (
    HIGH_WATERMARK_CHECKPOINT,
    LOCK_FILE,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from barnabas.storage.errors import InvalidLogDirectory
from barnabas.storage.fs.interface import Files
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.state_files.checkpoints import (
    CLEAN_SHUTDOWN_FILE,
    CleanShutdownFile,
    parse_checkpoint,
    parse_offset_entry,
)
from barnabas.storage.state_files.file_names import (
    CLUSTER_METADATA_TOPIC,
    REMOTE_LOG_INDEX_CACHE,
    TopicPartition,
)
from barnabas.storage.state_files.meta_properties import (
    META_PROPERTIES,
    MetaProperties,
    parse_meta_properties,
)

CHECKPOINT_NAMES: Final = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
)

Offsets = Mapping[TopicPartition, int]


class Checkpoints:
    """
    The offsets that a log directory remembers for its partitions.

    Each is read when it is asked for; a missing file has no entries. Each raises
    ``CorruptCheckpoint`` if its file is not as it should be.
    """

    def __init__(self, path: Path, files: Files) -> None:
        self._path = path
        self._files = files

    def entries(self, name: str) -> list[tuple[TopicPartition, int]]:
        """
        The entries of the file *name* as they are in it, one of ``CHECKPOINT_NAMES``.
        """
        path = self._path / name
        try:
            data = self._files.read_bytes(path)
        except FileNotFoundError:
            return []
        return parse_checkpoint(data, path, parse_offset_entry)

    @property
    def recovery_points(self) -> Offsets:
        return dict(self.entries(RECOVERY_POINT_CHECKPOINT))

    @property
    def log_start_offsets(self) -> Offsets:
        """
        Only of logs that start after the base offset of their first segment.
        """
        return dict(self.entries(LOG_START_OFFSET_CHECKPOINT))

    @property
    def high_watermarks(self) -> Offsets:
        return dict(self.entries(HIGH_WATERMARK_CHECKPOINT))

    @property
    def cleaner_offsets(self) -> Offsets:
        """
        The first offset of each log that was not compacted yet.
        """
        return dict(self.entries(CLEANER_CHECKPOINT))


class LogRoot:
    """
    A log directory with the logs in it. What there is, is found out when the object is made.
    """

    def __init__(self, path: Path, files: Files) -> None:
        """
        Raises:
            FileNotFoundError: there is no such directory.
        """
        self.path = path
        self.files = files
        self.names: tuple[str, ...] = tuple(files.names(path))
        """All that is in the directory, sorted."""
        self.checkpoints = Checkpoints(path, files)

    @cached_property
    def directories(self) -> tuple[Path, ...]:
        """
        What should be the directories of partitions: all but the cache of tiered storage.
        """
        paths = (self.path / name for name in self.names if name != REMOTE_LOG_INDEX_CACHE)
        return tuple(path for path in paths if self.files.is_directory(path))

    @cached_property
    def partitions(self) -> tuple[PartitionDirectory, ...]:
        """
        The logs, also those that are marked, without that of the cluster's metadata.
        """
        found = []
        for path in self.directories:
            try:
                partition = PartitionDirectory(path, self.files)
            except (InvalidLogDirectory, FileNotFoundError):
                continue
            if partition.topic_partition.topic != CLUSTER_METADATA_TOPIC:
                found.append(partition)
        return tuple(found)

    @property
    def cluster_metadata(self) -> PartitionDirectory | None:
        """
        The log of the cluster's metadata, if it is in this directory.
        """
        path = self.path / f"{CLUSTER_METADATA_TOPIC}-0"
        if path not in self.directories:
            return None
        return PartitionDirectory(path, self.files)

    @property
    def meta_properties(self) -> MetaProperties | None:
        """
        None if the directory was not formatted.

        Raises:
            CorruptCheckpoint: the file lacks something, or has a value of no sense.
        """
        path = self.path / META_PROPERTIES
        try:
            data = self.files.read_bytes(path)
        except FileNotFoundError:
            return None
        return parse_meta_properties(data, path)

    @property
    def clean_shutdown(self) -> bool:
        """
        Whether the last stop was clean, and nothing was started since.
        """
        return CLEAN_SHUTDOWN_FILE in self.names

    @property
    def clean_shutdown_epoch(self) -> int | None:
        """
        The broker epoch in the mark of a clean stop, if there is one that says it.
        """
        return CleanShutdownFile(self.files, self.path).read()

    @property
    def in_use(self) -> bool:
        """
        Whether a broker holds the lock of the directory.
        """
        return self.files.is_locked(self.path / LOCK_FILE)

    def __repr__(self) -> str:
        return f"<LogRoot {self.path}>"
