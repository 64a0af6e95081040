"""
All logs of a broker, in one or several log directories.

::

    LogManager --+-- LogDirectory /data/1 --- lock, checkpoints, clean-shutdown marker
                 |        +-- orders-0 --- Log
                 |        +-- orders-1 --- Log
                 +-- LogDirectory /data/2 ...

The manager loads the logs at the start, several at a time; makes and deletes logs; and does in
threads of its own what time or size ask for: retention, flushes, checkpoints, removal of deleted
logs, forgetting of idle producers. A directory whose disk fails goes offline with its logs, and the
others serve on (Kafka's ``LogManager``, KIP-112).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from barnabas.protocol.errors import InconsistentTopicId
from barnabas.storage.background import PeriodicThread
from barnabas.storage.clock import Clock
from barnabas.storage.errors import InvalidLogDirectory, KafkaStorageError
from barnabas.storage.files import Files
from barnabas.storage.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.storage.log_dir_failure import LogDirFailureChannel
from barnabas.storage.log_directory import LogDirectory
from barnabas.storage.log_files import (
    DELETE_DIR_SUFFIX,
    STRAY_DIR_SUFFIX,
    TopicPartition,
    log_delete_dir_name,
    log_dir_name,
    log_stray_dir_name,
)

logger = logging.getLogger(__name__)

IsStray = Callable[[UUID | None, TopicPartition], bool]
"""
Whether the metadata does not know the log of that topic id and partition here.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogManagerSettings:
    """
    How often the manager does what; all in ms.
    """

    retention_check_ms: int
    flush_check_ms: int
    recovery_point_checkpoint_ms: int
    log_start_offset_checkpoint_ms: int
    high_watermark_checkpoint_ms: int
    producer_id_expiration_ms: int
    producer_id_expiration_check_ms: int
    initial_task_delay_ms: int
    recovery_threads_per_directory: int


@dataclass(slots=True)
class LoadReport:
    """
    What loading the logs came to.
    """

    loaded: int = 0
    recovered: int = 0
    """Logs of directories that were not stopped cleanly."""
    strays: list[Path] = field(default_factory=list)
    unclean: list[Path] = field(default_factory=list)
    seconds: float = 0.0


class _Deletion(NamedTuple):
    log: Log
    due_ms: int


