"""
The log directories of a broker: those that are online, those that failed, and the choice for a new
log.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from barnabas.storage.directories.directory import LogDirectory
from barnabas.storage.errors import KafkaStorageError, TooManyOpenFiles
from barnabas.storage.fs.interface import Files
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log

logger = logging.getLogger(__name__)


class LogDirectories:
    """
    All directories of ``log.dirs`` (KIP-112).

    Invariants:

    1. A directory that is offline stays so: it is live again after the next start at the earliest.
    2. The lock of each that is live is held, until ``release``.

    Reading is safe from any thread. The log manager makes the changes, with its lock held.
    """

    def __init__(self, paths: Sequence[Path], files: Files, failures: LogDirFailureChannel) -> None:
        """
        Take the directories, which are made if they are missing.

        Raises:
            LogDirectoryLocked: another broker uses one of them.
            KafkaStorageError: none of them can be used.
        """
        self.all = tuple(dict.fromkeys(path.absolute() for path in paths))
        """Online or not, in the order of the configuration."""
        self.failures = failures
        self._live: dict[Path, LogDirectory] = {}
        self._files = files
        try:
            for path in paths:
                self._open(path.absolute())
        except BaseException:
            self.release()
            raise
        if not self._live:
            raise KafkaStorageError(f"None of the log directories can be used: {self}")

    def _open(self, path: Path) -> None:
        try:
            self._live[path] = LogDirectory.open(path, self._files)
        except KafkaStorageError as error:
            self.failed(path, f"Failed to create or validate data directory {path}", error)
            # The report is dropped: no log was loaded there.
            self.failures.take_news()

    @property
    def live(self) -> Mapping[Path, LogDirectory]:
        """
        The directories that are online now.
        """
        return dict(self._live)

    @property
    def offline(self) -> tuple[Path, ...]:
        """
        The directories that have failed.
        """
        return tuple(path for path in self.all if path not in self._live)

    @property
    def ids(self) -> Mapping[Path, UUID]:
        """
        The ids of those that are online and have one (``directory.id``, KIP-858).
        """
        return {
            path: directory.id for path, directory in self.live.items() if directory.id is not None
        }

    def volume_bytes(self, path: Path) -> tuple[int, int]:
        """
        The size of the file system around a directory, and how much of it is free.

        Raises:
            KafkaStorageError: the directory is offline.
        """
        if path not in self._live:
            raise KafkaStorageError(f"Log directory {path} is offline")
        return self._files.total_bytes(path), self._files.usable_bytes(path)

    def clean_shutdown_epoch(self) -> int | None:
        """
        The broker epoch in the marks of all directories, if it is the same; read before they are
        loaded.
        """
        if self.offline:
            return None
        epochs = {directory.clean_shutdown_epoch() for directory in self.live.values()}
        return epochs.pop() if len(epochs) == 1 else None

    def next_log_dirs(self, logs: Mapping[TopicPartition, Log]) -> list[Path]:
        """
        The directories for a new log, beside *logs*: the one that has the fewest first (Kafka's
        ``LogManager.nextLogDirs``).
        """
        live = list(self._live)
        if len(live) == 1:
            return live
        if self.failures.any_offline:
            # One that has just failed is among them until the log manager handles the report.
            live = [path for path in live if not self.failures.has_offline_log_dir(path)] or live
        # Texts: there may be many thousands of logs, and equal paths are slow to compare.
        counts = Counter(str(log.parent_dir) for log in list(logs.values()))
        return sorted(live, key=lambda path: counts[str(path)])

    # Failing

    def failed(self, path: Path, sentence: str, error: KafkaStorageError) -> None:
        """
        Report that the disk under a directory has failed. It becomes offline when the log manager
        handles the report.
        """
        self.failures.maybe_add_offline_log_dir(path, sentence, error)

    def write(self, directory: LogDirectory, write: Callable[[], None]) -> None:
        """
        Write a checkpoint; a failure takes the directory offline, and is not the caller's. If no
        descriptor is left, the next round writes it.
        """
        try:
            write()
        except TooManyOpenFiles as error:
            logger.warning("A checkpoint is written later: %s", error)
        except KafkaStorageError as error:
            self.failed(
                directory.path, f"Disk error while writing a checkpoint in {directory.path}", error
            )

    def take_offline(self, path: Path) -> LogDirectory | None:
        """
        A directory that was live and is not from now on; its lock is still held.
        """
        return self._live.pop(path, None)

    def release(self) -> None:
        """
        Release the locks, so that another broker can take the directories.
        """
        for directory in self._live.values():
            directory.release()

    def __str__(self) -> str:
        return ", ".join(map(str, self.all))
