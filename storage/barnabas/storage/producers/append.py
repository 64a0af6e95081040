"""
The check of a producer's batch, and the state of the producer after it.

::

    origin        epoch     sequence   a bad one
    CLIENT        checked   checked    is refused
    COORDINATOR   checked   -          is refused
    REPLICATION   checked   -          is logged: it is in the log already

A transaction begins with its first transactional batch, and ends with a marker: a control batch
that the transaction coordinator writes.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)
from barnabas.protocol.records.batch import (
    LAST_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    RecordBatch,
)
from barnabas.protocol.records.control import ControlRecordType, EndTransactionMarker
from barnabas.storage.index.txn_index import CompletedTxn
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.producers.entry import (
    BatchMetadata,
    ProducerStateEntry,
    TxnMetadata,
    VerificationStateEntry,
)
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata

logger = logging.getLogger(__name__)

TV_UNKNOWN: Final = -1
"""The transaction version of a batch that is no marker."""
TV_2: Final = 2
"""From this transaction version on each transaction has an epoch of its own (KIP-890)."""
LAST_PRODUCER_EPOCH: Final = 2**15 - 1


class ProducerAppendInfo:
    """
    The batches of one producer in one append.

    Invariants:

    1. The entry of the log does not change. The changes are in ``updated_entry``, and count only
       when ``ProducerStateManager.update`` is called with it.
    2. ``updated_entry`` has the batches of this append only.

    The rules are those of Kafka's class of the same name.
    """

    __slots__ = (
        "_current_entry",
        "_origin",
        "_partition",
        "_verification_state_entry",
        "producer_id",
        "started_transactions",
        "updated_entry",
    )

    def __init__(
        self,
        partition: object,
        producer_id: int,
        current_entry: ProducerStateEntry,
        origin: AppendOrigin,
        verification_state_entry: VerificationStateEntry | None,
    ) -> None:
        self.producer_id = producer_id
        self.started_transactions: list[TxnMetadata] = []
        self.updated_entry = ProducerStateEntry(
            producer_id,
            current_entry.producer_epoch,
            current_entry.coordinator_epoch,
            current_entry.last_timestamp,
            current_entry.current_txn_first_offset,
        )
        self._partition = partition
        self._current_entry = current_entry
        self._origin = origin
        self._verification_state_entry = verification_state_entry

    def append(
        self,
        batch: RecordBatch,
        first_offset_metadata: LogOffsetMetadata | None,
        transaction_version: int = TV_UNKNOWN,
    ) -> CompletedTxn | None:
        """
        Add one batch.

        Args:
            first_offset_metadata: the place of the batch, if it is known.
            transaction_version: that of the coordinator, for a marker.

        Returns:
            The transaction that the batch ends.

        Raises:
            InvalidProducerEpoch: there was a batch or marker of a later epoch.
            OutOfOrderSequenceNumber: it does not follow the batch before.
            InvalidTxnState: it is not transactional, but a transaction of its producer is open.
            TransactionCoordinatorFenced: there was a marker of a later coordinator.
        """
        if batch.is_control:
            return self._append_control_batch(batch, transaction_version)
        self._append_data_batch(batch, first_offset_metadata)
        return None

    def _append_data_batch(
        self, batch: RecordBatch, first_offset_metadata: LogOffsetMetadata | None
    ) -> None:
        epoch, first_offset = batch.producer_epoch, batch.base_offset
        self._check_producer_epoch(epoch, first_offset, TV_UNKNOWN)
        if self._origin is AppendOrigin.CLIENT:
            self._check_sequence(epoch, batch.base_sequence, first_offset)
        entry = self.updated_entry
        delta = batch.last_offset_delta
        entry.add_batch(
            epoch, batch.last_sequence, first_offset + delta, delta, timestamp=batch.max_timestamp
        )
        if entry.current_txn_first_offset is None:
            if batch.is_transactional:
                entry.current_txn_first_offset = first_offset
                where = first_offset_metadata or LogOffsetMetadata(first_offset)
                self.started_transactions.append(TxnMetadata(self.producer_id, where))
        elif not batch.is_transactional:
            raise InvalidTxnState(
                f"Expected transactional write from producer {self.producer_id} at offset "
                f"{first_offset} in partition {self._partition}"
            )

    def _append_control_batch(
        self, batch: RecordBatch, transaction_version: int
    ) -> CompletedTxn | None:
        for record in batch.records(most_headers=0):
            marker = EndTransactionMarker.deserialize(record)
            return self.append_end_txn_marker(
                marker,
                producer_epoch=batch.producer_epoch,
                offset=batch.base_offset,
                timestamp=record.timestamp,
                transaction_version=transaction_version,
            )
        # Compaction has removed the marker, after all of the transaction.
        return None

    def append_end_txn_marker(
        self,
        marker: EndTransactionMarker,
        *,
        producer_epoch: int,
        offset: int,
        timestamp: int,
        transaction_version: int,
    ) -> CompletedTxn | None:
        """
        Add a marker; return the transaction that it ends, unless there is none.

        Raises:
            ValueError: the transaction version is missing, and the marker is not in a log yet.
            KafkaError: as ``append``.
        """
        if transaction_version == TV_UNKNOWN and self._origin is not AppendOrigin.REPLICATION:
            raise ValueError("A marker needs the transaction version of its coordinator.")
        self._check_producer_epoch(producer_epoch, offset, max(transaction_version, 0))
        self._check_coordinator_epoch(marker, offset)
        entry = self.updated_entry
        first_offset = entry.current_txn_first_offset
        entry.end_transaction(producer_epoch, marker.coordinator_epoch, timestamp)
        if first_offset is None:
            return None
        is_aborted = marker.control_type is ControlRecordType.ABORT
        return CompletedTxn(self.producer_id, first_offset, offset, is_aborted)

    def _check_producer_epoch(self, epoch: int, offset: int, transaction_version: int) -> None:
        current = self.updated_entry.producer_epoch
        if epoch > current or (epoch == current and transaction_version < TV_2):
            return
        if epoch == current and self._may_repeat_marker(epoch):
            logger.info(
                "Producer %d repeats a marker of epoch %d in %s, whose transaction has ended.",
                self.producer_id,
                epoch,
                self._partition,
            )
            return
        comparison = "<=" if transaction_version >= TV_2 else "<"
        sentence = (
            f"Epoch of producer {self.producer_id} at offset {offset} in {self._partition} is "
            f"{epoch}, which is {comparison} the last seen epoch {current} "
            f"(TV{transaction_version})"
        )
        if self._origin is not AppendOrigin.REPLICATION:
            raise InvalidProducerEpoch(sentence)
        logger.warning("%s", sentence)

    def _may_repeat_marker(self, epoch: int) -> bool:
        """
        A coordinator of transaction version 2 whose request to write a marker had no answer writes
        it again; the transaction is over then. After the last epoch there is no later one.
        """
        return self.updated_entry.current_txn_first_offset is None or epoch == LAST_PRODUCER_EPOCH

    def _check_sequence(self, epoch: int, first_seq: int, offset: int) -> None:
        current = self._current_entry
        verification = self._verification_state_entry
        if verification is not None:
            self._check_sequence_of_verified(verification, first_seq, offset)
        updated = self.updated_entry
        if epoch != updated.producer_epoch:
            if first_seq != 0 and updated.producer_epoch != NO_PRODUCER_EPOCH:
                raise OutOfOrderSequenceNumber(
                    f"Invalid sequence number for new epoch of {self._producer_at(offset)}: "
                    f"{epoch} (request epoch), {first_seq} (seq. number), "
                    f"{updated.producer_epoch} (current producer epoch)"
                )
            return
        if current.producer_epoch == NO_PRODUCER_EPOCH:
            # The producer is not known: its records may have been deleted.
            return
        if updated.batch_metadata:
            last_seq = updated.last_seq
        else:
            last_seq = current.last_seq if epoch == current.producer_epoch else NO_SEQUENCE
        if first_seq != last_seq + 1 and not (first_seq == 0 and last_seq == LAST_SEQUENCE):
            raise OutOfOrderSequenceNumber(
                f"Out of order sequence number for {self._producer_at(offset)}: {first_seq} "
                f"(incoming seq. number), {last_seq} (current end sequence number)"
            )

    def _check_sequence_of_verified(
        self, verification: VerificationStateEntry, first_seq: int, offset: int
    ) -> None:
        if verification.supports_epoch_bump and first_seq != 0 and self._current_entry.is_empty:
            raise OutOfOrderSequenceNumber(
                f"Invalid sequence number for {self._producer_at(offset)}: {first_seq} (incoming "
                "seq. number). Expected sequence 0 for transactions v2 idempotent producer with no "
                "existing state."
            )
        if first_seq > verification.lowest_sequence:
            raise OutOfOrderSequenceNumber(
                f"Out of order sequence number for {self._producer_at(offset)}: {first_seq} "
                f"(incoming seq. number), {verification.lowest_sequence} (earliest seen sequence)"
            )

    def _check_coordinator_epoch(self, marker: EndTransactionMarker, offset: int) -> None:
        current = self.updated_entry.coordinator_epoch
        if marker.coordinator_epoch >= current:
            return
        sentence = (
            f"Invalid coordinator epoch for {self._producer_at(offset)}: "
            f"{marker.coordinator_epoch} (zombie), {current} (current)"
        )
        if self._origin is not AppendOrigin.REPLICATION:
            raise TransactionCoordinatorFenced(sentence)
        logger.info("%s", sentence)

    def _producer_at(self, offset: int) -> str:
        return f"producer {self.producer_id} at offset {offset} in partition {self._partition}"

    def __repr__(self) -> str:
        return (
            f"ProducerAppendInfo({self.updated_entry}, "
            f"startedTransactions={self.started_transactions})"
        )


class ProducerAnalysis(NamedTuple):
    """
    The changes that an append makes to its producers.
    """

    updated_producers: Sequence[ProducerAppendInfo]
    completed_txns: Sequence[CompletedTxn]
    maybe_duplicate: BatchMetadata | None


NO_PRODUCERS: Final = ProducerAnalysis((), (), None)
"""The changes of an append without producers."""
