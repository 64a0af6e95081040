"""
The log directories that are read, and the partitions in them.

A path is a log directory of a broker, or the directory of one partition, which then belongs to the
directory around it: there are the checkpoints, if any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from barnabas.pipeline.errors import UnknownTopic
from barnabas.pipeline.logs.filesystems import locate
from barnabas.pipeline.options import Topics
from barnabas.storage.directories.directory import HIGH_WATERMARK_CHECKPOINT
from barnabas.storage.errors import InvalidLogDirectory
from barnabas.storage.readonly.log_root import Checkpoints
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.state_files.file_names import (
    DELETE_DIR_SUFFIX,
    FUTURE_DIR_SUFFIX,
    LOG_SUFFIX,
    STRAY_DIR_SUFFIX,
    TopicPartition,
    parse_topic_partition_name,
)
from barnabas.storage.state_files.meta_properties import META_PROPERTIES

_MARKS = (DELETE_DIR_SUFFIX, FUTURE_DIR_SUFFIX, STRAY_DIR_SUFFIX)


class LogDirectory:
    """
    One directory with the logs of partitions in it, or with one of which only that one is meant.
    """

    def __init__(self, url: str) -> None:
        """
        Raises:
            FileNotFoundError: there is no such directory.
        """
        self.url = url
        self.files, path = locate(url)
        try:
            names = self.files.names(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileNotFoundError(f"There is no directory {url}.") from error
        self._only: Path | None = None
        if any(name.endswith(LOG_SUFFIX) for name in names):
            self._only, path = path, path.parent
            names = self.files.names(path)
        self.path = path
        self.names = frozenset(names)
        self._checkpoints = Checkpoints(path, self.files)

    @cached_property
    def log_start_offsets(self) -> Mapping[TopicPartition, int]:
        return self._checkpoints.log_start_offsets

    @cached_property
    def high_watermarks(self) -> Mapping[TopicPartition, int] | None:
        """
        None where no broker ever noted any.
        """
        if HIGH_WATERMARK_CHECKPOINT not in self.names:
            return None
        return self._checkpoints.high_watermarks

    @property
    def is_of_a_broker(self) -> bool:
        return META_PROPERTIES in self.names

    @cached_property
    def partitions(self) -> Mapping[TopicPartition, Path]:
        """
        The directories that have the name of a partition and are not marked.
        """
        found = {}
        paths = [self.path / name for name in sorted(self.names)]
        for path in paths if self._only is None else [self._only]:
            if not path.name.endswith(_MARKS):
                try:
                    found[parse_topic_partition_name(path)] = path
                except InvalidLogDirectory:
                    continue
        return found

    def open(self, partition: TopicPartition) -> PartitionDirectory | None:
        """
        None if there is no such directory, or not any more.
        """
        path = self.partitions.get(partition)
        if path is None or not self.files.is_directory(path):
            return None
        try:
            return PartitionDirectory(path, self.files)
        except FileNotFoundError:
            return None


def select(
    directories: Sequence[LogDirectory], topics: Topics
) -> list[tuple[LogDirectory, PartitionDirectory]]:
    """
    The partitions that are meant, by topic and number.

    Raises:
        UnknownTopic: one that is named is not there, or there is no log at all.
    """
    chosen = {}
    there = set()
    for directory in directories:
        for partition in directory.partitions:
            there.add(partition)
            if topics.has(partition):
                opened = directory.open(partition)
                if opened is not None:
                    chosen[partition] = directory, opened
    urls = ", ".join(directory.url for directory in directories)
    named = {TopicPartition(name, -1) for name in topics.names or ()} | set(topics.partitions or ())
    known = set(chosen) | {TopicPartition(partition.topic, -1) for partition in chosen}
    missing = sorted(named - known)
    if missing:
        what = [name if number < 0 else f"{name}-{number}" for name, number in missing]
        topics_there = ", ".join(sorted({partition.topic for partition in there})) or "no topic"
        raise UnknownTopic(f"{urls} has no {', '.join(what)}. There is {topics_there}.")
    if not there and not any(directory.is_of_a_broker for directory in directories):
        raise UnknownTopic(
            f"{urls} has no logs of topics. It should be a directory of a broker's log.dirs, with "
            "a directory for each partition."
        )
    return [chosen[partition] for partition in sorted(chosen)]
