"""
The reaction to the failure of a log directory (Kafka's ``LogDirFailureHandler``).

The storage engine refuses all access to a directory after its first error. The handler answers the
requests that wait for its partitions, and reports in the metadata that these have no leader. A
broker without its metadata log, or without any directory, ends.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

from barnabas.server.partitions.partitions import Partitions
from barnabas.storage.errors import KafkaStorageError
from barnabas.storage.manager.manager import LogManager
from barnabas.storage.topic_partition import TopicPartition


class LogDirFailureHandler:
    """
    A thread that waits for log directories to fail.
    """

    def __init__(
        self,
        log_manager: LogManager,
        partitions: Partitions,
        *,
        metadata_dir: Path,
        lost: Callable[[list[TopicPartition]], None],
        fatal: Callable[[Exception], None],
    ) -> None:
        """
        Args:
            lost: called on the event loop with the partitions of a failed directory, when the
                broker goes on without them.
            fatal: called on the event loop when the broker cannot go on.
        """
        self._log_manager = log_manager
        self._partitions = partitions
        self._metadata_dir = metadata_dir
        self._lost = lost
        self._fatal = fatal
        self._loop = asyncio.get_running_loop()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="log-dir-failure", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """
        End the thread.
        """
        self._stopped = True
        self._log_manager.failures.reported.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        reported = self._log_manager.failures.reported
        while True:
            reported.wait()
            if self._stopped:
                return
            lost = self._log_manager.handle_failures()
            self._loop.call_soon_threadsafe(self._tell, lost)

    def _tell(self, lost: list[TopicPartition]) -> None:
        for topic, index in lost:
            partition = self._partitions.get(topic, index)
            if partition is not None:
                error = KafkaStorageError(f"The log directory of {topic}-{index} is offline")
                partition.close(error)
        failures = self._log_manager.failures
        if failures.has_offline_log_dir(self._metadata_dir):
            self._fatal(
                KafkaStorageError(f"{self._metadata_dir}, with the metadata log, is offline")
            )
        elif not self._log_manager.directories.live:
            self._fatal(KafkaStorageError("all log directories are offline"))
        else:
            self._lost(lost)
