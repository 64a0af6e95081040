"""
The state of a log's producers: their last batches, and the transactions that are open.

The state is rebuilt from the records. Snapshots make that short: there is one at the base of every
segment but the first, and one at the end of the log when it was closed.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Final

from barnabas.protocol.errors import InvalidProducerEpoch, InvalidTxnState
from barnabas.protocol.records.batch import (
    CONTROL_FLAG,
    NO_PRODUCER_ID,
    TRANSACTIONAL_FLAG,
    RecordBatch,
)
from barnabas.protocol.structs import struct
from barnabas.storage.clock import Clock
from barnabas.storage.errors import CorruptSnapshot
from barnabas.storage.index.txn_index import CompletedTxn
from barnabas.storage.producers.append import ProducerAnalysis, ProducerAppendInfo
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.producers.entry import (
    SENTINEL,
    LastRecord,
    ProducerState,
    ProducerStateEntry,
    TxnMetadata,
    VerificationGuard,
    VerificationStateEntry,
)
from barnabas.storage.producers.open_transactions import OpenTransactions
from barnabas.storage.producers.snapshots import ProducerSnapshots, SnapshotFile
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata
from barnabas.storage.units import DAYS, MINUTES

logger = logging.getLogger(__name__)

LATE_TRANSACTION_BUFFER_MS: Final = 5 * MINUTES
"""As in Kafka's ProducerStateManager."""

EVICTION_CANDIDATES: Final = 100


@struct(frozen=False)
class ProducerStateManagerConfig:
    """
    The settings that all logs of a broker share; a change counts at once.
    """

    producer_id_expiration_ms: int = 1 * DAYS
    """A producer that was idle for this time is removed, unless its transaction is open."""
    transaction_verification_enabled: bool = True
    """Whether the first batch of a transaction needs a ``VerificationGuard``."""
    most_producers: int = 20_000
    """
    The producers of a partition; each takes about 400 bytes. Kafka has no such limit: a client that
    takes another producer id for each batch fills the memory until they expire.
    """
    max_transaction_timeout_ms: int = 15 * MINUTES
    """A transaction is late if it is open for longer than this and the buffer."""


