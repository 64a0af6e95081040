"""
The choice of the log that is cleaned next, and the checkpoints of the cleaner.

::

    CleanerThread  --> LogCleanerManager --+-- plan_cleaning        which part, is it worth it
    LogManager     -->                     +-- CleaningStates       which thread works on which log
    LogMaintenance -->                     +-- CleanerCheckpoint    how far logs are clean, one
                                           |                        file for each log directory
                                           +-- uncleanable logs     those that could not be cleaned
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from barnabas.protocol.structs import struct
from barnabas.storage.cleaner.cleanable import (
    CleanableLog,
    CleaningPlan,
    DirtyOrigin,
    LogToClean,
    plan_cleaning,
)
from barnabas.storage.cleaner.states import CleaningStates
from barnabas.storage.clock import Clock
from barnabas.storage.directories.catalog import LogCatalog
from barnabas.storage.directories.cleaner_checkpoint import CleanerCheckpoint
from barnabas.storage.errors import KafkaError, KafkaStorageError, TooManyOpenFiles
from barnabas.storage.fs.interface import Files
from barnabas.storage.log.log import Log
from barnabas.storage.segment.segment import LogSegment
from barnabas.storage.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class LogCleaningFailed(Exception):
    """
    The cleaning of *log* has failed, which is left alone from now on.
    """

    def __init__(self, log: Log, sentence: str) -> None:
        super().__init__(sentence)
        self.log = log


@struct(frozen=False)
class PreCleanStats:
    """
    The numbers of a choice among all logs (Kafka's class of that name).
    """

    max_compaction_delay_ms: int = 0
    """The largest excess over ``max.compaction.lag.ms``."""
    delayed_partitions: int = 0
    cleanable_partitions: int = 0


class LogCleanerManager:
    """
    Assigns logs to cleaner threads, and keeps them off logs that another thread needs.

    Invariants:

    1. A log is cleaned by one thread at a time, and by none while it is paused.
    2. Records below the checkpoint of a log were cleaned.
    3. A log whose cleaning failed is not cleaned again before the next start.

    Safe from any thread.
    """

    def __init__(
        self,
        catalog: LogCatalog,
        *,
        files: Files,
        clock: Clock,
        on_abort: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Read the checkpoints of all directories. A directory whose checkpoint cannot be read becomes
        offline.

        Args:
            on_abort: called when a thread begins to wait until the cleaner releases its log.
        """
        self.states = CleaningStates(on_abort)
        self.dirtiest_ratio = 0.0
        """That of the dirtiest log in the last choice."""
        self._catalog = catalog
        self._clock = clock
        self._last_run_ms = clock.now_ms()
        self._checkpoints: dict[Path, CleanerCheckpoint] = {}
        self._uncleanable: dict[Path, frozenset[TopicPartition]] = {}
        for path in catalog.directories.live:
            try:
                self._checkpoints[path] = CleanerCheckpoint(files, path)
            except KafkaStorageError as error:
                catalog.directories.failed(
                    path, f"Failed to read the cleaner checkpoint in {path}", error
                )

    # The state.

    @property
    def ms_since_last_run(self) -> int:
        return self._clock.now_ms() - self._last_run_ms

    def plan(self, log: Log) -> CleaningPlan[LogSegment]:
        """
        The plan for cleaning *log* now, and whether it is due.

        Raises:
            KafkaStorageError: the disk failed.
        """
        state = CleanableLog(
            log.segments.values(), log.log_start_offset, log.last_stable_offset, log.log_end_offset
        )
        return plan_cleaning(state, log.config, self._checkpoint_of(log), self._clock.now_ms())

    def uncleanable_partitions(self, directory: Path) -> frozenset[TopicPartition]:
        """
        The logs in *directory* that could not be cleaned. No lock is taken.
        """
        return self._uncleanable.get(directory, frozenset())

    def uncleanable_bytes(self, directory: Path) -> int:
        """
        The bytes of them that could be cleaned; of a log that cannot be read, none.
        """
        total = 0
        for log in map(self._catalog.logs.get, self.uncleanable_partitions(directory)):
            with suppress(KafkaError):
                total += 0 if log is None else self.plan(log).cleanable_bytes
        return total

    def _checkpoint_of(self, log: Log) -> int | None:
        checkpoint = self._checkpoints.get(log.parent_dir)
        return None if checkpoint is None else checkpoint.offsets.get(log.topic_partition)

    # For cleaner threads.

    def grab_filthiest_compacted_log(self, stats: PreCleanStats) -> LogToClean | None:
        """
        Take the dirtiest log that is due, until ``done_cleaning``; None if none is.

        Raises:
            LogCleaningFailed: a log cannot be read.
        """
        with self.states.lock:
            self._last_run_ms = self._clock.now_ms()
            self.dirtiest_ratio = 0.0
            filthiest: LogToClean | None = None
            for log in self._free_compacted_logs().values():
                plan = self._look_at(log)
                stats.max_compaction_delay_ms = max(
                    stats.max_compaction_delay_ms, plan.delay.delay_ms
                )
                stats.delayed_partitions += plan.delay.delay_ms > 0
                self.dirtiest_ratio = max(self.dirtiest_ratio, plan.ratio)
                if plan.verdict.is_due:
                    stats.cleanable_partitions += 1
                    if filthiest is None or plan.ratio > filthiest.cleanable_ratio:
                        first, end = plan.first_dirty.offset, plan.uncleanable_offset
                        filthiest = LogToClean(
                            log=log,
                            first_dirty_offset=first,
                            uncleanable_offset=end,
                            cleanable_ratio=plan.ratio,
                        )
            if filthiest is not None:
                self._note_before_first_cleaning(filthiest)
                self.states.begin(filthiest.log.topic_partition)
            return filthiest

    def _note_before_first_cleaning(self, to_clean: LogToClean) -> None:
        """
        Let the checkpoint name a log before it has any gap.

        A crash that follows an aborted cleaning would otherwise leave no trace of where the gaps
        come from, if the log is not compacted any more.
        """
        log = to_clean.log
        if self._checkpoint_of(log) is None:
            first = to_clean.first_dirty_offset
            self.update_checkpoints(log.parent_dir, put=(log.topic_partition, first))

    def _look_at(self, log: Log) -> CleaningPlan[LogSegment]:
        try:
            plan = self.plan(log)
        except Exception as error:
            raise LogCleaningFailed(
                log, f"Failed to calculate log cleaning stats for partition {log.topic_partition}"
            ) from error
        if plan.first_dirty.must_be_noted:
            self._warn_of_reset(log, plan)
            self.update_checkpoints(
                log.parent_dir, put=(log.topic_partition, plan.first_dirty.offset)
            )
        return plan

    @staticmethod
    def _warn_of_reset(log: Log, plan: CleaningPlan[LogSegment]) -> None:
        first = plan.first_dirty
        if first.origin is DirtyOrigin.BELOW_LOG_START and log.config.delete:
            # Retention has moved the start.
            return
        logger.warning(
            "%s: the cleaner begins again at the log start offset %d: %s (%s; log end offset %d)",
            log.topic_partition,
            first.offset,
            first.origin.value,
            first.checkpoint,
            log.log_end_offset,
        )

    def done_cleaning(self, log: Log, end_offset: int) -> None:
        """
        Release a log whose cleaning ended at *end_offset*, and note that unless it was aborted.
        """
        with self.states.lock:
            if self.states.end(log.topic_partition):
                self.update_checkpoints(log.parent_dir, put=(log.topic_partition, end_offset))

    def grab_deletable_logs(self) -> dict[TopicPartition, Log]:
        """
        Take all free compacted logs, until ``done_deleting``: the cleaner's threads apply their
        retention, so that cleaning and retention never meet. Also logs that are only compacted have
        one, whose start may have moved.
        """
        with self.states.lock:
            logs = self._free_compacted_logs()
            for partition in logs:
                self.states.begin(partition)
            return logs

    def done_deleting(self, partition: TopicPartition) -> None:
        """
        Release a log whose retention was applied.
        """
        self.states.end(partition)

    def _free_compacted_logs(self) -> dict[TopicPartition, Log]:
        offline = self._catalog.directories.failures.has_offline_log_dir
        return {
            partition: log
            for partition, log in self._catalog.all().items()
            if log.config.compact
            and self.states.get(partition) is None
            and not offline(log.parent_dir)
            and partition not in self.uncleanable_partitions(log.parent_dir)
            and not self._has_nothing(log)
        }

    def _has_nothing(self, log: Log) -> bool:
        """
        Whether there is neither a record in *log* nor a checkpoint of it: most partitions of the
        topics of coordinators never get any, and are candidates in every round.
        """
        return log.log_end_offset == log.log_start_offset and (
            log.size == 0 and self._checkpoint_of(log) is None
        )

    def mark_uncleanable(self, log: Log) -> None:
        """
        Never take *log* again.
        """
        with self.states.lock:
            others = self.uncleanable_partitions(log.parent_dir)
            self._uncleanable[log.parent_dir] = others | {log.topic_partition}

    def maintain_uncleanable_partitions(self) -> None:
        """
        Remove those that were deleted.
        """
        with self.states.lock:
            self._uncleanable = {
                path: left
                for path, partitions in self._uncleanable.items()
                if (left := partitions.intersection(self._catalog.logs))
            }

    # For other threads.

    def abort_cleaning(self, partition: TopicPartition) -> None:
        """
        Return once the cleaner does not work on the log. It may be taken again at once, if it is
        still known.
        """
        self.states.abort_and_pause(partition)
        self.states.resume(partition)

    @contextmanager
    def paused(self, partition: TopicPartition) -> Iterator[None]:
        """
        Keep the cleaner off a log.
        """
        self.states.abort_and_pause(partition)
        try:
            yield
        finally:
            self.states.resume(partition)

    @contextmanager
    def paused_uncompacted(self) -> Iterator[Mapping[TopicPartition, Log]]:
        """
        Keep the cleaner off all free logs that are not compacted, also if they become so meanwhile;
        the value is these logs.
        """
        with self.states.lock:
            logs = {
                partition: log
                for partition, log in self._catalog.all().items()
                if not log.config.compact
            }
            free = self.states.pause_free(logs)
        try:
            yield {partition: logs[partition] for partition in free}
        finally:
            for partition in free:
                self.states.resume(partition)

    def update_checkpoints(
        self, directory: Path, *, put: tuple[TopicPartition, int] | None = None
    ) -> None:
        """
        Write the checkpoint of *directory*, if it is online, without the logs that were deleted.
        """
        with self.states.lock:
            checkpoint = self._checkpoints.get(directory)
            if checkpoint is None or self._catalog.directories.failures.has_offline_log_dir(
                directory
            ):
                return
            try:
                checkpoint.update(self._catalog.logs, put=put)
            except TooManyOpenFiles as error:
                # Records above the checkpoint are cleaned once more after a restart.
                logger.warning("A checkpoint is written later: %s", error)
            except KafkaStorageError as error:
                self._catalog.directories.failed(
                    directory, f"Failed to write the cleaner checkpoint in {directory}", error
                )

    def handle_log_dir_failure(self, directory: Path) -> None:
        """
        Clean no log in *directory* any more, and leave its checkpoint as it is.
        """
        with self.states.lock:
            if self._checkpoints.pop(directory, None) is not None:
                logger.warning("Stopping cleaning logs in dir %s", directory)
            self._uncleanable.pop(directory, None)
