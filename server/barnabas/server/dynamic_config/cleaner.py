"""
The cleaner's options and metrics.
"""

from __future__ import annotations

import logging
from pathlib import Path

from barnabas.server.dynamic_config.brokers import BrokerConfigs
from barnabas.server.metrics import Metrics
from barnabas.storage.cleaner.manager import LogCleanerManager
from barnabas.storage.cleaner.pool import LogCleaner
from barnabas.storage.cleaner.settings import CleanerSettings
from barnabas.storage.manager.manager import LogManager

logger = logging.getLogger(__name__)


def cleaner_settings(brokers: BrokerConfigs) -> CleanerSettings:
    """
    The settings in the options of this broker, including those that the metadata has.
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
    Apply the current options to the cleaner. The call blocks while threads restart. Invalid
    settings are logged, and change nothing.
    """
    cleaner = log_manager.cleaner
    settings = cleaner_settings(brokers)
    if cleaner is None or settings == cleaner.settings:
        return
    try:
        cleaner.reconfigure(settings)
    except ValueError as error:
        logger.error("the options log.cleaner.* are not applied: %s", error)


def watch_cleaner(cleaner: LogCleaner, log_manager: LogManager, metrics: Metrics) -> None:
    """
    Register the metrics of the cleaner, with the names in Kafka's LogCleaner and LogCleanerManager.
    """
    manager = cleaner.manager
    for name, help_text, read in (
        (
            "log_cleaner_recopy_percent",
            "Percent of the bytes read in the last cleanings that were written again.",
            lambda: int(100 * cleaner.recopy_ratio),
        ),
        (
            "log_cleaner_max_clean_time_secs",
            "The longest duration among the last cleanings of each thread.",
            lambda: int(cleaner.max_clean_seconds),
        ),
        (
            "log_cleaner_max_buffer_utilization_percent",
            "The highest load of a table of keys in the last cleanings.",
            lambda: int(100 * cleaner.max_buffer_utilization),
        ),
        (
            "log_cleaner_max_compaction_delay_secs",
            "The time past max.compaction.lag.ms of the log that was last selected.",
            lambda: int(cleaner.max_compaction_delay_seconds),
        ),
        (
            "log_cleaner_dead_thread_count",
            "Cleaner threads that have ended because of an error.",
            lambda: cleaner.dead_thread_count,
        ),
        (
            "log_cleaner_max_dirty_percent",
            "The highest dirty ratio of a log at the last check.",
            lambda: int(100 * manager.dirtiest_ratio),
        ),
        (
            "log_cleaner_time_since_last_run_ms",
            "The time since the last check.",
            lambda: manager.ms_since_last_run,
        ),
    ):
        metrics.gauge(name, help_text, read)
    for path in log_manager.directories.live:
        _watch_directory(manager, path, metrics)


def _watch_directory(manager: LogCleanerManager, path: Path, metrics: Metrics) -> None:
    metrics.gauge(
        "log_cleaner_uncleanable_partitions_count",
        "Partitions whose cleaning has failed; they are not cleaned until the next start.",
        lambda: len(manager.uncleanable_partitions(path)),
        log_directory=str(path),
    )
    metrics.gauge(
        "log_cleaner_uncleanable_bytes",
        "The cleanable bytes of these partitions.",
        lambda: manager.uncleanable_bytes(path),
        log_directory=str(path),
    )