class ProducerStateManager:
    """
    The producers of one log.

    Invariants:

    1. The state is that behind the record at ``map_end_offset`` - 1; it moves with every append,
       also of a batch without a producer.
    2. An append makes no more than ``most_producers`` producers and verifications known: the one
       that is known for longest is forgotten, as if it had expired.

    The log that owns it holds its lock.
    """

    def __init__(
        self,
        topic_partition: object,
        snapshots: ProducerSnapshots,
        config: ProducerStateManagerConfig,
        clock: Clock,
    ) -> None:
        self.config = config
        self.snapshots = snapshots
        self.transactions = OpenTransactions()
        self.map_end_offset = 0
        """The offset behind the last record that is part of the state."""
        self._topic_partition = topic_partition
        self._clock = clock
        self._producers: dict[int, ProducerStateEntry] = {}
        self._verification_states: dict[int, VerificationStateEntry] = {}
        self._last_snap_offset = 0

    # The state.

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

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        entry = self._producers.get(producer_id)
        return (
            entry is not None
            and entry.current_txn_first_offset is not None
            and entry.producer_epoch == epoch
        )

    def has_late_transaction(self, now_ms: int) -> bool:
        """
        Whether the oldest open transaction has had no batch for longer than any may take. Kept for
        Kafka's metric PartitionsWithLateTransactionsCount; only tests call it so far.
        """
        oldest = self.transactions.first_ongoing
        if oldest is None:
            return False
        entry = self._producers.get(oldest.producer_id)
        last = -1 if entry is None else entry.last_timestamp
        limit = self.config.max_transaction_timeout_ms + LATE_TRANSACTION_BUFFER_MS
        return last > 0 and now_ms - last > limit

    def describe(self) -> list[ProducerState]:
        return [
            ProducerState(
                producer_id,
                entry.producer_epoch,
                entry.last_seq,
                entry.last_timestamp,
                entry.coordinator_epoch,
                -1 if entry.current_txn_first_offset is None else entry.current_txn_first_offset,
            )
            for producer_id, entry in self._producers.items()
        ]

    def last_records(self) -> dict[int, LastRecord]:
        """
        The last record of each producer. Compaction keeps the batches with these records.
        """
        return {
            producer_id: LastRecord(
                entry.last_data_offset if entry.last_data_offset >= 0 else None,
                entry.producer_epoch,
            )
            for producer_id, entry in self._producers.items()
        }

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
        self.map_end_offset = max(self.map_end_offset, log_start_offset)
        latest = self.snapshots.latest_offset
        self._last_snap_offset = log_start_offset if latest is None else latest

    # Verification (KIP-890).

    def maybe_start_transaction_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard:
        """
        The guard for the first batch of a transaction; ``SENTINEL`` where the transaction is open.

        Raises:
            InvalidProducerEpoch: there was a batch or marker of a later epoch.
        """
        self._check_epoch(producer_id, epoch)
        if self.has_ongoing_transaction(producer_id, epoch):
            return SENTINEL
        return self.maybe_create_verification_state_entry(
            producer_id, sequence, epoch, supports_epoch_bump=supports_epoch_bump
        ).verification_guard

    def maybe_create_verification_state_entry(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationStateEntry:
        entry = self._verification_states.get(producer_id)
        if entry is None:
            if len(self._verification_states) >= self.config.most_producers:
                # Its producer asks the coordinator again.
                del self._verification_states[next(iter(self._verification_states))]
            entry = self._verification_states[producer_id] = VerificationStateEntry(
                self._clock.now_ms(), sequence, epoch, supports_epoch_bump=supports_epoch_bump
            )
        entry.maybe_update_lowest_sequence_and_epoch(sequence, epoch)
        return entry

    def verification_state_entry(self, producer_id: int) -> VerificationStateEntry | None:
        return self._verification_states.get(producer_id)

    def _check_verified(self, batch: RecordBatch, guard: VerificationGuard) -> None:
        """
        Accept a transactional batch if the transaction is open, or its coordinator has just
        confirmed that it is.
        """
        producer_id = batch.producer_id
        if self.has_ongoing_transaction(producer_id, batch.producer_epoch):
            return
        self._check_epoch(producer_id, batch.producer_epoch)
        if not self.config.transaction_verification_enabled or batch.attributes & CONTROL_FLAG:
            return
        entry = self._verification_states.get(producer_id)
        if entry is None or not entry.verification_guard.verify(guard):
            raise InvalidTxnState("Record was not part of an ongoing transaction")

    def _check_epoch(self, producer_id: int, epoch: int) -> None:
        entry = self._producers.get(producer_id)
        if entry is not None and epoch < entry.producer_epoch:
            raise InvalidProducerEpoch(
                f"Epoch of producer {producer_id} is {epoch}, which is smaller than the last seen "
                f"epoch {entry.producer_epoch}"
            )

    # Appends.

    def analyze(
        self,
        batches: Sequence[RecordBatch],
        place: LogOffsetMetadata,
        *,
        origin: AppendOrigin,
        verification_guard: VerificationGuard,
        transaction_version: int,
    ) -> ProducerAnalysis:
        """
        The changes that *batches* at *place* would make. Nothing is changed yet.

        Raises:
            InvalidTxnState: a transactional batch is part of no transaction that its coordinator
                has confirmed.
            KafkaError: as ``ProducerAppendInfo.append``.
        """
        appends: dict[int, ProducerAppendInfo] = {}
        completed: list[CompletedTxn] = []
        position = place.relative_position_in_segment
        for batch in batches:
            if batch.producer_id >= 0:
                if origin is AppendOrigin.CLIENT:
                    entry = self._producers.get(batch.producer_id)
                    duplicate = None if entry is None else entry.find_duplicate_batch(batch)
                    if duplicate is not None:
                        return ProducerAnalysis((), (), duplicate)
                where = None
                if batch.attributes & TRANSACTIONAL_FLAG:
                    if origin in (AppendOrigin.CLIENT, AppendOrigin.COORDINATOR):
                        self._check_verified(batch, verification_guard)
                    where = LogOffsetMetadata(
                        batch.base_offset, place.segment_base_offset, position
                    )
                txn = self.add_to_append(
                    appends,
                    batch,
                    origin=origin,
                    first_offset_metadata=where,
                    transaction_version=transaction_version,
                )
                if txn is not None:
                    completed.append(txn)
            position += batch.size
        return ProducerAnalysis(tuple(appends.values()), completed, None)

    def add_to_append(
        self,
        appends: dict[int, ProducerAppendInfo],
        batch: RecordBatch,
        *,
        origin: AppendOrigin,
        first_offset_metadata: LogOffsetMetadata | None = None,
        transaction_version: int = 0,
    ) -> CompletedTxn | None:
        """
        Add a batch to the append of its producer; return the transaction that it ends.

        Args:
            appends: by producer; they count once ``update`` is called with them.

        Raises: as ``ProducerAppendInfo.append``.
        """
        producer_id = batch.producer_id
        append_info = appends.get(producer_id)
        if append_info is None:
            append_info = appends[producer_id] = self.prepare_update(producer_id, origin)
        completed = append_info.append(batch, first_offset_metadata, transaction_version)
        if batch.is_transactional:
            # The transaction has its first offset now, or is over: the verification has ended. Only
            # a marker may come after the verification of the next transaction has begun, in the
            # epoch that the marker itself begins (transaction version 2).
            entry = self._verification_states.get(producer_id)
            if entry is not None and not (
                entry.supports_epoch_bump
                and batch.is_control
                and batch.producer_epoch == entry.epoch
            ):
                del self._verification_states[producer_id]
        return completed

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
            self._forget_oldest()
            self._producers[producer_id] = append_info.updated_entry
        else:
            entry.update(append_info.updated_entry)
        if append_info.started_transactions:
            self.transactions.begin(append_info.started_transactions)

    def _forget_oldest(self) -> None:
        """
        Make room for another producer. One with an open transaction stays: a marker will come.
        """
        if len(self._producers) < self.config.most_producers:
            return
        for producer_id, entry in islice(self._producers.items(), EVICTION_CANDIDATES):
            if entry.current_txn_first_offset is None:
                del self._producers[producer_id]
                return

    def remove_expired_producers(self, now_ms: int) -> None:
        """
        Remove the producers, and the verifications, that were idle for too long.
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

    # Snapshots, and starting from one.

    def take_snapshot(self, *, sync: bool = True) -> SnapshotFile | None:
        """
        Write the state to a file, unless it is not newer than the last snapshot.

        Args:
            sync: whether the file is to survive a crash of the machine when this returns.
        """
        offset = self.map_end_offset
        if offset <= self._last_snap_offset:
            return None
        snapshot = self.snapshots.write(offset, self._producers.values(), sync=sync)
        logger.debug(
            "Wrote producer snapshot at offset %d with %d producer ids for %s",
            offset,
            len(self._producers),
            self._topic_partition,
        )
        self._last_snap_offset = offset
        return snapshot

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """
        Go back to the newest snapshot up to *log_end_offset*, and remove those out of range.

        A state that is that of *log_end_offset* already stays, together with producers whose
        records were deleted.
        """
        self.snapshots.remove(
            offset
            for offset in self.snapshots.offsets
            if offset > log_end_offset or offset <= log_start_offset
        )
        if log_end_offset == self.map_end_offset:
            self.on_log_start_offset_incremented(log_start_offset)
            return
        self._producers.clear()
        # Nothing is truncated below the high watermark: unreplicated transactions end as well.
        self.transactions.clear()
        self._load_from_snapshot(log_start_offset, now_ms)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """
        Remove all producers, transactions and snapshots.
        """
        self._producers.clear()
        self.transactions.clear()
        self.snapshots.remove(self.snapshots.offsets)
        self._last_snap_offset = 0
        self.map_end_offset = offset

    def recall_batches(self, known: Mapping[int, ProducerStateEntry]) -> None:
        """
        Add earlier batches of producers: a snapshot has one of each.

        Args:
            known: the producers at the offset of the snapshot, or before it.
        """
        for producer_id, entry in self._producers.items():
            earlier = known.get(producer_id)
            if earlier is not None:
                entry.recall_batches(earlier)

    def _load_from_snapshot(self, log_start_offset: int, now_ms: int) -> None:
        while (latest := self.snapshots.latest_offset) is not None:
            try:
                entries = self.snapshots.read(latest)
            except CorruptSnapshot as error:
                logger.warning("Failed to load producer snapshot at offset %d: %s", latest, error)
                self.snapshots.remove([latest])
                continue
            for entry in entries:
                if not self._is_expired(now_ms, entry):
                    self.load_producer_entry(entry)
            self.map_end_offset = self._last_snap_offset = latest
            return
        self.map_end_offset = self._last_snap_offset = log_start_offset

    def load_producer_entry(self, entry: ProducerStateEntry) -> None:
        """
        Add a producer as it is in a snapshot.
        """
        self._producers[entry.producer_id] = entry
        first_offset = entry.current_txn_first_offset
        if first_offset is not None:
            txn = TxnMetadata(entry.producer_id, LogOffsetMetadata(first_offset))
            self.transactions.begin([txn])
