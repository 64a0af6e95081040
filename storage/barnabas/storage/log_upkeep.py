"""
What time and size ask of logs, done in threads of its own.

Each kind of work is a named thread that does it again and again, on the clock that everybody uses.
A round that fails for one log goes on with the next one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from barnabas.storage.background import PeriodicThread
from barnabas.storage.clock import Clock
from barnabas.storage.log import Log
from barnabas.storage.log_catalog import LogCatalog

logger = logging.getLogger(__name__)

REMOVAL_CHECK_MS = 1000
"""
How often deleted files are looked at; they stay that much longer than their delay, at the most.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogManagerSettings:
    """
    How often what is done with all logs; in ms.
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


class LogUpkeep:
    """
    The threads that look after the logs of a catalog, and what they do.
    """

    def __init__(self, catalog: LogCatalog, clock: Clock, settings: LogManagerSettings) -> None:
        self._catalog = catalog
        self._clock = clock
        self._settings = settings
        self._threads: list[PeriodicThread] = []

    def start(self, remove_deleted: Callable[[], None]) -> None:
        """
        Begin, with *remove_deleted* to be done every second or so as well.
        """
        settings = self._settings
        delay_ms = settings.initial_task_delay_ms
        recovery_ms = settings.recovery_point_checkpoint_ms
        start_ms = settings.log_start_offset_checkpoint_ms
        watermark_ms = settings.high_watermark_checkpoint_ms
        expiry_ms = settings.producer_id_expiration_check_ms
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
            ("producer-id-expiration", expiry_ms, delay_ms, self.expire_producers),
            (
                "high-watermark-checkpoint",
                watermark_ms,
                watermark_ms,
                self.checkpoint_high_watermarks,
            ),
            ("file-removal", REMOVAL_CHECK_MS, 0, remove_deleted),
        ):
            thread = PeriodicThread(name, interval_ms, work, clock=self._clock, delay_ms=first_ms)
            self._threads.append(thread)
            thread.start()

    def stop(self, seconds: float) -> None:
        """
        End the threads, waiting so long at the most for the round that each is in.
        """
        for thread in self._threads:
            thread.stop()
        for thread in self._threads:
            if not thread.join(seconds):
                logger.warning("%s is still busy", thread.name)

    # What the threads do; tests call it themselves

    def check_retention(self) -> None:
        """
        Delete the segments that retention lets go of.
        """
        self.for_each(lambda log: log.delete_old_segments())

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
        Forget producers that were idle for ``producer.id.expiration.ms``.
        """
        now_ms = self._clock.now_ms()
        self.for_each(lambda log: log.remove_expired_producers(now_ms))

    def checkpoint_recovery_points(self) -> None:
        for directory, logs in self._catalog.by_directory():
            self._catalog.write(directory, partial(directory.checkpoint_recovery_points, logs))

    def checkpoint_log_start_offsets(self) -> None:
        for directory, logs in self._catalog.by_directory():
            self._catalog.write(directory, partial(directory.checkpoint_log_start_offsets, logs))

    def checkpoint_high_watermarks(self) -> None:
        for directory, logs in self._catalog.by_directory():
            self._catalog.write(directory, partial(directory.checkpoint_high_watermarks, logs))

    def for_each(self, work: Callable[[Log], object]) -> None:
        """
        Do *work* with every log; one that fails is logged and the next one has its turn.
        """
        for partition, log in self._catalog.all().items():
            try:
                work(log)
            except Exception:
                logger.exception("%s: %s failed", partition, threading.current_thread().name)
