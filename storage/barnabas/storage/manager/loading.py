"""
Loading the logs of all log directories at a start.

Several logs are loaded at a time if the disk is slow. If the page cache has all files, as after a
short stop, more threads only wait for each other: one at a time runs Python, and each system call
hands the turn over. So a directory begins with one thread, and gets more when that sees blocks
being read.

::

    t-0                  a log, if the metadata has its topic; if not it is renamed to ...
    t-0.<32 hex>-stray   ... and not served
    t-0.<32 hex>-delete  its deletion continues
    __cluster_metadata-0 has an owner of its own
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from barnabas.protocol.structs import fresh, struct
from barnabas.storage.config.log_config import LogConfig
from barnabas.storage.directories.catalog import LogCatalog
from barnabas.storage.directories.directory import LogDirectory
from barnabas.storage.errors import KafkaError, KafkaStorageError
from barnabas.storage.log.loaded import RecoveryReport
from barnabas.storage.log.log import Log
from barnabas.storage.state_files.file_names import (
    DELETE_DIR_SUFFIX,
    STRAY_DIR_SUFFIX,
    log_stray_dir_name,
)
from barnabas.storage.topic_partition import TopicPartition
from barnabas.storage.units import counted

logger = logging.getLogger(__name__)

IsStray = Callable[[UUID | None, TopicPartition], bool]
"""
Whether a log with that topic id and partition belongs to no topic of the metadata.
"""


@struct(frozen=False)
class LoadReport:
    """
    The result of loading the logs.
    """

    loaded: int = 0
    recovered: int = 0
    """Logs of directories that were not stopped cleanly."""
    strays: list[Path] = fresh(factory=list)
    unclean: list[Path] = fresh(factory=list)
    repairs: RecoveryReport = fresh(factory=RecoveryReport)
    """The repairs of all logs together."""
    seconds: float = 0.0


class LoadProgress(NamedTuple):
    """
    The numbers of logs that a load has found so far, and that it has done.
    """

    logs: int
    done: int

    @property
    def left(self) -> int:
        return self.logs - self.done


_LogPath = tuple[Path, TopicPartition]

LOOK_EVERY: Final = 10
"""
The number of logs after which a thread checks whether blocks were read from the disk. Not tuned: a
check costs much less than the loading of ten logs.
"""


@struct(frozen=False)
class _Share:
    """
    The numbers of logs that one thread has loaded, and that have failed; and the repairs it made.
    """

    loaded: int = 0
    failed: int = 0
    repairs: RecoveryReport = fresh(factory=RecoveryReport)


class LogLoading:
    """
    One load of all logs into a catalog.

    ``unserved`` are logs that no topic has, ``deleted`` those whose deletion continues.
    """

    def __init__(
        self,
        catalog: LogCatalog,
        open_log: Callable[..., Log],
        *,
        default_config: LogConfig,
        configs: Mapping[str, LogConfig],
        is_stray: IsStray,
        threads: int,
        blocks_read: Callable[[], int],
    ) -> None:
        """
        Args:
            open_log: ``recovery.opening.open_log`` with the arguments that all logs share.
            threads: how many logs of a directory may be loaded at a time.
            blocks_read: see ``Files``.
        """
        self.report = LoadReport()
        self.unserved: list[Log] = []
        self.deleted: list[Log] = []
        self._catalog = catalog
        self._open_log = open_log
        self._default_config = default_config
        self._configs = configs
        self._is_stray = is_stray
        self._threads = threads
        self._blocks_read = blocks_read
        self._found = 0
        self._shares: list[_Share] = []

    @property
    def progress(self) -> LoadProgress:
        """
        How far the load is. Safe from any thread.
        """
        done = sum(share.loaded + share.failed for share in tuple(self._shares))
        return LoadProgress(self._found, done)

    def load(self) -> LoadReport:
        """
        Load all logs, after a crash recovering them.

        Raises:
            InvalidLogDirectory: a directory is no log, or there are two logs for one partition.
            CorruptRecord: a log that was stopped cleanly cannot be read.
        """
        pools: list[ThreadPoolExecutor] = []
        jobs: list[tuple[LogDirectory, list[Future[_Share]]]] = []
        try:
            for directory in self._catalog.directories.live.values():
                pools.append(ThreadPoolExecutor(self._threads, f"log-recovery-{directory.path}"))
                jobs.append((directory, self._begin(directory, pools[-1])))
            for directory, futures in jobs:
                # It becomes longer meanwhile: by those who help the ones that are waited for.
                shares = [future.result() for future in futures]
                directory.end_loading()
                # A log that failed stays for the next start; until then its directory is unclean.
                directory.all_loaded = not any(share.failed for share in shares)
                for share in shares:
                    self.report.loaded += share.loaded
                    self.report.repairs.add(share.repairs)
        finally:
            for pool in pools:
                pool.shutdown(cancel_futures=True)
        return self.report

    def _begin(self, directory: LogDirectory, pool: ThreadPoolExecutor) -> list[Future[_Share]]:
        try:
            clean = directory.begin_loading()
            paths = directory.log_paths()
        except KafkaStorageError as error:
            self._catalog.directories.failed(directory.path, "Error while loading log dir", error)
            return []
        if not clean and paths:
            self.report.unclean.append(directory.path)
            self.report.recovered += len(paths)
            logger.info(
                "%s was not stopped cleanly: recovering %s",
                directory.path,
                counted(len(paths), "log"),
            )
        self._found += len(paths)
        waiting = deque(paths)
        futures: list[Future[_Share]] = []

        def load_some(threads_left: int) -> _Share:
            def call_help() -> None:
                futures.append(pool.submit(load_some, threads_left - 1))

            return self._load_some(directory, waiting, call_help if threads_left else None)

        futures.append(pool.submit(load_some, self._threads - 1))
        return futures

    def _load_some(
        self,
        directory: LogDirectory,
        waiting: deque[_LogPath],
        call_help: Callable[[], None] | None,
    ) -> _Share:
        """
        Load the logs that are *waiting*, until none is left, or an error ends the load.

        Args:
            call_help: starts another thread; None if there may be no more.
        """
        share = _Share()
        self._shares.append(share)
        blocks = self._blocks_read()
        try:
            while (place := _take(waiting)) is not None:
                if call_help is not None and share.loaded % LOOK_EVERY == LOOK_EVERY - 1:
                    before, blocks = blocks, self._blocks_read()
                    if blocks - before >= LOOK_EVERY:
                        call_help()
                        call_help = None
                log = self._load(directory, *place)
                if log is None:
                    share.failed += 1
                else:
                    share.loaded += 1
                    share.repairs.add(log.recovery_report)
        except BaseException:
            waiting.clear()
            raise
        return share

    def _load(self, directory: LogDirectory, path: Path, partition: TopicPartition) -> Log | None:
        """
        Load one log; return None if the disk fails, which takes the directory offline.
        """
        try:
            log = self._open_log(
                path,
                self._configs.get(partition.topic, self._default_config),
                log_start_offset=directory.log_start_offsets.get(partition, 0),
                recovery_point=directory.recovery_points.get(partition),
                high_watermark=directory.high_watermarks.get(partition, 0),
                had_clean_shutdown=directory.had_clean_shutdown,
                was_compacted=partition in directory.compacted,
            )
            self._sort(log, path, partition)
        except KafkaStorageError as error:
            self._catalog.directories.failed(directory.path, f"Error while loading {path}", error)
            return None
        except KafkaError as error:
            failures = self._catalog.directories.failures
            if failures.takes_offline:
                raise
            # Where nothing is written, the other logs can be looked at nevertheless.
            failures.maybe_add_offline_log_dir(directory.path, f"{path} is left out", error)
            return None
        return log

    def _sort(self, log: Log, path: Path, partition: TopicPartition) -> None:
        if path.name.endswith(DELETE_DIR_SUFFIX):
            self.deleted.append(log)
        elif path.name.endswith(STRAY_DIR_SUFFIX):
            self.unserved.append(log)
        elif self._is_stray(log.topic_id, partition):
            log.rename_dir(log_stray_dir_name(partition), should_reinitialize=False)
            logger.warning("%s is no log of a known topic and was renamed to %s", path, log.dir)
            self.report.strays.append(log.dir)
            self.unserved.append(log)
        else:
            self._catalog.admit(partition, log)


def _take(waiting: deque[_LogPath]) -> _LogPath | None:
    try:
        return waiting.popleft()
    except IndexError:
        return None
