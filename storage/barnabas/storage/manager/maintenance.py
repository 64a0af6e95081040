"""
The periodic work for all logs, in threads of its own.

Each kind of work has a named thread, on the clock of the broker. A round that fails for one log
continues with the next one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from barnabas.protocol.structs import fresh, struct
from barnabas.storage.cleaner.pool import LogCleaner
from barnabas.storage.cleaner.settings import CleanerSettings
from barnabas.storage.clock import Clock
from barnabas.storage.directories.catalog import STARTS_AND_RECOVERY_POINTS, LogCatalog
from barnabas.storage.directories.directory import LogDirectory
from barnabas.storage.log.log import Log
from barnabas.storage.threads.background import (
    Alarm,
    BackgroundThread,
    alarm_thread,
    periodic_thread,
)
from barnabas.storage.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


@struct(kw_only=True)
class LogManagerSettings:
    """
    The intervals of the work for all logs, in ms, and its options.
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
    transaction_verification: bool = True
    cleaner: CleanerSettings = fresh(factory=CleanerSettings)


LOOKS_PER_CHECK = 100
"""
A log's check for expired producers is late by a hundredth of the interval at most.
"""


class LogMaintenance:
    """
    The threads for the logs of a catalog, and their work.
    """

    def __init__(
        self,
        catalog: LogCatalog,
        clock: Clock,
        settings: LogManagerSettings,
        cleaner: LogCleaner | None,
    ) -> None:
        self._catalog = catalog
        self._clock = clock
        self._settings = settings
        self._cleaner = cleaner
        self._threads: list[BackgroundThread] = []
        self.deleted_segments = 0
        """Segments that retention has deleted since the start. The thread of retention counts."""
        self.next_retention_check_ms: int | None = None
        """When retention is checked next; None until the threads are started."""

    def start(self, remove_deleted: Callable[[], None], alarm: Alarm) -> None:
        """
        Start the threads; that of *alarm* calls *remove_deleted*.
        """
        settings = self._settings
        delay_ms = settings.initial_task_delay_ms
        self.next_retention_check_ms = self._clock.now_ms() + delay_ms
        recovery_ms = settings.recovery_point_checkpoint_ms
        start_ms = settings.log_start_offset_checkpoint_ms
        watermark_ms = settings.high_watermark_checkpoint_ms
        look_ms = max(1, settings.producer_id_expiration_check_ms // LOOKS_PER_CHECK)
        for name, interval_ms, first_ms, work in (
            ("retention-check", settings.retention_check_ms, delay_ms, self.check_retention),
            ("log-flusher", settings.flush_check_ms, delay_ms, self.flush_dirty_logs),
            (
                "recovery-point-checkpoint",
                recovery_ms,
                delay_ms,
                self.checkpoint_recovery_points,
            ),
            (
                "log-start-offset-checkpoint",
                start_ms,
                delay_ms,
                self.checkpoint_log_start_offsets,
            ),
            ("producer-id-expiration", look_ms, 0, self.expire_producers),
            (
                "high-watermark-checkpoint",
                watermark_ms,
                watermark_ms,
                self.checkpoint_high_watermarks,
            ),
        ):
            self._threads.append(
                periodic_thread(name, interval_ms, work, clock=self._clock, delay_ms=first_ms)
            )
        self._threads.append(alarm_thread("file-removal", alarm, remove_deleted, clock=self._clock))
        for thread in self._threads:
            thread.start()

    def stop(self, seconds: float) -> None:
        """
        End the threads, waiting at most *seconds* for the round of each.
        """
        for thread in self._threads:
            thread.stop()
        for thread in self._threads:
            if not thread.join(seconds):
                logger.warning("%s is still busy", thread.name)

    # The work of the threads; tests call it themselves.

    def check_retention(self) -> None:
        """
        Apply retention to the logs that are not compacted. The cleaner does it for those that are;
        without a cleaner it is not applied to them (Kafka's LogManager.cleanupLogs).
        """
        if self._cleaner is None:
            logs = self._catalog.all().items()
            self._apply_retention({name: log for name, log in logs if not log.config.compact})
        else:
            with self._cleaner.manager.paused_uncompacted() as paused:
                self._apply_retention(paused)
        self.next_retention_check_ms = self._clock.now_ms() + self._settings.retention_check_ms

    def _apply_retention(self, logs: Mapping[TopicPartition, Log]) -> None:
        def apply(log: Log) -> None:
            self.deleted_segments += log.delete_old_segments()

        self.for_each(apply, logs)

    def flush_dirty_logs(self) -> None:
        """
        Flush the logs whose last flush is ``flush.ms`` ago.
        """
        now_ms = self._clock.now_ms()

        def flush(log: Log) -> None:
            if now_ms - log.last_flush_time_ms >= log.config.flush_ms:
                log.flush()

        self.for_each(flush)

    def expire_producers(self) -> None:
        """
        Remove producers that were idle for ``producer.id.expiration.ms``.

        Each log has its own rounds, the first of them an interval after the log was opened (Kafka's
        ``UnifiedLog`` schedules them when it is constructed): a producer may send a batch again
        until then, whatever the timestamps of its records are.
        """
        now_ms = self._clock.now_ms()
        interval_ms = self._settings.producer_id_expiration_check_ms

        def expire(log: Log) -> None:
            due_ms = log.next_producer_check_ms
            if due_ms and due_ms <= now_ms:
                log.remove_expired_producers(now_ms)
            if due_ms <= now_ms:
                log.next_producer_check_ms = now_ms + interval_ms

        self.for_each(expire)

    def checkpoint_recovery_points(self) -> None:
        """
        Checkpoint the starts of all logs, and then their recovery points: see
        ``LogDirectory.checkpoint_recovery_points``.
        """
        self._catalog.checkpoint_all(*STARTS_AND_RECOVERY_POINTS)

    def checkpoint_log_start_offsets(self) -> None:
        self._catalog.checkpoint_all(LogDirectory.checkpoint_log_start_offsets)

    def checkpoint_high_watermarks(self) -> None:
        self._catalog.checkpoint_all(LogDirectory.checkpoint_high_watermarks)

    def for_each(
        self, work: Callable[[Log], object], logs: Mapping[TopicPartition, Log] | None = None
    ) -> None:
        """
        Do *work* with every log, or with *logs*; a failure is logged, and the next log follows.
        """
        for partition, log in (self._catalog.all() if logs is None else logs).items():
            try:
                work(log)
            except Exception:
                logger.exception("%s: %s failed", partition, threading.current_thread().name)
