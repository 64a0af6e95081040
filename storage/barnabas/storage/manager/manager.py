"""
All logs of a broker, in one or several log directories.

::

    LogManager --+-- LogDirectories --+-- LogDirectory /data/1 --- lock, checkpoints, clean mark
                 |                    +-- LogDirectory /data/2 ...
                 +-- LogCatalog --+-- orders-0 --- Log
                 |                +-- orders-1 --- Log ...
                 +-- LogLoading       at the start, several logs at a time
                 +-- LogMaintenance        threads: retention, flushes, checkpoints, ...
                 +-- LogCleaner       threads: compaction
                 +-- LogDeletions     logs that are deleted, until their files go

The manager makes and deletes logs. A directory whose disk fails becomes offline with its logs, and
the others continue (Kafka's ``LogManager``, KIP-112).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from uuid import UUID

from barnabas.protocol.errors import InconsistentTopicId
from barnabas.storage.cleaner.pool import LogCleaner
from barnabas.storage.cleaner.settings import CleanerSettings
from barnabas.storage.clock import Clock
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.directories.catalog import LogCatalog
from barnabas.storage.directories.directories import LogDirectories
from barnabas.storage.directories.directory import RECOVERY_POINT_CHECKPOINT
from barnabas.storage.errors import (
    KafkaError,
    KafkaStorageError,
    TooManyOpenFiles,
    is_name_too_long,
)
from barnabas.storage.fs.interface import Files
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.log.log import Log
from barnabas.storage.manager.closing import close_directories
from barnabas.storage.manager.loading import IsStray, LoadProgress, LoadReport, LogLoading
from barnabas.storage.manager.maintenance import LogMaintenance, LogManagerSettings
from barnabas.storage.manager.removal import LogDeletions
from barnabas.storage.producers.state import ProducerStateManagerConfig
from barnabas.storage.recovery.opening import open_log
from barnabas.storage.state_files.file_names import log_delete_dir_name, log_dir_name
from barnabas.storage.threads.background import Alarm
from barnabas.storage.topic_partition import TopicPartition

__all__ = ["LoadReport", "LogManager", "LogManagerSettings"]

logger = logging.getLogger(__name__)


class LogManager:
    """
    Finds, makes and deletes logs, and runs their maintenance.

    Invariants:

    1. A log is found from the return of ``get_or_create_log`` until ``delete_logs`` begins.
    2. Every file of the directories belongs to this manager while it holds their locks.

    Safe from any thread. The lock is for making and deleting; finding a log needs none.
    """

    def __init__(
        self,
        directories: Sequence[Path],
        *,
        files: Files,
        clock: Clock,
        failures: LogDirFailureChannel,
        default_config: LogConfig,
        settings: LogManagerSettings,
        on_all_failed: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Take the directories, which are made if they are missing.

        Args:
            on_all_failed: called once no directory is left; from any thread.

        Raises:
            LogDirectoryLocked: another broker uses one of them.
            KafkaStorageError: none of them can be used.
            ValueError: the settings of the cleaner leave no room for a key.
        """
        self.default_config = default_config
        self.failures = failures
        self._files = files
        self._clock = clock
        self._recovery_threads = settings.recovery_threads_per_directory
        self._producer_config = ProducerStateManagerConfig(
            producer_id_expiration_ms=settings.producer_id_expiration_ms,
            transaction_verification_enabled=settings.transaction_verification,
        )
        self._alarm = Alarm()
        self._open_log = partial(
            open_log,
            files=files,
            clock=clock,
            failures=failures,
            producer_config=self._producer_config,
            wake_at=self._alarm.at,
        )
        self._on_all_failed = on_all_failed
        self.directories = LogDirectories(directories, files, failures)
        self._catalog = LogCatalog(self.directories)
        self._unserved: list[Log] = []
        self._deletions = LogDeletions(clock, self._alarm)
        self._changing = threading.RLock()
        self._renaming = threading.Lock()
        self._closed = False
        self._loaded = False
        self._loading: LogLoading | None = None
        try:
            self.cleaner = self._make_cleaner(settings.cleaner)
            self.maintenance = LogMaintenance(self._catalog, clock, settings, self.cleaner)
        except BaseException:
            self.directories.release()
            raise

    # Finding

    def get_log(self, partition: TopicPartition) -> Log | None:
        """
        The log of *partition*, if there is one that is online.
        """
        return self._catalog.logs.get(partition)

    def logs(self) -> Mapping[TopicPartition, Log]:
        """
        All logs, as of now.
        """
        return self._catalog.all()

    # Starting

    def load(self, configs: Mapping[str, LogConfig], is_stray: IsStray) -> LoadReport:
        """
        Load all logs, after a crash recovering them.

        Args:
            configs: by topic, where it has configs of its own.
            is_stray: whether a log belongs to no topic any more.

        Raises:
            InvalidLogDirectory: a directory is no log, or there are two logs for one partition.
            CorruptRecord: a log that was stopped cleanly cannot be read.
        """
        began = self._clock.monotonic()
        loading = LogLoading(
            self._catalog,
            self._open_log,
            default_config=self.default_config,
            configs=configs,
            is_stray=is_stray,
            threads=self._recovery_threads,
            blocks_read=self._files.blocks_read,
        )
        self._loading = loading
        report = loading.load()
        self._loaded = True
        self._loading = None
        self._unserved += loading.unserved
        for log in loading.deleted:
            self._schedule_deletion(log)
        self.handle_failures()
        report.seconds = self._clock.monotonic() - began
        return report

    @property
    def load_progress(self) -> LoadProgress | None:
        """
        How far the load of all logs is; None before it begins and after it has ended.
        """
        loading = self._loading
        return None if loading is None else loading.progress

    @property
    def deleted_segments(self) -> int:
        """
        Segments that retention has deleted since the start.
        """
        by_cleaner = 0 if self.cleaner is None else self.cleaner.totals.deleted_segments
        return self.maintenance.deleted_segments + by_cleaner

    def start(self) -> None:
        """
        Start the threads for the logs.
        """
        self.maintenance.start(self.remove_deleted, self._alarm)
        if self.cleaner is not None:
            self.cleaner.start()

    # Making and deleting

    def get_or_create_log(
        self,
        partition: TopicPartition,
        *,
        topic_id: UUID | None = None,
        config: LogConfig | None = None,
        is_new: bool = True,
    ) -> Log:
        """
        The log of *partition*, made in the directory that has the fewest if there is none.

        Args:
            is_new: false for a partition that has existed before. Its log is not made while a
                directory is offline, since its records may be there.

        Raises:
            InconsistentTopicId: the log belongs to another topic of that name.
            KafkaStorageError: no directory can hold it.
        """
        with self._changing:
            log = self._catalog.logs.get(partition)
            if log is None:
                self._check_open()
                if not is_new and self.directories.offline:
                    names = ", ".join(map(str, self.directories.offline))
                    raise KafkaStorageError(
                        f"Can not create log for {partition} because log directories {names}"
                        " are offline"
                    )
                log = self._create(partition, topic_id, config or self.default_config)
                self._catalog.logs[partition] = log
        if topic_id is not None and log.topic_id not in (None, topic_id):
            raise InconsistentTopicId(
                f"Tried to assign topic ID {topic_id} to log for topic partition {partition},"
                f" but log already contained topic ID {log.topic_id}"
            )
        return log

    def check_descriptors(self) -> None:
        """
        Check that a log could be made now.

        Raises:
            TooManyOpenFiles: no file can be opened.
        """
        for path in self.directories.live:
            with suppress(FileNotFoundError):
                checkpoint = path / RECOVERY_POINT_CHECKPOINT
                self._files.open(checkpoint, create=False, read_only=True).close()

    def _check_open(self) -> None:
        """
        Another broker may own the directories when this one has stopped.
        """
        if self._closed:
            raise KafkaStorageError("The logs are closed, for the broker stops")

    def _create(self, partition: TopicPartition, topic_id: UUID | None, config: LogConfig) -> Log:
        error: KafkaStorageError | None = None
        for parent in self.directories.next_log_dirs(self._catalog.logs):
            path = parent / log_dir_name(partition)
            try:
                return self._open_log(path, config, topic_id=topic_id)
            except KafkaStorageError as failure:
                if is_name_too_long(failure):
                    raise  # the directory is fine for all other partitions
                self.directories.failed(
                    parent, f"Error while creating log for {partition} in {parent}", failure
                )
                error = failure
        raise error or KafkaStorageError(f"No log directory is left for {partition}")

    def delete_logs(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, KafkaError]:
        """
        Delete several logs, writing each checkpoint once. A log that cannot be deleted does not
        keep the others.

        Returns:
            Why logs cannot be deleted: a log cannot be renamed, or may be in a directory that is
            offline. None of the logs is found any more.
        """
        parents = set()
        errors: dict[TopicPartition, KafkaError] = {}
        for partition in partitions:
            try:
                parents.add(self._delete(partition))
            except (KafkaStorageError, TooManyOpenFiles) as error:
                errors[partition] = error
        for parent in parents & self.directories.live.keys():
            if self.cleaner is not None:
                self.cleaner.manager.update_checkpoints(parent)
            self._catalog.checkpoint(parent)
        return errors

    def _delete(self, partition: TopicPartition) -> Path:
        with self._changing:
            log = self._catalog.logs.pop(partition, None)
        if log is None:
            if self.directories.offline:
                raise KafkaStorageError(
                    f"Failed to delete log for {partition} because it may be in one of the offline"
                    f" directories {', '.join(map(str, self.directories.offline))}"
                )
            raise KafkaStorageError(f"There is no log for {partition}")
        if self.cleaner is not None:
            # The catalog does not have the log any more, so that no thread takes it again.
            self.cleaner.manager.abort_cleaning(partition)
        try:
            with self._renaming:
                self._check_open()
                log.rename_dir(log_delete_dir_name(partition), should_reinitialize=False)
                self._schedule_deletion(log)
        except (KafkaStorageError, TooManyOpenFiles):
            # The catalog does not have it any more, so that no other code closes its files.
            log.close_handlers()
            raise
        return log.parent_dir

    def _schedule_deletion(self, log: Log) -> None:
        self._deletions.schedule(log, self.default_config.file_delete_delay_ms)

    def update_topic_configs(self, configs: Mapping[str, LogConfig]) -> None:
        """
        Change the configurations of the logs of several topics. It blocks while a log that is no
        longer compacted is being cleaned.
        """
        for partition, log in self.logs().items():
            config = configs.get(partition.topic)
            if config is None:
                continue
            was_compacted = log.config.compact
            log.update_config(config)
            if was_compacted and not config.compact and self.cleaner is not None:
                self.cleaner.manager.abort_cleaning(partition)

    def configure(
        self,
        *,
        producer_id_expiration_ms: int,
        transaction_verification: bool,
        recovery_threads_per_directory: int,
    ) -> None:
        """
        Use these settings from now on, for all logs.
        """
        with self._changing:
            self._recovery_threads = recovery_threads_per_directory
            self._producer_config.producer_id_expiration_ms = producer_id_expiration_ms
            self._producer_config.transaction_verification_enabled = transaction_verification

    def remove_deleted(self) -> None:
        """
        Remove the files and the logs whose delay after deletion is over.
        """
        self.maintenance.for_each(lambda log: log.remove_deleted_files())
        self._deletions.remove_due()

    # Failing

    def handle_failures(self) -> list[TopicPartition]:
        """
        Take directories offline that were reported to have failed.

        Returns:
            The partitions whose logs are offline now and were not before.
        """
        lost: list[TopicPartition] = []
        for path in self.failures.take_news():
            lost += self._take_offline(path)
        return lost

    def _take_offline(self, path: Path) -> list[TopicPartition]:
        with self._changing:
            directory = self.directories.take_offline(path)
            if directory is None:
                return []
            lost = [
                partition for partition, log in self._catalog.logs.items() if log.parent_dir == path
            ]
            logs = [self._catalog.logs.pop(partition) for partition in lost]
        logger.warning("Log directory %s is offline, with %d logs", path, len(lost))
        steps: list[Callable[[], None]] = [log.close_handlers for log in logs]
        if self.cleaner is not None:
            steps.append(partial(self.cleaner.manager.handle_log_dir_failure, path))
        for step in [*steps, directory.release]:
            try:
                step()
            except Exception:
                # The partitions are lost in any case, and the caller needs their names.
                logger.exception("Log directory %s cannot be given back in full", path)
        if not self.directories.live:
            logger.critical("All log directories have failed: %s", self.directories)
            self._on_all_failed()
        return lost

    def _make_cleaner(self, settings: CleanerSettings) -> LogCleaner | None:
        if not settings.enabled:
            logger.warning("log.cleaner.enable is false: compacted topics are not compacted")
            return None
        return LogCleaner(settings, self._catalog, files=self._files, clock=self._clock)

    # Stopping

    def shutdown(self, broker_epoch: int = -1, *, seconds: float = 30.0) -> bool:
        """
        Stop the threads, flush and close all logs, and mark the directories as stopped cleanly.

        A directory in which anything fails keeps no mark, so that the next start recovers it.

        Args:
            broker_epoch: noted in the marks; -1 if not known.
            seconds: how long to wait for a round of a thread that is under way.

        Returns:
            Whether every log was closed and every directory marked. Later calls do nothing.
        """
        with self._changing:
            if self._closed:
                return True
            self._closed = True
        with self._renaming:
            pass  # The last deletion that has begun is over: no other one begins.
        if self.cleaner is not None:
            # First of all: it replaces segments of logs that are to be flushed.
            self.cleaner.stop(seconds)
        self.maintenance.stop(seconds)
        if self._loaded:
            self.maintenance.checkpoint_high_watermarks()
        threads = self._recovery_threads
        is_clean = close_directories(
            list(self._catalog.by_directory()),
            threads=threads,
            broker_epoch=broker_epoch,
            are_all=self._loaded,
            clock=self._clock,
        )
        self._close_unserved()
        self.directories.release()
        return is_clean

    def _close_unserved(self) -> None:
        for log in [*self._unserved, *self._deletions]:
            log.close_handlers()
