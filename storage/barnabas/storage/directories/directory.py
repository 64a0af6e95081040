"""
One log directory, with the files beside its logs.

::

    <log dir>/
      .lock                                held while a broker uses the directory
      .kafka_cleanshutdown                 between a clean stop and the next start
      meta.properties                      cluster, node and id of the directory
      recovery-point-offset-checkpoint     per log: the end of the flushed records
      log-start-offset-checkpoint          per log that starts inside its first segment
      replication-offset-checkpoint        per log: its high watermark
      orders-0/ orders-1/ ...              the logs
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Container, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

from barnabas.storage.config.option_values import did_you_mean
from barnabas.storage.directories.cleaner_checkpoint import CLEANER_CHECKPOINT
from barnabas.storage.errors import (
    CorruptCheckpoint,
    KafkaStorageError,
    LaterCheckpoint,
    LogDirectoryLocked,
)
from barnabas.storage.fs.disk_lock import DiskLock
from barnabas.storage.fs.interface import Files, Lock
from barnabas.storage.state_files.checkpoints import CleanShutdownFile, OffsetCheckpointFile
from barnabas.storage.state_files.file_names import (
    CLUSTER_METADATA_TOPIC,
    REMOTE_LOG_INDEX_CACHE,
    parse_topic_partition_name,
)
from barnabas.storage.state_files.meta_properties import META_PROPERTIES, read_meta_properties
from barnabas.storage.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.storage.log.log import Log

logger = logging.getLogger(__name__)

LOCK_FILE: Final = ".lock"
RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"


class LogDirectory:
    """
    A log directory that this broker has locked.

    Invariants:

    1. The lock is held from ``open`` to ``release``.
    2. The mark of a clean stop is gone before the first log is loaded, so that a crash while
       loading counts as one.
    """

    def __init__(self, path: Path, files: Files, lock: Lock) -> None:
        self.path = path
        self._id: UUID | None = None
        self.had_clean_shutdown = False
        self.all_loaded = False
        self.recovery_points: Mapping[TopicPartition, int] = {}
        self.log_start_offsets: Mapping[TopicPartition, int] = {}
        self.high_watermarks: Mapping[TopicPartition, int] = {}
        self.compacted: Container[TopicPartition] = ()
        """Logs that the cleaner has cleaned."""
        self.checkpointing = threading.Lock()
        """Held while logs are looked at for a checkpoint and while that is written."""
        self.is_released = False
        self._files = files
        self._lock = lock
        self._clean_shutdown = CleanShutdownFile(files, path)
        self._recovery_points = OffsetCheckpointFile(files, path / RECOVERY_POINT_CHECKPOINT)
        self._log_start_offsets = OffsetCheckpointFile(files, path / LOG_START_OFFSET_CHECKPOINT)
        self._high_watermarks = OffsetCheckpointFile(files, path / HIGH_WATERMARK_CHECKPOINT)
        self._written_high_watermarks: Mapping[TopicPartition, int] | None = None

    @classmethod
    def open(cls, path: Path, files: Files) -> LogDirectory:
        """
        Take a directory; it is made if it is missing.

        Raises:
            LogDirectoryLocked: another broker uses it.
            KafkaStorageError: it cannot be made, read or locked.
        """
        if not files.exists(path):
            logger.info("Creating the log directory %s%s", path, _hint(path, files))
            files.make_directory(path)
            files.sync_directory(path.parent)
        if not files.is_directory(path):
            raise KafkaStorageError(f"{path} is not a directory") from NotADirectoryError(path)
        lock = files.lock(path / LOCK_FILE)
        if lock is None:
            raise LogDirectoryLocked(path, _lock_holder(path))
        try:
            opened = cls(path, files, lock)
            opened.read_id()
        except BaseException:
            lock.release()
            raise
        return opened

    @property
    def id(self) -> UUID | None:
        """
        The id in ``meta.properties``; there is none until the directory is formatted.
        """
        if self._id is None:
            self.read_id()
        return self._id

    def read_id(self) -> None:
        """
        Read ``meta.properties``, if the directory is formatted.

        Raises:
            CorruptCheckpoint: the file lacks something, or is of a later version.
            KafkaStorageError: it cannot be read.
        """
        if self._files.exists(path := self.path / META_PROPERTIES):
            self._id = read_meta_properties(self._files, path).directory_id

    # Starting

    def clean_shutdown_epoch(self) -> int | None:
        """
        The broker epoch in the mark of a clean stop, if the mark exists and has one.
        """
        return self._clean_shutdown.read()

    def begin_loading(self) -> bool:
        """
        Read the checkpoints, and remove the mark of a clean stop; return whether there was one.

        Raises:
            KafkaStorageError: a checkpoint cannot be read, or is malformed.
        """
        self.had_clean_shutdown = self._clean_shutdown.exists()
        if self.had_clean_shutdown:
            self._clean_shutdown.delete()
        self.recovery_points = self._read(self._recovery_points)
        self.log_start_offsets = self._read(self._log_start_offsets)
        self.high_watermarks = self._read(self._high_watermarks)
        if self._files.exists(path := self.path / CLEANER_CHECKPOINT):
            self.compacted = self._read(OffsetCheckpointFile(self._files, path))
        return self.had_clean_shutdown

    def end_loading(self) -> None:
        """
        Free the content of the checkpoints, which all logs have now.
        """
        self.recovery_points = self.log_start_offsets = self.high_watermarks = {}
        self.compacted = ()

    @staticmethod
    def _read(checkpoint: OffsetCheckpointFile) -> Mapping[TopicPartition, int]:
        try:
            return checkpoint.read()
        except LaterCheckpoint:
            raise  # The version that wrote the file can still read it.
        except CorruptCheckpoint as error:
            # To continue without it could bring deleted records back. Kafka takes the directory
            # offline as well; an administrator who removes the file accepts that.
            raise KafkaStorageError(f"{error}; remove the file to do without it") from error

    def log_paths(self) -> list[tuple[Path, TopicPartition]]:
        """
        The directories of logs in this one, in the order of their names.

        Raises:
            InvalidLogDirectory: there is a directory that is none.
        """
        paths = []
        for name in self._files.directory_names(self.path):
            if name == REMOTE_LOG_INDEX_CACHE:
                continue
            path = self.path / name
            partition = parse_topic_partition_name(path)
            # The log of the cluster's metadata has an owner of its own.
            if partition.topic != CLUSTER_METADATA_TOPIC:
                paths.append((path, partition))
        return paths

    # Running and stopping

    def checkpoint_recovery_points(self, logs: Mapping[TopicPartition, Log]) -> None:
        """
        Write the recovery points of *logs*, after their starts were written.

        Deleted records count as flushed without a flush. A crash between the two checkpoints in the
        other order would leave a log that starts with torn records which are never checked.
        """
        self._recovery_points.write(
            {partition: log.recovery_point for partition, log in logs.items()}
        )

    def checkpoint_log_start_offsets(self, logs: Mapping[TopicPartition, Log]) -> None:
        """
        Write the starts of the logs that start inside their first segment.
        """
        self._log_start_offsets.write(
            {
                partition: log.log_start_offset
                for partition, log in logs.items()
                if log.log_start_offset > log.first_segment_base_offset
            }
        )

    def checkpoint_high_watermarks(self, logs: Mapping[TopicPartition, Log]) -> None:
        """
        Write the high watermarks if any has changed since the last call, every few seconds.

        A disk that fails is noticed within a minute in any case, by the other checkpoints.
        """
        offsets = {partition: log.high_watermark for partition, log in logs.items()}
        if offsets != self._written_high_watermarks:
            self._high_watermarks.write(offsets)
            self._written_high_watermarks = offsets

    def mark_clean(self, broker_epoch: int) -> None:
        """
        Write the mark of a clean stop, unless the start before it was not complete.
        """
        if self.had_clean_shutdown or self.all_loaded:
            self._clean_shutdown.write(broker_epoch)

    def release(self) -> None:
        """
        Release the lock, so that another broker can take the directory; harmless when repeated.
        """
        self.is_released = True
        self._lock.release()


def _hint(path: Path, files: Files) -> str:
    """
    The end of a sentence that names a log directory beside *path* with nearly the same name, which
    may be the one that was meant.
    """
    if not files.is_directory(path.parent):
        return ""
    beside = [
        name
        for name in files.directory_names(path.parent)
        if files.exists(path.parent / name / META_PROPERTIES)
    ]
    # The search for similar names loads a library, which a start should not.
    return did_you_mean(path.name, beside) if beside else ""


def _lock_holder(path: Path) -> int | None:
    """
    The process that has the lock of a directory on the disk, or None if that is not known.
    """
    with suppress(OSError):
        return DiskLock.holder(path / LOCK_FILE)
    return None
