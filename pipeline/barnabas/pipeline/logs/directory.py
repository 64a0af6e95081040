"""
The log directories that are read, and the partitions in them.

A path is a log directory of a broker, or the directory of one partition. The checkpoints of the
latter are those of the directory around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from barnabas.pipeline.errors import InvalidOption, UnknownTopic
from barnabas.pipeline.logs.filesystems import locate
from barnabas.pipeline.logs.indexes import KeptIndexes
from barnabas.pipeline.options import TopicSelection
from barnabas.pipeline.storage import StorageOptions
from barnabas.storage.directories.directory import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
)
from barnabas.storage.readonly.log_root import LogRoot
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.state_files.file_names import LOG_SUFFIX
from barnabas.storage.state_files.meta_properties import META_PROPERTIES
from barnabas.storage.topic_partition import TopicPartition


class LogDirectory:
    """
    A log directory with all its partitions, or with the one that the user has named.
    """

    def __init__(self, url: str, storage: StorageOptions | None = None) -> None:
        """
        Args:
            storage: how S3 and Azure are reached; as the environment says by default.

        Raises:
            FileNotFoundError: there is no such directory.
        """
        self.url = url
        self.files, path = locate(url, storage)
        self._only: Path | None = None
        try:
            self.root = LogRoot(path, self.files)
            if any(name.endswith(LOG_SUFFIX) for name in self.root.names):
                self._only, self.root = path, LogRoot(path.parent, self.files)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileNotFoundError(f"There is no directory {url}.") from error

    @cached_property
    def indexes(self) -> KeptIndexes:
        """
        Those of its segments, for one plan.
        """
        return KeptIndexes(self.files)

    @cached_property
    def log_start_offsets(self) -> Mapping[TopicPartition, int]:
        return self.root.checkpoint(LOG_START_OFFSET_CHECKPOINT)

    @cached_property
    def high_watermarks(self) -> Mapping[TopicPartition, int] | None:
        """
        None if the directory has no checkpoint of high watermarks.
        """
        if HIGH_WATERMARK_CHECKPOINT not in self.root.names:
            return None
        return self.root.checkpoint(HIGH_WATERMARK_CHECKPOINT)

    @cached_property
    def partitions(self) -> Mapping[TopicPartition, Path]:
        logs = self.root.logs
        if self._only is None:
            return logs
        return {name: path for name, path in logs.items() if path == self._only}

    def open(self, partition: TopicPartition) -> PartitionDirectory | None:
        """
        None if there is no such directory, or if it was removed.
        """
        path = self.partitions.get(partition)
        try:
            return None if path is None else PartitionDirectory(path, self.files)
        except FileNotFoundError:
            return None


def select(
    directories: Sequence[LogDirectory], topics: TopicSelection, *, may_be_gone: bool = False
) -> list[tuple[LogDirectory, PartitionDirectory]]:
    """
    The partitions of *topics*, by topic and number.

    Args:
        may_be_gone: leave out topics and partitions that are named and do not exist.

    Raises:
        InvalidOption: a partition is in two of the directories.
        UnknownTopic: a topic or partition does not exist, or the directories have no log at all.
    """
    chosen: dict[TopicPartition, tuple[LogDirectory, PartitionDirectory]] = {}
    there = set()
    for directory in directories:
        for partition in directory.partitions:
            there.add(partition)
            if topics.has(partition):
                opened = directory.open(partition)
                if opened is None:
                    continue
                if partition in chosen:
                    raise InvalidOption(
                        f"path has {partition} twice, in {chosen[partition][1].path} and in"
                        f" {opened.path}: name only the one that is to be read."
                    )
                chosen[partition] = directory, opened
    urls = ", ".join(directory.url for directory in directories)
    named = {TopicPartition(name, -1) for name in topics.names or ()} | set(topics.partitions or ())
    known = set(chosen) | {TopicPartition(partition.topic, -1) for partition in chosen}
    missing = sorted(named - known)
    if missing and not may_be_gone:
        what = [name if number < 0 else f"{name}-{number}" for name, number in missing]
        topics_there = ", ".join(sorted({partition.topic for partition in there})) or "no topic"
        raise UnknownTopic(f"{urls} has no {', '.join(what)}. There is {topics_there}.")
    if not there and not any(META_PROPERTIES in each.root.names for each in directories):
        raise UnknownTopic(
            f"{urls} has no logs of topics. It should be a directory of a broker's log.dirs, with "
            "a directory for each partition."
        )
    return [chosen[partition] for partition in sorted(chosen)]
