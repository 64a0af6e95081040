"""
Opening logs to look at them.

A log is opened as a broker opens it after a clean stop, on a file system whose changes stay in
memory. So it is the real log that is asked, also while a broker runs on its directory, and nothing
of it changes. Where a killed broker has left what cannot be read so, the log is recovered as the
next start would: again in memory only.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Final

from barnabas.protocol.structs import struct
from barnabas.storage.clock import Clock
from barnabas.storage.errors import CorruptCheckpoint, KafkaError
from barnabas.storage.explain.known import Cluster, ExplainError, TopicSettings, unreadable
from barnabas.storage.fs.failure import LogDirFailureChannel
from barnabas.storage.fs.interface import Files
from barnabas.storage.log.log import Log
from barnabas.storage.producers.rebuild import rebuild_producer_state
from barnabas.storage.producers.snapshots import list_snapshot_files
from barnabas.storage.readonly.log_root import LogRoot, Offsets
from barnabas.storage.readonly.overlay_files import OverlayFiles
from barnabas.storage.recovery.opening import open_log
from barnabas.storage.state_files.file_names import DELETED_SUFFIX, TopicPartition

READ_ERRORS: Final = (KafkaError, ValueError, FileNotFoundError)
"""What reading a log may end with, also because a broker has removed a part of it meanwhile."""

_PARTITION: Final = re.compile(r"(.+)-([0-9]+)")


class Condition(Enum):
    """
    In what condition a log directory is found.
    """

    IN_USE = "a broker is running on it"
    STOPPED = "its broker was stopped"
    KILLED = "its broker was not stopped properly: the next start recovers what was not flushed"


@struct
class LookedAt:
    """
    A log, and what is known of it that does not stand in it.
    """

    log: Log
    path: Path
    settings: TopicSettings
    condition: Condition
    was_recovered: bool
    """Whether the log had to be recovered to be read."""
    replicas: int | None
    high_watermark_checkpoint: int | None
    cleaner_checkpoint: int | None
    """Where its last cleaning ended."""
    waiting_files: Mapping[str, int]
    """Files that were deleted and are still there, and their bytes."""

    @property
    def partition(self) -> TopicPartition:
        return self.log.topic_partition


class Shelf:
    """
    The partitions in the log directories of a broker.
    """

    def __init__(self, cluster: Cluster, files: Files, clock: Clock) -> None:
        """
        Raises:
            ExplainError: a log directory is not there.
        """
        self._cluster = cluster
        self._files = files
        self._clock = clock
        self._places: dict[TopicPartition, tuple[LogRoot, Path]] = {}
        for directory in cluster.data_dirs:
            try:
                root = LogRoot(directory, files)
            except (FileNotFoundError, KafkaError):
                raise ExplainError(
                    f"There is no log directory {directory}; name one with --data-dir"
                ) from None
            for partition, path in _logs_in(root):
                self._places.setdefault(partition, (root, path))

    @property
    def topics(self) -> list[str]:
        return sorted({partition.topic for partition in self._places})

    def find(self, name: str) -> list[TopicPartition]:
        """
        The partition *name*, such as orders-0, or all partitions of the topic *name*.

        Raises:
            ExplainError: there is neither.
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
                    f"There is no partition {match[2]} of topic {match[1]} here; there is {there}"
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
            return f"{sentence}; there is {known}"
        return f"{sentence}, nor any other"

    def open(self, partition: TopicPartition) -> LookedAt:
        """
        Raises:
            ExplainError: its log cannot be read.
        """
        root, path = self._places[partition]
        settings = self._cluster.settings_of(partition.topic)
        log, was_recovered = self._open_log(
            path,
            settings,
            log_start_offset=_noted(root, "log_start_offsets", partition),
            recovery_point=_noted(root, "recovery_points", partition),
        )
        condition = _condition(root)
        if condition is not Condition.STOPPED and not list_snapshot_files(self._files, path):
            _find_transactions(log, self._clock)
        replicas = self._cluster.replicas_of(partition)
        high_watermark = _noted(root, "high_watermarks", partition)
        end = log.log_end_offset
        # With one replica, what was appended counts at once.
        alone = replicas is None or replicas <= 1 or high_watermark is None
        log.update_high_watermark(end if alone else min(high_watermark or 0, end))
        return LookedAt(
            log,
            path,
            settings,
            condition,
            was_recovered,
            replicas,
            high_watermark,
            _noted(root, "cleaner_offsets", partition),
            dict(self._waiting_files(path)),
        )

    def _waiting_files(self, path: Path) -> Iterator[tuple[str, int]]:
        for name in self._files.names(path):
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
        failure: Exception = AssertionError("it was tried")
        # A broker may have renamed a file between two looks at it; then the next one sees that.
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


def _logs_in(root: LogRoot) -> Iterator[tuple[TopicPartition, Path]]:
    """
    Those that are in use, and that of the cluster's metadata.
    """
    metadata = root.cluster_metadata
    for partition in (*root.partitions, *(() if metadata is None else (metadata,))):
        if not partition.mark:
            yield partition.topic_partition, partition.path


def _condition(root: LogRoot) -> Condition:
    if root.in_use:
        return Condition.IN_USE
    return Condition.STOPPED if root.clean_shutdown else Condition.KILLED


def _noted(root: LogRoot, name: str, partition: TopicPartition) -> int | None:
    try:
        offsets: Offsets = getattr(root.checkpoints, name)
    except CorruptCheckpoint:
        return None
    return offsets.get(partition)


def _catch_up(log: Log) -> None:
    """
    Take in what the owner of a log has in memory, and writes when it stops.
    """
    active = log.active_segment
    # A stop would give the time index an entry for the largest timestamp.
    last = active.time_index.last_entry
    position = active.offset_index.lookup(last.offset).position
    largest = active.log.largest_timestamp_after(position)
    active.note_timestamp(largest.timestamp, largest.offset)
    # Which jitter it drew, nobody but its owner knows.
    active.roll_jitter_ms = 0


def _find_transactions(log: Log, clock: Clock) -> None:
    """
    Look for open transactions in the records themselves, as no snapshot tells of them: only a roll
    or a proper stop writes one.
    """
    state = log.producers
    state.truncate_fully_and_start_at(log.log_start_offset)
    rebuild_producer_state(
        state, log.segments, log.log_start_offset, log.log_end_offset, clock=clock
    )
