"""
What a log knows of its producers: their last batches, and the transactions that are open.

The state is built from the records. Snapshots keep that short: there is one at the base of every
segment but the first, and one where the log ended when it was closed.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from barnabas.protocol.records.batch import NO_PRODUCER_ID
from barnabas.protocol.structs import struct
from barnabas.storage.clock import Clock
from barnabas.storage.config.options import DAYS, MINUTES
from barnabas.storage.errors import CorruptSnapshot
from barnabas.storage.fs.interface import Files
from barnabas.storage.index.txn_index import CompletedTxn
from barnabas.storage.producers.append import ProducerAppendInfo
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.producers.entry import (
    ProducerStateEntry,
    TxnMetadata,
    VerificationStateEntry,
)
from barnabas.storage.producers.open_transactions import OpenTransactions
from barnabas.storage.producers.snapshots import (
    SnapshotFile,
    list_snapshot_files,
    read_snapshot,
    write_snapshot,
)
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata
from barnabas.storage.state_files.file_names import producer_snapshot_file

__all__ = [
    "ProducerStateManager",
    "ProducerStateManagerConfig",
]

logger = logging.getLogger(__name__)

LATE_TRANSACTION_BUFFER_MS = 5 * MINUTES


@struct(frozen=False)
class ProducerStateManagerConfig:
    """
    What all logs share; a change counts at once.
    """

    producer_id_expiration_ms: int = 1 * DAYS
    """A producer that was idle for so long is forgotten, unless its transaction is open."""
    transaction_verification_enabled: bool = True
    """Whether the first batch of a transaction needs a ``VerificationGuard``."""
    max_transaction_timeout_ms: int = 15 * MINUTES
    """A transaction that is open for longer than this, and some more, is reported as late."""


class ProducerStateManager:
    """
    The producers of one log.

    Invariants:

    1. The state is that after the record at ``map_end_offset`` - 1.
    2. The files of ``snapshots`` are those in the directory, unless somebody else removed one.

    The log that owns it holds its lock.
    """

    def __init__(
        self,
        topic_partition: object,
        directory: Path,
        config: ProducerStateManagerConfig,
        clock: Clock,
        *,
        files: Files,
        listed: Iterable[str] | None = None,
        shares_snapshots_of: ProducerStateManager | None = None,
    ) -> None:
        """
        Args:
            listed: what is in *directory*, sorted, if that is known.
            shares_snapshots_of: who knows the snapshots in *directory*, and is to know of changes.
        """
        self.config = config
        self.transactions = OpenTransactions()
        self._topic_partition = topic_partition
        self._directory = directory
        self._clock = clock
        self._files = files
        self._producers: dict[int, ProducerStateEntry] = {}
        self._verification_states: dict[int, VerificationStateEntry] = {}
        self._last_map_offset = 0
        self._last_snap_offset = 0
        self._snapshots: dict[int, SnapshotFile] = (
            self._load_snapshots(listed)
            if shares_snapshots_of is None
            else shares_snapshots_of._snapshots
        )

    # What is known.

    @property
    def map_end_offset(self) -> int:
        return self._last_map_offset

    @property
    def active_producers(self) -> Mapping[int, ProducerStateEntry]:
        """
        The producers by id.
        """
        return MappingProxyType(self._producers)

    @property
    def is_empty(self) -> bool:
        return not self._producers and not self.transactions.has_unreplicated

    def last_entry(self, producer_id: int) -> ProducerStateEntry | None:
        return self._producers.get(producer_id)

    def has_late_transaction(self, now_ms: int) -> bool:
        """
        Whether the oldest open transaction has had no batch for longer than any may take.
        """
        oldest = self.transactions.first_ongoing
        if oldest is None:
            return False
        entry = self._producers.get(oldest.producer_id)
        last = -1 if entry is None else entry.last_timestamp
        limit = self.config.max_transaction_timeout_ms + LATE_TRANSACTION_BUFFER_MS
        return last > 0 and now_ms - last > limit

    # Transactions.

    def complete_txn(self, completed_txn: CompletedTxn) -> None:
        """
        Raises:
            ValueError: there is no such transaction.
        """
        if not self.transactions.complete(completed_txn):
            raise ValueError(
                f"Attempted to complete transaction {completed_txn} on partition "
                f"{self._topic_partition} which was not started"
            )

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        self.transactions.remove_unreplicated_before(high_watermark)

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        self.transactions.remove_unreplicated_before(log_start_offset)
        self._last_map_offset = max(self._last_map_offset, log_start_offset)
        latest = self.latest_snapshot_offset
        self._last_snap_offset = log_start_offset if latest is None else latest

    # Verification (KIP-890).

    def maybe_create_verification_state_entry(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationStateEntry:
        entry = self._verification_states.get(producer_id)
        if entry is None:
            entry = self._verification_states[producer_id] = VerificationStateEntry(
                self._clock.now_ms(), sequence, epoch, supports_epoch_bump=supports_epoch_bump
            )
        entry.maybe_update_lowest_sequence_and_epoch(sequence, epoch)
        return entry

    def verification_state_entry(self, producer_id: int) -> VerificationStateEntry | None:
        return self._verification_states.get(producer_id)

    def clear_verification_state_entry(self, producer_id: int) -> None:
        self._verification_states.pop(producer_id, None)

    # Appends.

    def prepare_update(self, producer_id: int, origin: AppendOrigin) -> ProducerAppendInfo:
        """
        Begin an append of a producer; it counts once ``update`` is called with it.
        """
        return ProducerAppendInfo(
            self._topic_partition,
            producer_id,
            self._producers.get(producer_id) or ProducerStateEntry(producer_id),
            origin,
            self._verification_states.get(producer_id),
        )

    def update(self, append_info: ProducerAppendInfo) -> None:
        """
        Raises:
            ValueError: it is an append of no producer.
        """
        producer_id = append_info.producer_id
        if producer_id == NO_PRODUCER_ID:
            raise ValueError(
                f"Invalid producer id {producer_id} passed to update for partition "
                f"{self._topic_partition}"
            )
        entry = self._producers.get(producer_id)
        if entry is None:
            self._producers[producer_id] = append_info.updated_entry
        else:
            entry.update(append_info.updated_entry)
        if append_info.started_transactions:
            self.transactions.begin(append_info.started_transactions)

    def update_map_end_offset(self, offset: int) -> None:
        self._last_map_offset = offset

    def remove_expired_producers(self, now_ms: int) -> None:
        """
        Forget the producers, and the verifications, that were idle for too long.
        """
        self._producers = {
            producer_id: entry
            for producer_id, entry in self._producers.items()
            if not self._is_expired(now_ms, entry)
        }
        self._verification_states = {
            producer_id: state
            for producer_id, state in self._verification_states.items()
            if now_ms - state.timestamp < self.config.producer_id_expiration_ms
        }

    def _is_expired(self, now_ms: int, entry: ProducerStateEntry) -> bool:
        return (
            entry.current_txn_first_offset is None
            and now_ms - entry.last_timestamp >= self.config.producer_id_expiration_ms
        )

    # Snapshots.

    @property
    def latest_snapshot_offset(self) -> int | None:
        return max(self._snapshots, default=None)

    def take_snapshot(self, *, sync: bool = True) -> SnapshotFile | None:
        """
        Write the state to a file, unless there is no newer one than in the last.

        Args:
            sync: whether the file is to survive a crash of the machine when this returns.
        """
        offset = self._last_map_offset
        if offset <= self._last_snap_offset:
            return None
        path = producer_snapshot_file(self._directory, offset)
        write_snapshot(self._files, path, self._producers.values(), sync=sync)
        logger.info(
            "Wrote producer snapshot at offset %d with %d producer ids for %s",
            offset,
            len(self._producers),
            self._topic_partition,
        )
        snapshot = self._snapshots[offset] = SnapshotFile(self._files, path)
        self._last_snap_offset = offset
        return snapshot

    def flush_snapshot(self, offset: int) -> None:
        """
        Return once the snapshot at *offset*, if it is still there, survives a crash of the machine.
        """
        snapshot = self._snapshots.get(offset)
        if snapshot is not None:
            snapshot.flush()
            self._files.sync_directory(snapshot.path.parent)

    def update_parent_dir(self, directory: Path) -> None:
        """
        Somebody has renamed the directory.
        """
        self._directory = directory
        for snapshot in self._snapshots.values():
            snapshot.update_parent_dir(directory)

    def remove_stray_snapshots(self, segment_base_offsets: Iterable[int]) -> None:
        """
        Remove snapshots that no segment begins with.

        The newest of these stays if it is newer than the last segment: it was written when the log
        was closed.
        """
        bases = frozenset(segment_base_offsets)
        strays = sorted(offset for offset in self._snapshots if offset not in bases)
        if strays and strays[-1] >= max(bases, default=0):
            del strays[-1]
        for offset in strays:
            self._remove_and_delete_snapshot(offset)

    def remove_and_mark_snapshot_for_deletion(self, offset: int) -> SnapshotFile | None:
        """
        Rename the snapshot at *offset* so that it does not count any more.

        Recovery removes snapshots behind the back of this object; that such a one is missing is
        no error.
        """
        snapshot = self._snapshots.pop(offset, None)
        if snapshot is None or not snapshot.rename_to_delete():
            return None
        return snapshot

    def _load_snapshots(self, listed: Iterable[str] | None = None) -> dict[int, SnapshotFile]:
        found = list_snapshot_files(self._files, self._directory, listed)
        return {snapshot.offset: snapshot for snapshot in found}

    def _remove_and_delete_snapshot(self, offset: int) -> None:
        snapshot = self._snapshots.pop(offset, None)
        if snapshot is not None:
            snapshot.delete_if_exists()

    # Beginning anew.

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """
        Go back to the newest snapshot up to *log_end_offset*, and remove those out of range.

        Where the state is that of *log_end_offset* already it stays, also what is known of
        producers whose records are gone.
        """
        for offset in list(self._snapshots):
            if offset > log_end_offset or offset <= log_start_offset:
                self._remove_and_delete_snapshot(offset)
        if log_end_offset == self._last_map_offset:
            self.on_log_start_offset_incremented(log_start_offset)
            return
        self._producers.clear()
        # Nothing is truncated below the high watermark, so what was unreplicated is gone as well.
        self.transactions.clear()
        self._load_from_snapshot(log_start_offset, now_ms)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """
        Forget everything, remove all snapshots.
        """
        self._producers.clear()
        self.transactions.clear()
        for at in list(self._snapshots):
            self._remove_and_delete_snapshot(at)
        self._last_snap_offset = 0
        self._last_map_offset = offset

    def look_for_snapshots(self) -> None:
        """
        Somebody has put snapshots into the directory, or has removed some.
        """
        self._snapshots = self._load_snapshots()

    def recall_batches(self, known: Mapping[int, ProducerStateEntry]) -> None:
        """
        Remember earlier batches of producers: a snapshot has one of each.

        Args:
            known: what was known of the producers at the offset of the snapshot, or before it.
        """
        for producer_id, entry in self._producers.items():
            earlier = known.get(producer_id)
            if earlier is not None:
                entry.recall_batches(earlier)

    def _load_from_snapshot(self, log_start_offset: int, now_ms: int) -> None:
        while (latest := self.latest_snapshot_offset) is not None:
            snapshot = self._snapshots[latest]
            try:
                entries = read_snapshot(self._files, snapshot.path)
            except CorruptSnapshot as error:
                logger.warning("Failed to load producer snapshot: %s", error)
                self._remove_and_delete_snapshot(latest)
                continue
            for entry in entries:
                if not self._is_expired(now_ms, entry):
                    self.load_producer_entry(entry)
            self._last_map_offset = self._last_snap_offset = latest
            return
        self._last_map_offset = self._last_snap_offset = log_start_offset

    def load_producer_entry(self, entry: ProducerStateEntry) -> None:
        """
        Know a producer as a snapshot tells it.
        """
        self._producers[entry.producer_id] = entry
        first_offset = entry.current_txn_first_offset
        if first_offset is not None:
            txn = TxnMetadata(entry.producer_id, LogOffsetMetadata(first_offset))
            self.transactions.begin([txn])
