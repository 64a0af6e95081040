"""
How the logs of a directory are closed when the broker stops.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from barnabas.storage.errors import KafkaStorageError, TooManyOpenFiles
from barnabas.storage.log import Log
from barnabas.storage.log_directory import LogDirectory
from barnabas.storage.log_files import TopicPartition

logger = logging.getLogger(__name__)


def close_directory(
    directory: LogDirectory,
    logs: Mapping[TopicPartition, Log],
    *,
    threads: int,
    broker_epoch: int,
    are_all: bool = True,
) -> bool:
    """
    Flush and close *logs*, and mark their directory as stopped cleanly.

    Args:
        threads: how many logs are closed at a time.
        broker_epoch: noted in the mark.
        are_all: whether *logs* are all that were to be loaded. If not, the checkpoints stay as they
            are: of what was not loaded, nobody else knows where it starts.

    Returns:
        Whether all went well. If not there is no mark, so that the next start recovers the logs.
    """
    with ThreadPoolExecutor(threads, f"log-closing-{directory.path}") as pool:
        closed = list(pool.map(_close_log, logs.values()))
    if not all(closed):
        return False
    try:
        if are_all:
            with directory.checkpointing:
                directory.checkpoint_log_start_offsets(logs)
                directory.checkpoint_recovery_points(logs)
        directory.mark_clean(broker_epoch)
    except (KafkaStorageError, TooManyOpenFiles):
        logger.exception("%s could not be marked as stopped cleanly", directory.path)
        return False
    return True


def _close_log(log: Log) -> bool:
    try:
        log.finish_active_segment()
        log.flush(force_flush_active_segment=True)
        log.close()
    except Exception:
        logger.exception("%s could not be closed", log.dir)
        log.close_handlers()
        return False
    return True
