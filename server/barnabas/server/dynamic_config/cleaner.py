"""
The cleaner as the broker sees it: its options, and what it says of itself.
"""

from __future__ import annotations

import logging
from pathlib import Path

from barnabas.server.dynamic_config.topics import BrokerConfigs
from barnabas.server.metrics import Metrics
from barnabas.storage.cleaner.manager import LogCleanerManager
from barnabas.storage.cleaner.pool import LogCleaner
from barnabas.storage.cleaner.settings import CleanerSettings
from barnabas.storage.manager.manager import LogManager

logger = logging.getLogger(__name__)


def cleaner_settings(brokers: BrokerConfigs) -> CleanerSettings:
    """
    What the options of this broker say, those included that are stored in the metadata.
    """
    return CleanerSettings(
        enabled=brokers.effective("log.cleaner.enable"),
        threads=brokers.effective("log.cleaner.threads"),
        dedupe_buffer_bytes=brokers.effective("log.cleaner.dedupe.buffer.size"),
        load_factor=brokers.effective("log.cleaner.io.buffer.load.factor"),
        io_buffer_bytes=brokers.effective("log.cleaner.io.buffer.size"),
        max_message_bytes=brokers.effective("message.max.bytes"),
        max_io_bytes_per_second=brokers.effective("log.cleaner.io.max.bytes.per.second"),
        backoff_ms=brokers.effective("log.cleaner.backoff.ms"),
    )


def configure_cleaner(log_manager: LogManager, brokers: BrokerConfigs) -> None:
    """
    Let the cleaner go by what the options say now. It blocks while threads begin anew. Settings
    that it cannot go by are logged, and change nothing.
    """
    cleaner = log_manager.cleaner
    settings = cleaner_settings(brokers)
    if cleaner is None or settings == cleaner.settings:
        return
    try:
        cleaner.reconfigure(settings)
    except ValueError as error:
        logger.error("log.cleaner.* stays as it is: %s", error)


def watch_cleaner(cleaner: LogCleaner, log_manager: LogManager, metrics: Metrics) -> None:
    """
    Let metrics tell what the cleaner does; the names are Kafka's, of LogCleaner and
    LogCleanerManager.
    """
    manager = cleaner.manager
    for name, help_text, read in (
        (
            "log_cleaner_recopy_percent",
            "Of what was read in the last cleaning of each thread, how much was written again.",
            lambda: int(100 * cleaner.recopy_ratio),
        ),
        (
            "log_cleaner_max_clean_time_secs",
            "How long the longest of the last cleanings of each thread took.",
            lambda: int(cleaner.max_clean_seconds),
        ),
        (
            "log_cleaner_max_buffer_utilization_percent",
            "How full the fullest table of keys was in the last cleanings.",
            lambda: int(100 * cleaner.max_buffer_utilization),
        ),
        (
            "log_cleaner_max_compaction_delay_secs",
            "By how much max.compaction.lag.ms was exceeded when a log was last taken.",
            lambda: int(cleaner.max_compaction_delay_seconds),
        ),
        (
            "log_cleaner_dead_thread_count",
            "Cleaner threads that have ended though nobody had asked them to.",
            lambda: cleaner.dead_thread_count,
        ),
        (
            "log_cleaner_max_dirty_percent",
            "How dirty the dirtiest log was when they were last looked at.",
            lambda: int(100 * manager.dirtiest_ratio),
        ),
        (
            "log_cleaner_time_since_last_run_ms",
            "How long ago logs were last looked at.",
            lambda: manager.ms_since_last_run,
        ),
    ):
        metrics.gauge(name, help_text, read)
    for path in log_manager.directories.live:
        _watch_directory(manager, path, metrics)


def _watch_directory(manager: LogCleanerManager, path: Path, metrics: Metrics) -> None:
    metrics.gauge(
        "log_cleaner_uncleanable_partitions_count",
        "Partitions whose cleaning has failed; they are left alone until the next start.",
        lambda: len(manager.uncleanable_partitions(path)),
        log_directory=str(path),
    )
    metrics.gauge(
        "log_cleaner_uncleanable_bytes",
        "What could be cleaned in them.",
        lambda: manager.uncleanable_bytes(path),
        log_directory=str(path),
    )
