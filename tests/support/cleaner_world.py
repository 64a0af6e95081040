"""
A log manager with compacted logs, and its cleaner.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from barnabas.protocol.records.batch import build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.storage.cleaner.cleanable import LogToClean
from barnabas.storage.cleaner.manager import LogCleanerManager, PreCleanStats
from barnabas.storage.cleaner.pool import LogCleaner
from barnabas.storage.cleaner.settings import CleanerSettings
from barnabas.storage.clock import Clock
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.directories.cleaner_checkpoint import CLEANER_CHECKPOINT
from barnabas.storage.log.log import Log
from barnabas.storage.manager.manager import LogManager
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.disks.memory import MemoryFiles
from tests.support.clock import StillClock
from tests.support.log_manager import TOPIC_ID, load, open_manager

DATA = Path("/data")
CHECKPOINT = DATA / CLEANER_CHECKPOINT

SETTINGS = CleanerSettings(dedupe_buffer_bytes=64 * 1024)
"""
Room for some thousand keys.
"""


def config(*policy: str, **options: Any) -> LogConfig:
    """
    A segment has six batches of ``add``.
    """
    return LogConfig(cleanup_policy=policy, internal_segment_bytes=1000, **options)


COMPACT = config("compact")


def add(log: Log, *keys: bytes, value: bytes | None = b"") -> None:
    """
    Append a batch of one record for each of *keys*, 150 bytes large unless there is no value, and
    acknowledge them.
    """
    for key in keys:
        size = 150 - 61 - 9 - len(key)
        padded = None if value is None else value.ljust(size, b".")
        records = [SimpleRecord(log._clock.now_ms(), key, padded)]
        log.append_as_leader(memoryview(build_batch(records)), 0)
    log.update_high_watermark(log.log_end_offset)


class CleanerWorld:
    """
    A log manager on a disk in memory, whose cleaner has no threads unless the test starts them.
    """

    def __init__(
        self,
        *directories: Path,
        files: MemoryFiles | None = None,
        clock: Clock | None = None,
        settings: CleanerSettings = SETTINGS,
        log_config: LogConfig = COMPACT,
    ) -> None:
        self.still_clock = StillClock()
        self.clock: Clock = clock or self.still_clock
        self.files = files or MemoryFiles(self.clock.now_ms)
        self._directories = directories or (DATA,)
        self._settings = settings
        self._config = log_config
        self.logs: LogManager = self._open()

    def _open(self) -> LogManager:
        return load(
            open_manager(
                self.files,
                self._directories,
                clock=self.clock,
                cleaner=self._settings,
                config=self._config,
            )
        )

    @property
    def cleaner(self) -> LogCleaner:
        assert self.logs.cleaner is not None
        return self.logs.cleaner

    @property
    def manager(self) -> LogCleanerManager:
        return self.cleaner.manager

    def log(
        self, partition: TopicPartition, batches: int = 0, log_config: LogConfig | None = None
    ) -> Log:
        """
        A new log, with so many batches of 150 bytes and different keys.
        """
        log = self.logs.get_or_create_log(
            partition, topic_id=TOPIC_ID, config=log_config or self._config
        )
        add(log, *(b"%02d" % number for number in range(batches)))
        return log

    def found(self, partition: TopicPartition) -> Log:
        """
        A log that is there.
        """
        log = self.logs.get_log(partition)
        assert log is not None
        return log

    def grab(self, stats: PreCleanStats | None = None) -> LogToClean | None:
        return self.manager.grab_filthiest_compacted_log(stats or PreCleanStats())

    def checkpoint(self) -> str:
        return self.files.read_bytes(CHECKPOINT).decode()

    def restart(self) -> None:
        self.logs.shutdown()
        self.logs = self._open()