class LogManager:
    """
    Finds, makes and deletes logs, and looks after them.

    Invariants:

    1. A partition has at most one log here, and it lies in a directory that is online.
    2. A log is found from the return of ``get_or_create_log`` until ``delete_log`` begins.
    3. Every file of the directories belongs to this manager while it holds their locks.

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
        """
        self.default_config = default_config
        self.failures = failures
        self._files = files
        self._clock = clock
        self._settings = settings
        self._on_all_failed = on_all_failed
        self._logs: dict[TopicPartition, Log] = {}
        self._stray_logs: list[Log] = []
        self._deletions: deque[_Deletion] = deque()
        self._changing = threading.RLock()
        self._threads: list[PeriodicThread] = []
        self._closed = False
        self._directories: dict[Path, LogDirectory] = {}
        self._all = tuple(path.absolute() for path in directories)
        try:
            for path in self._all:
                self._open_directory(path)
        except BaseException:
            self._release_locks()
            raise
        if not self._directories:
            raise KafkaStorageError(f"None of the log directories can be used: {self._names()}")

    # Finding

    @property
    def live_directories(self) -> tuple[Path, ...]:
        """
        The log directories that are online.
        """
        return tuple(self._directories)

    @property
    def offline_directories(self) -> tuple[Path, ...]:
        """
        The log directories that have failed.
        """
        return tuple(path for path in self._all if path not in self._directories)

    @property
    def directory_ids(self) -> Mapping[Path, UUID]:
        """
        The ids of the directories that are online and have one (``directory.id``, KIP-858).
        """
        return {
            path: directory.id
            for path, directory in self._directories.items()
            if directory.id is not None
        }

    def get_log(self, partition: TopicPartition) -> Log | None:
        """
        The log of *partition*, if there is one that is online.
        """
        return self._logs.get(partition)

    def logs(self) -> Mapping[TopicPartition, Log]:
        """
        All logs, as of now.
        """
        return dict(self._logs)

    def broker_epoch_of_clean_shutdown(self) -> int | None:
        """
        The broker epoch that every directory noted at its clean stop; ask before ``load``.
        """
        if self.offline_directories:
            return None
        epochs = {directory.clean_shutdown_epoch() for directory in self._directories.values()}
        return epochs.pop() if len(epochs) == 1 else None

    # Starting

    def load(self, configs: Mapping[str, LogConfig], is_stray: IsStray) -> LoadReport:
        """
        Load all logs, after a crash recovering them.

        Args:
            configs: by topic, where it has configs of its own.
            is_stray: tells what was left behind by topics that are gone.

        Raises:
            InvalidLogDirectory: a directory is no log, or there are two logs for one partition.
            CorruptRecord: a log that was stopped cleanly cannot be read.
        """
        began = self._clock.monotonic()
        report = LoadReport()
        jobs: list[tuple[LogDirectory, list[Future[Log | None]]]] = []
        pools: list[ThreadPoolExecutor] = []
        try:
            for directory in list(self._directories.values()):
                pool, futures = self._start_loading(directory, configs, is_stray, report)
                pools.append(pool)
                jobs.append((directory, futures))
            for directory, futures in jobs:
                loaded = [future.result() for future in futures]
                # A failed log stays for the next start; until then this directory is unclean.
                directory.all_loaded = None not in loaded
                report.loaded += len(loaded) - loaded.count(None)
        finally:
            for pool in pools:
                pool.shutdown(cancel_futures=True)
        self.handle_failures()
        report.seconds = self._clock.monotonic() - began
        return report

    def _start_loading(
        self,
        directory: LogDirectory,
        configs: Mapping[str, LogConfig],
        is_stray: IsStray,
        report: LoadReport,
    ) -> tuple[ThreadPoolExecutor, list[Future[Log | None]]]:
        pool = ThreadPoolExecutor(
            self._settings.recovery_threads_per_directory, f"log-recovery-{directory.path}"
        )
        try:
            clean = directory.begin_loading()
            paths = directory.log_paths()
        except KafkaStorageError as error:
            self._failed(directory.path, "Error while loading log dir", error)
            return pool, []
        if not clean and paths:
            report.unclean.append(directory.path)
            report.recovered += len(paths)
        load = partial(self._load, directory, configs=configs, is_stray=is_stray, report=report)
        return pool, [pool.submit(load, path, partition) for path, partition in paths]

    def _load(
        self,
        directory: LogDirectory,
        path: Path,
        partition: TopicPartition,
        *,
        configs: Mapping[str, LogConfig],
        is_stray: IsStray,
        report: LoadReport,
    ) -> Log | None:
        """
        Load one log; None if the disk fails, which takes the directory offline.
        """
        marked_deleted = path.name.endswith(DELETE_DIR_SUFFIX)
        try:
            log = self._open_log(
                path,
                configs.get(partition.topic, self.default_config),
                log_start_offset=directory.log_start_offsets.get(partition, 0),
                recovery_point=directory.recovery_points.get(partition, 0),
                high_watermark=directory.high_watermarks.get(partition, 0),
                had_clean_shutdown=directory.had_clean_shutdown,
            )
            if marked_deleted:
                self._schedule_deletion(log)
            elif path.name.endswith(STRAY_DIR_SUFFIX):
                self._stray_logs.append(log)
            elif is_stray(log.topic_id, partition):
                log.rename_dir(log_stray_dir_name(partition), should_reinitialize=False)
                logger.warning("%s is no log of a known topic and was renamed to %s", path, log.dir)
                report.strays.append(log.dir)
                self._stray_logs.append(log)
            else:
                self._admit(partition, log)
        except KafkaStorageError as error:
            self._failed(directory.path, f"Error while loading {path}", error)
            return None
        return log

    def _admit(self, partition: TopicPartition, log: Log) -> None:
        with self._changing:
            other = self._logs.setdefault(partition, log)
        if other is not log:
            raise InvalidLogDirectory(
                f"Duplicate log directories for {partition} are found in both {log.dir} and"
                f" {other.dir}. Delete the one in the log directory that is known to have failed.",
                path=log.dir,
            )

    def start(self) -> None:
        """
        Begin to look after the logs, in threads.
        """
        settings = self._settings
        for name, interval_ms, work in (
            ("retention-check", settings.retention_check_ms, self.check_retention),
            ("log-flusher", settings.flush_check_ms, self.flush_dirty_logs),
            (
                "recovery-point-checkpoint",
                settings.recovery_point_checkpoint_ms,
                self.checkpoint_recovery_points,
            ),
            (
                "log-start-offset-checkpoint",
                settings.log_start_offset_checkpoint_ms,
                self.checkpoint_log_start_offsets,
            ),
            (
                "producer-id-expiration",
                settings.producer_id_expiration_check_ms,
                self.expire_producers,
            ),
        ):
            self._start_thread(name, interval_ms, work, settings.initial_task_delay_ms)
        self._start_thread(
            "high-watermark-checkpoint",
            settings.high_watermark_checkpoint_ms,
            self.checkpoint_high_watermarks,
            settings.high_watermark_checkpoint_ms,
        )
        self._start_thread("file-removal", 1000, self.remove_deleted, 0)

    def _start_thread(
        self, name: str, interval_ms: int, work: Callable[[], None], delay_ms: int
    ) -> None:
        thread = PeriodicThread(name, interval_ms, work, clock=self._clock, delay_ms=delay_ms)
        self._threads.append(thread)
        thread.start()

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
            is_new: false for a partition that has existed before. It is not made anew while a
                directory is offline, since its records may be in there.

        Raises:
            InconsistentTopicId: the log belongs to another topic of that name.
            KafkaStorageError: no directory can hold it.
        """
        with self._changing:
            log = self._logs.get(partition)
            if log is None:
                if not is_new and self.offline_directories:
                    names = ", ".join(map(str, self.offline_directories))
                    raise KafkaStorageError(
                        f"Can not create log for {partition} because log directories {names}"
                        " are offline"
                    )
                log = self._create(partition, topic_id, config or self.default_config)
                self._logs[partition] = log
        if topic_id is not None and log.topic_id not in (None, topic_id):
            raise InconsistentTopicId(
                f"Tried to assign topic ID {topic_id} to log for topic partition {partition},"
                f" but log already contained topic ID {log.topic_id}"
            )
        return log

    def _create(self, partition: TopicPartition, topic_id: UUID | None, config: LogConfig) -> Log:
        error: KafkaStorageError | None = None
        for parent in self._by_fewest_logs():
            path = parent / log_dir_name(partition)
            try:
                self._files.make_directory(path)
                return self._open_log(path, config, topic_id=topic_id)
            except KafkaStorageError as failure:
                self._failed(
                    parent, f"Error while creating log for {partition} in {parent}", failure
                )
                error = failure
        raise error or KafkaStorageError(f"No log directory is left for {partition}")

    def _by_fewest_logs(self) -> list[Path]:
        counts = dict.fromkeys(self._directories, 0)
        for log in self._logs.values():
            if log.parent_dir in counts:
                counts[log.parent_dir] += 1
        return sorted(counts, key=counts.__getitem__)

    def _open_log(
        self,
        path: Path,
        config: LogConfig,
        *,
        topic_id: UUID | None = None,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        high_watermark: int = 0,
        had_clean_shutdown: bool = True,
    ) -> Log:
        return Log.create(
            path,
            config,
            files=self._files,
            clock=self._clock,
            failures=self.failures,
            topic_id=topic_id,
            log_start_offset=log_start_offset,
            recovery_point=recovery_point,
            high_watermark=high_watermark,
            had_clean_shutdown=had_clean_shutdown,
            producer_id_expiration_ms=self._settings.producer_id_expiration_ms,
        )

    def delete_log(self, partition: TopicPartition) -> None:
        """
        Delete the log of *partition*: renamed at once, removed after ``file.delete.delay.ms``.

        Raises:
            KafkaStorageError: it cannot be renamed, or may be in a directory that is offline.
        """
        self.delete_logs([partition])

    def delete_logs(self, partitions: Iterable[TopicPartition]) -> None:
        """
        Delete several logs, writing each checkpoint once; errors as ``delete_log``.
        """
        parents = set()
        try:
            for partition in partitions:
                parents.add(self._delete(partition))
        finally:
            for parent in parents & self._directories.keys():
                self._checkpoint(parent)

    def _delete(self, partition: TopicPartition) -> Path:
        with self._changing:
            log = self._logs.pop(partition, None)
        if log is None:
            if self.offline_directories:
                raise KafkaStorageError(
                    f"Failed to delete log for {partition} because it may be in one of the offline"
                    f" directories {', '.join(map(str, self.offline_directories))}"
                )
            raise KafkaStorageError(f"There is no log for {partition}")
        log.rename_dir(log_delete_dir_name(partition), should_reinitialize=False)
        self._schedule_deletion(log)
        return log.parent_dir

    def _schedule_deletion(self, log: Log) -> None:
        due_ms = self._clock.now_ms() + self.default_config.file_delete_delay_ms
        self._deletions.append(_Deletion(log, due_ms))

    def update_topic_config(self, topic: str, config: LogConfig) -> None:
        """
        Let the logs of *topic* go by *config* from now on.
        """
        for partition, log in self.logs().items():
            if partition.topic == topic:
                log.update_config(config)

    # What the threads do; tests call it themselves

    def check_retention(self) -> None:
        """
        Delete the segments that retention lets go of.
        """
        self._for_each(lambda log: log.delete_old_segments())

    def flush_dirty_logs(self) -> None:
        """
        Flush the logs whose last flush is ``flush.ms`` ago.
        """
        now_ms = self._clock.now_ms()

        def flush(log: Log) -> None:
            if now_ms - log.last_flush_time_ms >= log.config.flush_ms:
                log.flush()

        self._for_each(flush)

    def expire_producers(self) -> None:
        """
        Forget producers that were idle for ``producer.id.expiration.ms``.
        """
        now_ms = self._clock.now_ms()
        self._for_each(lambda log: log.remove_expired_producers(now_ms))

    def remove_deleted(self) -> None:
        """
        Remove the files and the logs whose delay after deletion is over.
        """
        self._for_each(lambda log: log.remove_deleted_files())
        now_ms = self._clock.now_ms()
        while self._deletions and self._deletions[0].due_ms <= now_ms:
            log = self._deletions.popleft().log
            try:
                log.delete()
                logger.info("Deleted log for partition %s in %s", log.topic_partition, log.dir)
            except KafkaStorageError:
                logger.exception("%s could not be deleted", log.dir)

    def checkpoint_recovery_points(self) -> None:
        for directory, logs in self._by_directory():
            self._write(directory, partial(directory.checkpoint_recovery_points, logs))

    def checkpoint_log_start_offsets(self) -> None:
        for directory, logs in self._by_directory():
            self._write(directory, partial(directory.checkpoint_log_start_offsets, logs))

    def checkpoint_high_watermarks(self) -> None:
        for directory, logs in self._by_directory():
            self._write(directory, partial(directory.checkpoint_high_watermarks, logs))

    def _for_each(self, work: Callable[[Log], object]) -> None:
        """
        Do *work* with every log; one that fails is logged and the next one has its turn.
        """
        for partition, log in self.logs().items():
            try:
                work(log)
            except Exception:
                logger.exception("%s: %s failed", partition, threading.current_thread().name)

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
            directory = self._directories.pop(path, None)
            if directory is None:
                return []
            lost = [partition for partition, log in self._logs.items() if log.parent_dir == path]
            logs = [self._logs.pop(partition) for partition in lost]
        logger.warning("Log directory %s is offline, with %d logs", path, len(lost))
        for log in logs:
            log.close_handlers()
        directory.release()
        if not self._directories:
            logger.critical("All log directories have failed: %s", self._names())
            self._on_all_failed()
        return lost

    def _failed(self, path: Path, sentence: str, error: KafkaStorageError) -> None:
        self.failures.maybe_add_offline_log_dir(path, sentence, error)

    def _open_directory(self, path: Path) -> None:
        try:
            self._directories[path] = LogDirectory.open(path, self._files)
        except KafkaStorageError as error:
            self._failed(path, f"Failed to create or validate data directory {path}", error)
            self.failures.take_news()

    def _names(self) -> str:
        return ", ".join(map(str, self._all))

    # Checkpoints

    def _checkpoint(self, path: Path) -> None:
        directory = self._directories[path]
        logs = self._logs_in(path)
        self._write(directory, partial(directory.checkpoint_recovery_points, logs))
        self._write(directory, partial(directory.checkpoint_log_start_offsets, logs))

    def _write(self, directory: LogDirectory, write: Callable[[], None]) -> None:
        try:
            write()
        except KafkaStorageError as error:
            self._failed(
                directory.path, f"Disk error while writing a checkpoint in {directory.path}", error
            )

    def _by_directory(self) -> Iterator[tuple[LogDirectory, dict[TopicPartition, Log]]]:
        for path, directory in list(self._directories.items()):
            yield directory, self._logs_in(path)

    def _logs_in(self, path: Path) -> dict[TopicPartition, Log]:
        return {partition: log for partition, log in self.logs().items() if log.parent_dir == path}

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
        for thread in self._threads:
            thread.stop()
        for thread in self._threads:
            thread.join(seconds)
        self.checkpoint_high_watermarks()
        clean = [self._close(directory, broker_epoch) for directory in self._directories.values()]
        self._close_unserved()
        self._release_locks()
        return all(clean)

    def _close(self, directory: LogDirectory, broker_epoch: int) -> bool:
        logs = self._logs_in(directory.path)
        with ThreadPoolExecutor(
            self._settings.recovery_threads_per_directory, f"log-closing-{directory.path}"
        ) as pool:
            closed = list(pool.map(_close_log, logs.values()))
        if not all(closed):
            return False
        try:
            directory.checkpoint_recovery_points(logs)
            directory.checkpoint_log_start_offsets(logs)
            directory.mark_clean(broker_epoch)
        except KafkaStorageError:
            logger.exception("%s could not be marked as stopped cleanly", directory.path)
            return False
        return True

    def _close_unserved(self) -> None:
        for log in [*self._stray_logs, *(deletion.log for deletion in self._deletions)]:
            log.close_handlers()

    def _release_locks(self) -> None:
        for directory in self._directories.values():
            directory.release()


def _close_log(log: Log) -> bool:
    try:
        log.flush(force_flush_active_segment=True)
        log.close()
    except Exception:
        logger.exception("%s could not be closed", log.dir)
        return False
    return True
