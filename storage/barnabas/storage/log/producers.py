"""
What a log asks of its producers when they append.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.errors import InvalidProducerEpoch, InvalidTxnState
from barnabas.protocol.records.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, RecordBatch
from barnabas.storage.index.txn_index import CompletedTxn
from barnabas.storage.producers.append import ProducerAppendInfo
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.producers.entry import (
    SENTINEL,
    BatchMetadata,
    VerificationGuard,
)
from barnabas.storage.producers.rebuild import update_producers
from barnabas.storage.producers.state import ProducerStateManager
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata


class ProducerState(NamedTuple):
    """
    An active producer, as DescribeProducers tells it (KIP-664); -1 for what is not known.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


class LastRecord(NamedTuple):
    """
    The last record of a producer, and the epoch it is in.
    """

    last_data_offset: int | None
    producer_epoch: int


class ProducerAnalysis(NamedTuple):
    """
    What an append means for its producers.
    """

    updated_producers: Sequence[ProducerAppendInfo]
    completed_txns: Sequence[CompletedTxn]
    maybe_duplicate: BatchMetadata | None


NO_PRODUCERS: Final = ProducerAnalysis((), (), None)


class LogProducers:
    """
    The producers of one log, and who of them may append what. The log holds its lock.
    """

    __slots__ = ("state",)

    def __init__(self, state: ProducerStateManager) -> None:
        self.state = state

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
        What *batches* mean that are to be appended at *place*. Nothing is changed yet.

        Raises:
            InvalidTxnState: a transactional batch is part of no transaction that its coordinator
                knows of.
            KafkaError: as ``ProducerAppendInfo.append``.
        """
        updated: dict[int, ProducerAppendInfo] = {}
        completed: list[CompletedTxn] = []
        position = place.relative_position_in_segment
        for batch in batches:
            if batch.producer_id >= 0:
                if origin is AppendOrigin.CLIENT:
                    entry = self.state.last_entry(batch.producer_id)
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
                txn = update_producers(
                    self.state,
                    batch,
                    updated,
                    origin=origin,
                    first_offset_metadata=where,
                    transaction_version=transaction_version,
                )
                if txn is not None:
                    completed.append(txn)
            position += batch.size
        return ProducerAnalysis(tuple(updated.values()), completed, None)

    def _check_verified(self, batch: RecordBatch, guard: VerificationGuard) -> None:
        """
        Let a transactional batch through if the transaction is open, or its coordinator has just
        said that it is (KIP-890).
        """
        if self.has_ongoing_transaction(batch.producer_id, batch.producer_epoch):
            return
        self._check_epoch(batch.producer_id, batch.producer_epoch)
        if (
            self.state.config.transaction_verification_enabled
            and not batch.attributes & CONTROL_FLAG
            and not self.verification_guard(batch.producer_id).verify(guard)
        ):
            raise InvalidTxnState("Record was not part of an ongoing transaction")

    def _check_epoch(self, producer_id: int, epoch: int) -> None:
        entry = self.state.last_entry(producer_id)
        if entry is not None and epoch < entry.producer_epoch:
            raise InvalidProducerEpoch(
                f"Epoch of producer {producer_id} is {epoch}, which is smaller than the last seen "
                f"epoch {entry.producer_epoch}"
            )

    def maybe_start_transaction_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard:
        """
        The ticket for the first batch of a transaction; none where the transaction is open.

        Raises:
            InvalidProducerEpoch: there was a batch or marker of a later epoch.
        """
        self._check_epoch(producer_id, epoch)
        if self.has_ongoing_transaction(producer_id, epoch):
            return SENTINEL
        return self.state.maybe_create_verification_state_entry(
            producer_id, sequence, epoch, supports_epoch_bump=supports_epoch_bump
        ).verification_guard

    def verification_guard(self, producer_id: int) -> VerificationGuard:
        entry = self.state.verification_state_entry(producer_id)
        return SENTINEL if entry is None else entry.verification_guard

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        entry = self.state.last_entry(producer_id)
        return (
            entry is not None
            and entry.current_txn_first_offset is not None
            and entry.producer_epoch == epoch
        )

    # What is known of them.

    def active(self) -> list[ProducerState]:
        return [
            ProducerState(
                producer_id,
                entry.producer_epoch,
                entry.last_seq,
                entry.last_timestamp,
                entry.coordinator_epoch,
                -1 if entry.current_txn_first_offset is None else entry.current_txn_first_offset,
            )
            for producer_id, entry in self.state.active_producers.items()
        ]

    def last_records(self) -> dict[int, LastRecord]:
        """
        The last record of each producer. Compaction keeps the batches they are in.
        """
        return {
            producer_id: LastRecord(
                entry.last_data_offset if entry.last_data_offset >= 0 else None,
                entry.producer_epoch,
            )
            for producer_id, entry in self.state.active_producers.items()
        }
