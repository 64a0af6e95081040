"""
Logs of a broker, opened without owning them.

A log is opened as a broker opens it after a clean stop, on a file system whose changes stay in
memory. So the code of the broker answers all questions, also while a broker runs on the directory,
and nothing changes there. If a killed broker has left a log that cannot be opened in this way, it
is recovered as at the next start, again in memory only.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

from barnabas.protocol.structs import fresh, struct
from barnabas.storage.clock import Clock
from barnabas.storage.directories.cleaner_checkpoint import CLEANER_CHECKPOINT
from barnabas.storage.directories.directory import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from barnabas.storage.errors import CorruptCheckpoint, KafkaError
from barnabas.storage.explain.known import (
    ClusterSettings,
    ExplainError,
    FilesChanged,
    TopicSettings,
    unreadable,
)
from barnabas.storage.fs.interface import Files
from barnabas.storage.fs.log_dir_failure import LogDirFailureChannel
from barnabas.storage.log.log import Log
from barnabas.storage.log.rolling import SegmentEnd
from barnabas.storage.producers.rebuild import rebuild_producer_state
from barnabas.storage.producers.snapshots import is_snapshot_name
from barnabas.storage.readonly.log_root import LogRoot
from barnabas.storage.readonly.overlay_files import OverlayFiles
from barnabas.storage.recovery.opening import open_log
from barnabas.storage.segment.records import BatchHeader
from barnabas.storage.state_files.file_names import DELETED_SUFFIX
from barnabas.storage.topic_partition import TopicPartition

READ_ERRORS: Final = (KafkaError, ValueError, FileNotFoundError)
"""The errors of reading a log, also of one of which a broker has just removed a file."""

ATTEMPTS: Final = 10
"""The number of attempts to read a log whose broker removes files meanwhile."""

_PARTITION: Final = re.compile(r"(.+)-([0-9]+)")


Answer = TypeVar("Answer")


class Condition(Enum):
    """
    The condition of a log directory.
    """

    IN_USE = "a broker is running on it"
    STOPPED = "its broker was stopped"
    KILLED = "its broker was not stopped cleanly: the next start recovers unflushed segments"


@struct
class ReadOnlyLog:
    """
    A log that is opened without owning it, and the facts about it that are elsewhere.
    """

    log: Log
    path: Path
    settings: TopicSettings
    condition: Condition
    was_recovered: bool
    """Whether only a recovery made the log readable."""
    cleaner_checkpoint: int | None
    """The end of its last cleaning."""
    waiting_files: Mapping[str, int]
    """Deleted files that are not removed yet, and their sizes in bytes."""
    ends: dict[int, tuple[SegmentEnd, BatchHeader | None]] = fresh(factory=dict)
    """
    The ends of closed segments by base offset, as ``endings`` has read them, each with the header
    of the batch that follows.
    """

    @property
    def partition(self) -> TopicPartition:
        return self.log.topic_partition


class ReadOnlyLogs:
    """
    The logs in the log directories of a broker.
    """

    def __init__(
        self,
        cluster: ClusterSettings,
        files: Files,
        clock: Clock,
        only: TopicPartition | None = None,
    ) -> None:
        """
        Args:
            only: a partition whose log is in the first of the directories. There may be very many
                others, whose names are not looked at then.

        Raises:
            ExplainError: a log directory does not exist or cannot be read.
        """
        self._cluster = cluster
        self._files = files
        self._clock = clock
        self._places: dict[TopicPartition, tuple[LogRoot, Path]] = {}
        for directory in cluster.data_dirs:
            try:
                root = LogRoot(directory, files)
                logs = root.logs if only is None else {only: directory / str(only)}
            except (FileNotFoundError, NotADirectoryError):
                raise ExplainError(
                    f"There is no log directory {directory}; name one with --data-dir"
                ) from None
            except KafkaError as error:
                raise unreadable(f"The log directory {directory}", error) from None
            for partition, path in logs.items():
                self._places.setdefault(partition, (root, path))

    @property
    def topics(self) -> list[str]:
        return sorted({partition.topic for partition in self._places})

    def find(self, name: str) -> list[TopicPartition]:
        """
        The partition *name*, such as orders-0, or all partitions of the topic *name*.

        Raises:
            ExplainError: neither exists.
        """
        found = sorted(partition for partition in self._places if partition.topic == name)
        if found:
            return found
        match = _PARTITION.fullmatch(name)
        if match:
            partition = TopicPartition(match[1], int(match[2]))
            if partition in self._places:
                return [partition]
            numbers = [there.partition for there in self._places if there.topic == match[1]]
            if numbers:
                there = ", ".join(map(str, sorted(numbers)))
                raise ExplainError(
                    f"Topic {match[1]} has no partition {match[2]} here; it has {there}"
                )
        raise ExplainError(self._unknown(name, match[1] if match else name))

    def _unknown(self, name: str, topic: str) -> str:
        where = ", ".join(map(str, self._cluster.data_dirs))
        sentence = f"There is no topic or partition {name} in {where}"
        nearest = difflib.get_close_matches(topic, self.topics, n=1, cutoff=0.5)
        if nearest:
            return f"{sentence}; did you mean {nearest[0]}?"
        if self.topics:
            known = ", ".join(self.topics[:10]) + (", ..." if len(self.topics) > 10 else "")
            return f"{sentence}; it has {known}"
        return f"{sentence}, which has no topics"

    def open(self, partition: TopicPartition, again: ReadOnlyLog | None = None) -> ReadOnlyLog:
        """
        Args:
            again: the same log, which has not changed since. It takes the settings of now, and is
                used no more. Its ``segment.index.bytes`` has to be that of now.

        Raises:
            ExplainError: its log cannot be read.
        """
        root, path = self._places[partition]
        settings = self._cluster.settings_of(partition.topic)
        if again is not None:
            log, was_recovered = again.log, again.was_recovered
            log.update_config(settings.config)
        else:
            log, was_recovered = self._open_log(
                path,
                settings,
                log_start_offset=_noted(root, LOG_START_OFFSET_CHECKPOINT, partition),
                recovery_point=_noted(root, RECOVERY_POINT_CHECKPOINT, partition),
            )
        condition = _condition(root)
        try:
            is_new = again is None and condition is not Condition.STOPPED
            names = self._files.names(path)
            if is_new and not any(map(is_snapshot_name, names)):
                _find_transactions(log, self._clock)
            waiting_files = dict(self._waiting_files(path, names))
        except READ_ERRORS as error:
            raise unreadable(f"The log in {path}", error) from error
        replicas = self._cluster.replicas_of(partition)
        high_watermark = _noted(root, HIGH_WATERMARK_CHECKPOINT, partition)
        end = log.log_end_offset
        # With one replica, the high watermark is the end of the log.
        alone = replicas is None or replicas <= 1 or high_watermark is None
        log.update_high_watermark(end if alone else min(high_watermark or 0, end))
        return ReadOnlyLog(
            log,
            path,
            settings,
            condition,
            was_recovered,
            _noted(root, CLEANER_CHECKPOINT, partition),
            waiting_files,
            {} if again is None else again.ends,
        )

    def _waiting_files(self, path: Path, names: Iterable[str]) -> Iterator[tuple[str, int]]:
        for name in names:
            if name.endswith(DELETED_SUFFIX):
                with suppress(FileNotFoundError):
                    yield name, self._files.size(path / name)

    def _open_log(
        self,
        path: Path,
        settings: TopicSettings,
        *,
        log_start_offset: int | None,
        recovery_point: int | None,
    ) -> tuple[Log, bool]:
        failure: Exception = AssertionError("the log was opened")
        # A broker may rename a file between two reads; the second attempt then succeeds.
        for recover in (False, False, True):
            try:
                log = open_log(
                    path,
                    settings.config,
                    files=OverlayFiles(self._files),
                    clock=self._clock,
                    failures=LogDirFailureChannel(),
                    log_start_offset=log_start_offset or 0,
                    recovery_point=recovery_point or 0,
                    had_clean_shutdown=not recover,
                )
                _catch_up(log)
            except READ_ERRORS as error:
                failure = error
            else:
                return log, recover
        raise unreadable(f"The log in {path}", failure) from failure


def patiently(explain: Callable[[], Answer]) -> Answer:
    """
    Repeat *explain*, up to ten times, while a broker changes files in the middle of it.

    Raises:
        FilesChanged: it did so each time.
    """
    for _ in range(ATTEMPTS - 1):
        with suppress(FilesChanged):
            return explain()
    return explain()


def _condition(root: LogRoot) -> Condition:
    if root.in_use:
        return Condition.IN_USE
    return Condition.STOPPED if root.clean_shutdown else Condition.KILLED


def _noted(root: LogRoot, name: str, partition: TopicPartition) -> int | None:
    """
    The offset of *partition* in a checkpoint; None if it has none, or is corrupt.
    """
    try:
        return root.checkpoint(name).get(partition)
    except CorruptCheckpoint:
        return None


def _catch_up(log: Log) -> None:
    """
    Add the state that the owner of a log has in memory and writes when it stops.
    """
    active = log.active_segment
    # A stop adds a time index entry for the largest timestamp.
    last = active.time_index.last_entry
    position = active.offset_index.lookup(last.offset).position
    largest = active.log.largest_timestamp_after(position)
    active.note_timestamp(largest.timestamp, largest.offset)
    # Only the owner knows the jitter.
    active.roll_jitter_ms = 0


def _find_transactions(log: Log, clock: Clock) -> None:
    """
    Find open transactions in the records: no snapshot has them before the first roll or a clean
    stop.
    """
    state = log.producers
    state.truncate_fully_and_start_at(log.log_start_offset)
    rebuild_producer_state(
        state, log.segments, log.log_start_offset, log.log_end_offset, clock=clock
    )
