"""
The producers of a log: sequences, epochs, transactions.

The engine's own ``ProducerStateManager`` replays the log, from the snapshot at the base of the
first segment if there is one. The replay has one of three qualities:

::

    exact     nothing is missing: the state is that of the broker at the same offset
    partial   the beginning is unknown, or compaction has removed batches: the state is right, but
              may be incomplete
    none      a batch is damaged: nothing is checked any more
"""

from __future__ import annotations

from barnabas.protocol.errors import InvalidTxnState
from barnabas.protocol.records.batch import (
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    RecordBatch,
    increment_sequence,
)
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.storage.clock import Clock
from barnabas.storage.errors import CorruptSnapshot
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.producers.entry import ProducerStateEntry
from barnabas.storage.producers.snapshots import ProducerSnapshots, SnapshotFile, read_snapshot
from barnabas.storage.producers.state import ProducerStateManager, ProducerStateManagerConfig
from barnabas.storage.readonly.partition import PartitionDirectory
from barnabas.storage.verify import invariants
from barnabas.storage.verify.context import LogContext
from barnabas.storage.verify.report import Add, FileReport
from barnabas.storage.verify.snapshots import KnownProducers, check_snapshot, check_strays
from barnabas.storage.verify.transactions import AbortMarker, TxnIndexCheck


