"""
The cleaner of a log manager: its threads, and the parts that they share.

::

    LogCleaner --+-- CleanerThread 0 --- Cleaner --- OffsetMap
                 +-- CleanerThread 1 ...
                 +-- LogCleanerManager     which log, which part of it, checkpoints
                 +-- Throttler             how much all threads read and write

It removes records of compacted logs that have a later one with the same key (Kafka's LogCleaner).
"""

from __future__ import annotations

import logging
import threading

from barnabas.storage.cleaner.manager import LogCleanerManager
from barnabas.storage.cleaner.settings import CleanerSettings
from barnabas.storage.cleaner.stats import CleanerTotals
from barnabas.storage.cleaner.thread import CleanerThread
from barnabas.storage.cleaner.throttler import Throttler
from barnabas.storage.clock import Clock
from barnabas.storage.directories.catalog import LogCatalog
from barnabas.storage.fs.interface import Files

logger = logging.getLogger(__name__)

STOPPING_SECONDS = 30.0
"""How long a change of the settings waits for the threads with the old ones. Not measured: longer
than a thread needs to notice, shorter than an administrator waits."""


class LogCleaner:
    """
    Cleans the compacted logs of a catalog.

    Invariants:

    1. Between ``start`` and ``stop`` there are as many threads as the settings say; one that died
       stays dead until the settings change.
    2. After ``stop`` nothing is cleaned any more.

    Safe from any thread.
    """

    def __init__(
        self, settings: CleanerSettings, catalog: LogCatalog, *, files: Files, clock: Clock
    ) -> None:
        """
        Raises:
            ValueError: the settings leave no room for a key.
        """
        settings.check()
        self.settings = settings
        self.manager = LogCleanerManager(catalog, files=files, clock=clock, on_abort=self._wake)
        self.threads: tuple[CleanerThread, ...] = ()
        self.totals = CleanerTotals()
        self._catalog = catalog
        self._clock = clock
        self._throttler = Throttler(settings.max_io_bytes_per_second, clock)
        self._by_hand: CleanerThread | None = None
        self._changing = threading.RLock()
        self._stopped = False

    def start(self) -> None:
        """
        Begin to clean, unless that has ended for good.
        """
        with self._changing:
            if self._stopped:
                return
            if self.settings.threads < 1:
                logger.warning("log.cleaner.threads is 0: compacted topics are not compacted")
            self.threads = tuple(map(self._make_thread, range(self.settings.threads)))
            for cleaner in self.threads:
                cleaner.thread.start()

    def stop(self, seconds: float) -> None:
        """
        End all threads for good, in the middle of a log if need be; the next start begins that log
        again.

        Args:
            seconds: how long to wait for each.
        """
        with self._changing:
            self._stopped = True
            self._end_threads(seconds)

    def reconfigure(self, settings: CleanerSettings) -> None:
        """
        Use *settings* from now on. Running threads are replaced, also those that have died.

        Raises:
            ValueError: the settings leave no room for a key; or while threads run, they have less
                than half or more than double as many as before.
        """
        with self._changing:
            is_running = bool(self.threads)
            if is_running:
                self.settings.check_change(settings)
                self._end_threads(STOPPING_SECONDS)
            else:
                settings.check()
            if settings.max_io_bytes_per_second != self.settings.max_io_bytes_per_second:
                self._throttler = Throttler(settings.max_io_bytes_per_second, self._clock)
            self.settings = settings
            if is_running:
                self.start()

    def _end_threads(self, seconds: float) -> None:
        for cleaner in self.threads:
            cleaner.thread.stop()
        for cleaner in self.threads:
            if not cleaner.thread.join(seconds):
                logger.warning("%s is still busy", cleaner.name)
        self.threads = ()

    def round(self) -> bool:
        """
        Do the round of a cleaner thread in the calling thread; return whether there was a log to
        clean. For tests and tools, which do not start the threads.
        """
        if self._by_hand is None:
            self._by_hand = self._make_thread(0)
        return self._by_hand.round()

    def _make_thread(self, number: int) -> CleanerThread:
        return CleanerThread(
            number,
            self.settings,
            manager=self.manager,
            failures=self._catalog.directories.failures,
            throttler=self._throttler,
            totals=self.totals,
            clock=self._clock,
        )

    def _wake(self) -> None:
        for thread in self.threads:
            thread.wake()

    # Metrics.

    @property
    def dead_thread_count(self) -> int:
        """
        The number of threads that have ended without a call of ``stop``.
        """
        return sum(thread.is_dead for thread in self.threads)

    @property
    def max_buffer_utilization(self) -> float:
        """
        The largest used part of an offset map in the last cleaning of each thread, from 0 to 1.
        """
        return max((thread.last_stats.buffer_utilization for thread in self.threads), default=0.0)

    @property
    def recopy_ratio(self) -> float:
        """
        The part of the bytes of the last cleaning of each thread that was written again.
        """
        read = sum(thread.last_stats.bytes_read for thread in self.threads)
        return sum(thread.last_stats.bytes_written for thread in self.threads) / max(1, read)

    @property
    def max_clean_seconds(self) -> float:
        """
        The longest duration of the last cleanings of each thread.
        """
        return max((thread.last_stats.elapsed_secs for thread in self.threads), default=0.0)

    @property
    def max_compaction_delay_seconds(self) -> float:
        """
        The largest excess over ``max.compaction.lag.ms`` in the last choice of each thread.
        """
        delays = (thread.last_look.max_compaction_delay_ms for thread in self.threads)
        return max(delays, default=0) / 1000
