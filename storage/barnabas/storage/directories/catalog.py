"""
The logs of a broker, and their log directories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from barnabas.storage.directories.directories import LogDirectories
from barnabas.storage.directories.directory import LogDirectory
from barnabas.storage.errors import InvalidLogDirectory
from barnabas.storage.log.log import Log
from barnabas.storage.topic_partition import TopicPartition

Checkpoint = Callable[[LogDirectory, Mapping[TopicPartition, Log]], None]
"""
Writes a checkpoint of the logs of a directory.
"""

STARTS_AND_RECOVERY_POINTS: Final[Sequence[Checkpoint]] = (
    LogDirectory.checkpoint_log_start_offsets,
    LogDirectory.checkpoint_recovery_points,
)


class LogCatalog:
    """
    The logs and the directories that are online.

    Invariants:

    1. A partition has at most one log here, and it lies in one of the directories.

    Reading is safe from any thread: the results are copies. The log manager makes the changes, with
    its lock held.
    """

    def __init__(self, directories: LogDirectories) -> None:
        self.logs: dict[TopicPartition, Log] = {}
        self.directories = directories

    def admit(self, partition: TopicPartition, log: Log) -> None:
        """
        Add the *log* of *partition*.

        Raises:
            InvalidLogDirectory: the partition has one already.
        """
        other = self.logs.setdefault(partition, log)
        if other is not log:
            raise InvalidLogDirectory(
                f"Duplicate log directories for {partition} are found in both {log.dir} and"
                f" {other.dir}. Delete the one in the log directory that is known to have failed.",
                path=log.dir,
            )

    def all(self) -> dict[TopicPartition, Log]:
        """
        All logs, as of now.
        """
        return dict(self.logs)

    def inside(self, path: Path) -> dict[TopicPartition, Log]:
        """
        The logs of one directory.
        """
        text = str(path)
        return {
            partition: log for partition, log in self.all().items() if str(log.parent_dir) == text
        }

    def by_directory(self) -> Iterator[tuple[LogDirectory, dict[TopicPartition, Log]]]:
        """
        Each directory with its logs.
        """
        for path, directory in self.directories.live.items():
            yield directory, self.inside(path)

    # Checkpoints

    def checkpoint(self, path: Path) -> None:
        """
        Write the checkpoints of one directory, if it is online, after logs were added or deleted.
        """
        directory = self.directories.live.get(path)
        if directory is not None:
            self._write(directory, STARTS_AND_RECOVERY_POINTS)

    def checkpoint_all(self, *checkpoints: Checkpoint) -> None:
        """
        Write *checkpoints* in every directory that is online.
        """
        for directory in self.directories.live.values():
            self._write(directory, checkpoints)

    def _write(self, directory: LogDirectory, checkpoints: Sequence[Checkpoint]) -> None:
        # Logs are looked at and written under one lock. A deleted log could otherwise be written
        # after its deletion, and the next log of that name would begin at its offsets.
        with directory.checkpointing:
            if directory.is_released:  # A round may last longer than the stop waits for it.
                return
            logs = self.inside(directory.path)
            for write in checkpoints:
                self.directories.write(directory, partial(write, directory, logs))