class ProducerCheck:
    """
    Replays one log, and compares its files with the state.

    Invariants:

    1. The state is that after the batches so far.
    2. A snapshot is compared when the replay has reached its offset.
    """

    def __init__(
        self,
        partition: PartitionDirectory,
        report: FileReport,
        clock: Clock,
        context: LogContext,
        *,
        first_offset: int,
    ) -> None:
        """
        Begin the replay at *first_offset*, the base offset of the first segment.
        """
        self._partition = partition
        self._report = report
        self._live = context.live
        self._state = ProducerStateManager(
            partition.topic_partition,
            ProducerSnapshots(partition.files, partition.path),
            ProducerStateManagerConfig(),
            clock,
        )
        self._snapshots = list(partition.snapshots)
        self._compared = 0
        self._first_offset = first_offset
        self._reliable = True
        self._gap_before: int | None = None
        self._doubtful: set[int] = set()
        entries = self._beginning(first_offset)
        for entry in entries or ():
            self._state.load_producer_entry(entry)
        self._partial = entries is None or (context.log_start_offset or 0) > first_offset

    def gap(self, offset: int) -> None:
        """
        Batches in front of *offset* are missing, or records of the batch there.
        """
        self._partial = True
        self._gap_before = offset

    def unknown(self) -> None:
        """
        A batch is damaged.
        """
        self._reliable = False

    def batch(self, batch: RecordBatch, add: Add, txns: TxnIndexCheck) -> None:
        """
        Replay the next good batch.
        """
        self._compare_up_to(batch.base_offset)
        if batch.producer_id < 0 or not self._reliable:
            return
        entry = self._state.last_entry(batch.producer_id)
        if entry is not None:
            if batch.producer_epoch < entry.producer_epoch:
                self._doubtful.add(batch.producer_id)
                found = f"epoch {batch.producer_epoch} of producer {batch.producer_id}"
                add(invariants.PRODUCER_EPOCH, found, f"{entry.producer_epoch} or more")
                return
            if not batch.is_control:
                self._check_sequence(entry, batch, add)
        self._replay(batch, add, txns)

    def _check_sequence(self, entry: ProducerStateEntry, batch: RecordBatch, add: Add) -> None:
        if batch.base_sequence < 0 or entry.producer_epoch == NO_PRODUCER_EPOCH:
            return
        gap = self._gap_before
        if gap is not None and (entry.is_empty or gap > entry.last_data_offset):
            return
        last = entry.last_seq if batch.producer_epoch == entry.producer_epoch else NO_SEQUENCE
        if entry.is_empty and self._partial:
            return
        expected = 0 if last == NO_SEQUENCE else increment_sequence(last, 1)
        # A coordinator writes every batch of a transaction with sequence 0.
        is_coordinators = self._partition.topic_partition.topic == "__consumer_offsets"
        if batch.base_sequence != expected and not is_coordinators:
            found = f"sequence {batch.base_sequence} of producer {batch.producer_id} in epoch"
            add(invariants.PRODUCER_SEQUENCE, f"{found} {batch.producer_epoch}", str(expected))

    def _replay(self, batch: RecordBatch, add: Add, txns: TxnIndexCheck) -> None:
        state = self._state
        info = state.prepare_update(batch.producer_id, AppendOrigin.REPLICATION)
        try:
            completed = info.append(batch, None)
        except InvalidTxnState:
            self._doubtful.add(batch.producer_id)
            first = info.updated_entry.current_txn_first_offset
            add(
                invariants.TXN_STATE,
                f"a batch of producer {batch.producer_id} that is not transactional",
                f"one of its transaction, which is open since offset {first}",
            )
            return
        state.update(info)
        if batch.is_control and batch.record_count and _is_abort(batch):
            stable = batch.last_offset + 1
            if completed is not None:
                stable = state.transactions.last_stable_offset(completed)
            first = None if completed is None else completed.first_offset
            marker = AbortMarker(batch.producer_id, batch.last_offset, first, stable)
            exact = not self._partial and batch.producer_id not in self._doubtful
            txns.abort(marker, exact=exact)
        if completed is not None:
            state.complete_txn(completed)
            # Only open transactions are needed, and a log may have very many others.
            state.on_high_watermark_updated(completed.last_offset + 1)

    # Snapshots.

    def _beginning(self, first_offset: int) -> list[ProducerStateEntry] | None:
        """
        The producers in front of the first segment; None if they are unknown.
        """
        if first_offset == 0:
            return []
        for snapshot in self._snapshots:
            if snapshot.offset == first_offset:
                try:
                    return read_snapshot(self._partition.files, snapshot.path)
                except (CorruptSnapshot, FileNotFoundError):
                    return None
        return None

    def _compare_up_to(self, offset: int) -> None:
        while (
            self._compared < len(self._snapshots)
            and self._snapshots[self._compared].offset <= offset
        ):
            self._compare(self._snapshots[self._compared])
            self._compared += 1

    def _compare(self, snapshot: SnapshotFile) -> None:
        report = self._report.beside(snapshot.path)
        entries = self._read(snapshot)
        if entries is None:
            return
        known = KnownProducers(
            self._state.active_producers,
            first_offset=self._first_offset,
            exact=not self._partial,
            doubtful=self._doubtful,
        )
        # The records in front of the first segment were deleted.
        reliable = self._reliable and snapshot.offset > self._first_offset
        check_snapshot(snapshot.offset, entries, known if reliable else None, report)

    def _read(self, snapshot: SnapshotFile) -> list[ProducerStateEntry] | None:
        """
        The entries of a snapshot; None if it is corrupt, which is reported, or was removed.
        """
        try:
            return read_snapshot(self._partition.files, snapshot.path)
        except CorruptSnapshot as error:
            report = self._report.beside(snapshot.path)
            report.add(invariants.SNAPSHOT_FORMAT, str(error), "a whole snapshot")
        except FileNotFoundError:
            pass
        return None

    def end(self, end_offset: int, base_offsets: list[int], *, is_end_known: bool) -> None:
        """
        Compare the remaining snapshots. The log ends before *end_offset*.

        Args:
            is_end_known: whether the end is certain in spite of damage.
        """
        self._compare_up_to(end_offset)
        if self._live:
            return
        beyond = self._snapshots[self._compared :]
        for snapshot in beyond:
            self._read(snapshot)
            if is_end_known and self._partition.files.exists(snapshot.path):
                found, expected = f"offset {snapshot.offset}", f"up to {end_offset}"
                self._report.beside(snapshot.path).add(invariants.SNAPSHOT_END, found, expected)
        kept = [snapshot for snapshot in self._snapshots if snapshot not in beyond]
        check_strays(kept, base_offsets, end_offset, self._report)


def _is_abort(batch: RecordBatch) -> bool:
    for record in batch.records(most_headers=0):
        return EndTransactionMarker.deserialize(record).control_type is ControlRecordType.ABORT
    return False
