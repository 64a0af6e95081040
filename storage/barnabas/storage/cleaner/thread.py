"""
A thread that cleans logs, one after the other.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from barnabas.storage.cleaner.cleanable import LogToClean
from barnabas.storage.cleaner.manager import (
    LogCleanerManager,
    LogCleaningFailed,
    PreCleanStats,
)
from barnabas.storage.cleaner.settings import CleanerSettings
from barnabas.storage.cleaner.states import CleanerStopped, LogCleaningAborted
from barnabas.storage.cleaner.stats import CleanerStats, CleanerTotals
from barnabas.storage.cleaner.throttler import Throttler
from barnabas.storage.clock import Clock
from barnabas.storage.errors import KafkaStorageError, TooManyOpenFiles
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.threads.background import BackgroundThread
from barnabas.storage.threads.turns import SHORT_TURNS, ThreadTurns
from barnabas.storage.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.storage.cleaner.cleaner import Cleaner

logger = logging.getLogger(__name__)


class CleanerThread:
    """
    Cleans the dirtiest log again and again, and looks at the retention of all compacted logs after
    each (Kafka's LogCleaner.CleanerThread).

    Invariants:

    1. It has a log only within ``round``; the log is free afterwards, also after an error.
    2. It has memory for keys only while there is a log to clean, and none while it rests.

    ``round`` may also be called in another thread, if this one was not started.
    """

    def __init__(
        self,
        number: int,
        settings: CleanerSettings,
        *,
        manager: LogCleanerManager,
        failures: LogDirFailureChannel,
        throttler: Throttler,
        totals: CleanerTotals,
        clock: Clock,
    ) -> None:
        self.name = f"log-cleaner-{number}"
        self.last_stats = CleanerStats(clock)
        """The numbers of the last cleaning."""
        self.last_look = PreCleanStats()
        """The numbers of the choice before it."""
        self.is_dead = False
        """Whether it has ended without a call of ``stop``."""
        self._settings = settings
        self._manager = manager
        self._failures = failures
        self._throttler = throttler
        self._totals = totals
        self._clock = clock
        self._cleaner: Cleaner | None = None
        self._wake = threading.Event()
        self.thread = BackgroundThread(self.name, self._run, wake=self._wake.set)

    def wake(self) -> None:
        """
        Let the thread look whether it may continue, if it rests for the sake of the throttle.
        """
        self._wake.set()

    # Its work.

    def _run(self, stop: threading.Event) -> None:
        try:
            interval_ms = 0
            while not self._clock.wait(stop, interval_ms / 1000):
                interval_ms = 0 if self.round() else self._settings.backoff_ms
        except CleanerStopped:
            pass
        except BaseException:
            self.is_dead = True
            logger.exception(
                "%s has died; its share of the logs is not cleaned any more", self.name
            )
        finally:
            self._cleaner = None

    def round(self) -> bool:
        """
        Clean the dirtiest log that is due, and apply the retention of all compacted logs; return
        whether there was one to clean.

        Raises:
            CleanerStopped: the thread is to end.
            MemoryError: there is none for the keys.
        """
        try:
            cleaned = self._clean_filthiest_log()
            self._delete_old_segments()
        except LogCleaningFailed as failure:
            logger.warning(
                "%s: %s, which is left alone from now on: %s",
                self.name,
                failure.log.topic_partition,
                failure,
                exc_info=failure,
            )
            self._manager.mark_uncleanable(failure.log)
            cleaned = False
        self._manager.maintain_uncleanable_partitions()
        if not cleaned:
            # 128 MiB by default: a broker at rest should not have them.
            self._cleaner = None
        return cleaned

    def _clean_filthiest_log(self) -> bool:
        look = PreCleanStats()
        to_clean = self._manager.grab_filthiest_compacted_log(look)
        if to_clean is None:
            return False
        self.last_look = look
        self._tell_of_delays()
        self._clean(to_clean)
        return True

    def _clean(self, to_clean: LogToClean) -> None:
        log = to_clean.log
        end_offset = to_clean.first_dirty_offset
        try:
            if self._cleaner is None:
                self._cleaner = self._make_cleaner()
            with SHORT_TURNS:
                end_offset, self.last_stats = self._cleaner.clean(to_clean)
            self._totals.add_cleaning(self.last_stats)
        except CleanerStopped:
            raise
        except LogCleaningAborted:
            logger.info("%s: its cleaning was aborted", log.topic_partition)
        except TooManyOpenFiles as error:
            logger.warning("%s is cleaned later: %s", log.topic_partition, error)
        except KafkaStorageError as error:
            self._failures.maybe_add_offline_log_dir(
                log.parent_dir,
                f"Failed to clean up log for {log.topic_partition} in dir {log.parent_dir}",
                error,
            )
        except Exception as error:
            if self._cleaner is None:
                # There is no memory for keys, whichever the log.
                raise
            raise LogCleaningFailed(log, f"Cleaning has failed: {error!r}") from error
        finally:
            self._manager.done_cleaning(log, end_offset)

    def _delete_old_segments(self) -> None:
        logs = self._manager.grab_deletable_logs()
        try:
            for log in logs.values():
                try:
                    self._totals.add_deleted(log.delete_old_segments())
                except TooManyOpenFiles as error:
                    logger.warning("%s: retention comes later: %s", log.topic_partition, error)
                except KafkaStorageError:
                    # Its directory is offline now, which was said there.
                    logger.debug("%s: retention has failed", log.topic_partition, exc_info=True)
                except Exception as error:
                    raise LogCleaningFailed(log, f"Retention has failed: {error}") from error
        finally:
            for partition in logs:
                self._manager.done_deleting(partition)

    def _make_cleaner(self) -> Cleaner:
        from barnabas.storage.cleaner.cleaner import Cleaner  # noqa: PLC0415  # when a log has to be cleaned

        return Cleaner(
            self._settings,
            throttle=self._throttle,
            check_done=self._check_done,
            clock=self._clock,
            pause=ThreadTurns().offer,
        )

    def _throttle(self, amount: int) -> None:
        self._throttler.throttle(amount, self._wake)
        # The reason was set before the event, and is checked next.
        self._wake.clear()

    def _check_done(self, partition: TopicPartition) -> None:
        if self.thread.stopping.is_set():
            raise CleanerStopped(f"{self.name} is to end")
        self._manager.states.check(partition)

    def _tell_of_delays(self) -> None:
        look = self.last_look
        if look.delayed_partitions:
            logger.info(
                "%d of %d logs that were due had waited for longer than max.compaction.lag.ms,"
                " up to %.1f s longer",
                look.delayed_partitions,
                look.cleanable_partitions,
                look.max_compaction_delay_ms / 1000,
            )
