"""
A log directory: one of those in ``log.dirs``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
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
from barnabas.storage.readonly.files import read_if_exists
from barnabas.storage.readonly.partition import PartitionDirectory, mark_of
from barnabas.storage.state_files.checkpoints import (
    CLEAN_SHUTDOWN_FILE,
    parse_checkpoint,
    parse_offset_entry,
)
from barnabas.storage.state_files.file_names import (
    CLUSTER_METADATA_TOPIC,
    REMOTE_LOG_INDEX_CACHE,
    parse_topic_partition_name,
)
from barnabas.storage.state_files.meta_properties import (
    META_PROPERTIES,
    MetaProperties,
    parse_meta_properties,
)
from barnabas.storage.topic_partition import TopicPartition

CHECKPOINT_NAMES: Final = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
)
"""
The offsets that a log directory has for its partitions, in one file for each kind. Only logs that
start behind the base offset of their first segment have a log start offset. That of the cleaner is
the first dirty offset of a log: the offset behind its last cleaning.
"""

CheckpointOffsets = Mapping[TopicPartition, int]


class LogRoot:
    """
    A log directory and the logs in it, as they were when the object was made.
    """

    def __init__(self, path: Path, files: Files) -> None:
        """
        Raises:
            FileNotFoundError: there is no such directory.
            NotADirectoryError: *path* is a file.
            KafkaStorageError: the directory cannot be read.
        """
        self.path = path
        self.files = files
        self.names: tuple[str, ...] = tuple(files.names(path))
        """The names of everything in the directory, sorted."""

    def checkpoint_entries(self, name: str) -> list[tuple[TopicPartition, int]]:
        """
        The entries of the checkpoint *name*, one of ``CHECKPOINT_NAMES``, in their order; none if
        the file is missing.

        Raises:
            CorruptCheckpoint: the file is not a checkpoint.
        """
        path = self.path / name
        data = read_if_exists(self.files, path)
        return [] if data is None else parse_checkpoint(data, path, parse_offset_entry)

    def checkpoint(self, name: str) -> CheckpointOffsets:
        """
        The same by partition.
        """
        return dict(self.checkpoint_entries(name))

    @cached_property
    def directories(self) -> tuple[Path, ...]:
        """
        The directories that have to be those of partitions: all but the cache of tiered storage.
        """
        names = self.files.directory_names(self.path)
        return tuple(self.path / name for name in names if name != REMOTE_LOG_INDEX_CACHE)

    @cached_property
    def logs(self) -> Mapping[TopicPartition, Path]:
        """
        The directories of the logs that are in use, that of the cluster's metadata included.
        """
        found = {}
        for path in self.directories:
            with suppress(InvalidLogDirectory):
                if not mark_of(path):
                    found[parse_topic_partition_name(path)] = path
        return found

    @cached_property
    def partitions(self) -> tuple[PartitionDirectory, ...]:
        """
        The logs, marked ones included, without that of the cluster's metadata.
        """
        found = []
        for path in self.directories:
            with suppress(InvalidLogDirectory, FileNotFoundError):
                partition = PartitionDirectory(path, self.files)
                if partition.topic_partition.topic != CLUSTER_METADATA_TOPIC:
                    found.append(partition)
        return tuple(found)

    @property
    def cluster_metadata(self) -> PartitionDirectory | None:
        """
        The log of the cluster's metadata; None if it is not in this directory.
        """
        path = self.logs.get(TopicPartition(CLUSTER_METADATA_TOPIC, 0))
        return None if path is None else PartitionDirectory(path, self.files)

    @property
    def meta_properties(self) -> MetaProperties | None:
        """
        None if the directory was not formatted.

        Raises:
            CorruptCheckpoint: the file lacks a property, or the value of one is wrong.
        """
        path = self.path / META_PROPERTIES
        data = read_if_exists(self.files, path)
        return None if data is None else parse_meta_properties(data, path)

    @property
    def clean_shutdown(self) -> bool:
        """
        Whether the last broker was stopped cleanly and none was started after that.
        """
        return CLEAN_SHUTDOWN_FILE in self.names

    @property
    def in_use(self) -> bool:
        """
        Whether a broker holds the lock of the directory.
        """
        return self.files.is_locked(self.path / LOCK_FILE)

    def __repr__(self) -> str:
        return f"<LogRoot {self.path}>"
