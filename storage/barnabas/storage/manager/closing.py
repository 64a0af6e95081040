"""
Closing the logs of all directories when the broker stops.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from barnabas.storage.clock import Clock
from barnabas.storage.directories.directory import LogDirectory
from barnabas.storage.errors import KafkaStorageError, TooManyOpenFiles
from barnabas.storage.log.log import Log
from barnabas.storage.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


PROGRESS_SECONDS: Final = 2.0
"""
The interval of the messages about progress, if there are many logs or the disk is slow.
"""

Logs = Mapping[TopicPartition, Log]


def close_directories(
    directories: Sequence[tuple[LogDirectory, Logs]],
    *,
    threads: int,
    broker_epoch: int,
    are_all: bool,
    clock: Clock,
) -> bool:
    """
    Close all *directories* at the same time, as each may be a disk of its own; return whether
    ``close_directory`` has succeeded for all.
    """

    close = partial(
        close_directory, threads=threads, broker_epoch=broker_epoch, are_all=are_all, clock=clock
    )
    with ThreadPoolExecutor(max(1, len(directories)), "log-closing") as pool:
        closing = [pool.submit(close, directory, logs) for directory, logs in directories]
        results = [future.result() for future in closing]
    return all(results)


def close_directory(
    directory: LogDirectory,
    logs: Logs,
    *,
    threads: int,
    broker_epoch: int,
    are_all: bool,
    clock: Clock,
) -> bool:
    """
    Flush and close *logs*, and mark their directory as stopped cleanly.

    Args:
        threads: how many logs are closed at a time.
        broker_epoch: noted in the mark.
        are_all: whether *logs* are all logs of the directory. If not, the checkpoints stay as they
            are: only they have the start of a log that was not loaded.

    Returns:
        Whether every log was closed. If not there is no mark, so that the next start recovers the
        logs.
    """
    with ThreadPoolExecutor(threads, f"log-closing-{directory.path}") as pool:
        closed = []
        said = clock.monotonic()
        for is_closed in pool.map(_close_log, logs.values()):
            closed.append(is_closed)
            if clock.monotonic() - said >= PROGRESS_SECONDS:
                said = clock.monotonic()
                logger.info("%s: %d of %d logs are closed", directory.path, len(closed), len(logs))
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
