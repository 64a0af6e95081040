"""
Which logs there are, and in which log directories.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from barnabas.storage.errors import InvalidLogDirectory, KafkaStorageError
from barnabas.storage.log import Log
from barnabas.storage.log_dir_failure import LogDirFailureChannel
from barnabas.storage.log_directory import LogDirectory
from barnabas.storage.log_files import TopicPartition


class LogCatalog:
    """
    The logs and the directories that are online.

    Invariants:

    1. A partition has at most one log here, and it lies in one of the directories.

    Looking is safe from any thread: what is handed out is a copy. Changes are made by the log
    manager, under its lock.
    """

    def __init__(self, failures: LogDirFailureChannel) -> None:
        self.logs: dict[TopicPartition, Log] = {}
        self.directories: dict[Path, LogDirectory] = {}
        self.failures = failures

    def admit(self, partition: TopicPartition, log: Log) -> None:
        """
        Let *log* be that of *partition*.

        Raises:
            InvalidLogDirectory: it has one already.
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
        for path, directory in list(self.directories.items()):
            yield directory, self.inside(path)

    def by_fewest_logs(self) -> list[Path]:
        """
        The directories, the one with the fewest logs first.
        """
        if len(self.directories) == 1:
            return list(self.directories)
        # Texts: there may be many thousands of logs, and equal paths are slow to compare.
        counts = Counter(str(log.parent_dir) for log in self.all().values())
        return sorted(self.directories, key=lambda path: counts[str(path)])

    def failed(self, path: Path, sentence: str, error: KafkaStorageError) -> None:
        """
        Report that the disk under a directory has failed.
        """
        self.failures.maybe_add_offline_log_dir(path, sentence, error)

    # Checkpoints

    def checkpoint(self, path: Path) -> None:
        """
        Write what is known of the logs of one directory, after they have become others.
        """
        directory = self.directories[path]
        logs = self.inside(path)
        self.write(directory, partial(directory.checkpoint_log_start_offsets, logs))
        self.write(directory, partial(directory.checkpoint_recovery_points, logs))

    def write(self, directory: LogDirectory, write: Callable[[], None]) -> None:
        """
        Write a checkpoint; a failure takes the directory offline, and is not the caller's.
        """
        try:
            write()
        except KafkaStorageError as error:
            self.failed(
                directory.path, f"Disk error while writing a checkpoint in {directory.path}", error
            )
