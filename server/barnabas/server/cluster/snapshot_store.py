"""
The snapshots of the metadata log: when one is due, and which are removed.

A snapshot is written after ``metadata.log.max.record.bytes.between.snapshots`` or, if there are new
records, ``metadata.log.max.snapshot.interval.ms`` (Kafka's ``SnapshotGenerator``). The oldest
snapshot is removed, with the log up to the next one, when log and snapshots together exceed
``metadata.max.retention.bytes``, or its age ``metadata.max.retention.ms``; the newest one stays
(Kafka's ``KafkaRaftLog.maybeClean``). A stop writes no snapshot.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from barnabas.coordination.cluster.errors import InconsistentSnapshots
from barnabas.coordination.cluster.replay import Replay
from barnabas.server.cluster.snapshots import (
    SnapshotId,
    find_snapshots,
    read_snapshot,
    snapshot_batches,
    write_snapshot,
)
from barnabas.server.config import BrokerConfig
from barnabas.storage.clock import Clock
from barnabas.storage.fs.interface import Files
from barnabas.storage.log.log import Log
from barnabas.storage.log.watermarks import LogStartOffsetIncrementReason

logger = logging.getLogger(__name__)


class SnapshotStore:
    """
    The snapshots in the directory of the metadata log.

    Invariants:

    1. ``_ids`` has the complete snapshots, in order, and none that ends before the log starts.
    2. If the log does not start at 0, a snapshot has all records before its start.
    """

    def __init__(self, log: Log, *, config: BrokerConfig, files: Files, clock: Clock) -> None:
        self._log = log
        self._config = config
        self._files = files
        self._clock = clock
        self._ids: list[SnapshotId] = []
        self._bytes_since = 0
        self._last = clock.monotonic()

    @property
    def latest(self) -> SnapshotId | None:
        return self._ids[-1] if self._ids else None

    def recover(self) -> Replay:
        """
        Remove incomplete and obsolete snapshots, and read the latest one.

        Raises:
            InconsistentSnapshots: a part of the metadata is missing.
            CorruptMessage, InconsistentMetadata: the snapshot is damaged.
            UnknownMetadataRecord, UnsupportedFeatureLevel: a later release wrote it.
        """
        directory, start = self._log.dir, self._log.log_start_offset
        found = find_snapshots(directory, self._files)
        self._ids = [snapshot for snapshot in found.complete if snapshot.end_offset >= start]
        latest = self.latest
        if start > 0 and latest is None:
            raise InconsistentSnapshots(
                f"{directory}: the log starts at offset {start}, and no snapshot reaches that far"
            )
        for path in found.leftovers:
            self._files.remove(path)
        for snapshot in found.complete[: -len(self._ids) or None]:
            self._files.remove(snapshot.path(directory))
        if latest is None:
            return Replay()
        end = SnapshotId(self._log.log_end_offset, self._log.leader_epochs.latest_epoch or 0)
        if (latest.epoch, latest.end_offset) > (end.epoch, end.end_offset):
            # The end of the log was lost. As in Kafka it continues from the snapshot.
            self._log.truncate_fully_and_start_at(latest.end_offset)
        return read_snapshot(latest.path(directory), self._files)

    def count(self, size: int) -> None:
        """
        Count a batch of *size* bytes after the last snapshot.
        """
        self._bytes_since += size

    def is_due(self) -> bool:
        """
        Whether it is time for another snapshot.
        """
        if self._bytes_since >= self._config.metadata_log_max_record_bytes_between_snapshots:
            return True
        interval_ms = self._config.metadata_log_max_snapshot_interval_ms
        waited_ms = (self._clock.monotonic() - self._last) * 1000
        return self._bytes_since > 0 and 0 < interval_ms <= waited_ms

    def prepare(self, replay: Replay, epoch: int) -> Callable[[], None]:
        """
        Return a function that writes a snapshot of *replay* as it is now, and may block for long.
        """
        records = list(replay.image.as_records())
        snapshot = SnapshotId(self._log.log_end_offset, epoch)
        content = snapshot_batches(
            records,
            epoch=epoch,
            now_ms=self._clock.now_ms(),
            last_contained_ms=replay.last_timestamp,
            quorum=dict(replay.quorum),
        )
        self._bytes_since = 0
        self._last = self._clock.monotonic()

        def write() -> None:
            if self.latest != snapshot:
                write_snapshot(self._log.dir, snapshot, content, self._files)
                self._ids.append(snapshot)
                logger.info("Wrote metadata snapshot %s", snapshot.path(self._log.dir).name)
            self.clean()

        return write

    def clean(self) -> None:
        """
        Remove expired snapshots. May block.
        """
        while len(self._ids) > 1 and self._may_go(self._ids[0]):
            oldest, following = self._ids[0], self._ids[1]
            self._log.maybe_increment_log_start_offset(
                following.end_offset, LogStartOffsetIncrementReason.SNAPSHOT_GENERATED
            )
            self._log.delete_old_segments()
            self._files.remove(oldest.path(self._log.dir))
            self._ids.pop(0)
            logger.info("Removed metadata snapshot %s", oldest.path(self._log.dir).name)
        self._log.remove_deleted_files()

    def _may_go(self, oldest: SnapshotId) -> bool:
        max_bytes = self._config.metadata_max_retention_bytes
        if 0 <= max_bytes < self._log.size + sum(self._sizes()):
            return True
        max_ms = self._config.metadata_max_retention_ms
        if max_ms < 0:
            return False
        written_ms = read_snapshot(oldest.path(self._log.dir), self._files).snapshot_timestamp
        return self._clock.now_ms() - written_ms > max_ms

    def _sizes(self) -> Iterator[int]:
        return (self._files.size(snapshot.path(self._log.dir)) for snapshot in self._ids)
