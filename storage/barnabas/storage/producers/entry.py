"""
The state of one producer in a log.

Producers number their records, so that a batch which is sent twice is stored once (KIP-98). A log
keeps each producer's last batches for that, and the first offset of its open transaction.
"""

from __future__ import annotations

import itertools
from typing import Final

from barnabas.protocol.records.batch import (
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    RecordBatch,
    decrement_sequence,
)
from barnabas.protocol.structs import NamedTuple
from barnabas.storage.segment.offset_metadata import LogOffsetMetadata

NUM_BATCHES_TO_RETAIN: Final = 5
"""The number of requests that an idempotent producer may have in flight, as in Kafka."""
NO_COORDINATOR_EPOCH: Final = -1


class BatchMetadata(NamedTuple):
    """
    A batch that was stored. Its timestamp is the largest of its records', in ms.
    """

    last_seq: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_seq(self) -> int:
        return decrement_sequence(self.last_seq, self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerStateEntry:
    """
    The last batches and the transaction of one producer in a log.

    Invariants:

    1. There are no more than ``NUM_BATCHES_TO_RETAIN`` batches, oldest first, all of one epoch.
    2. Without an open transaction ``current_txn_first_offset`` is None.
    """

    __slots__ = (
        "batch_metadata",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
        last_timestamp: int = NO_TIMESTAMP,
        current_txn_first_offset: int | None = None,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        """Of the last batch or marker, in ms."""
        self.current_txn_first_offset = current_txn_first_offset
        self.batch_metadata: list[BatchMetadata] = []

    @property
    def is_empty(self) -> bool:
        """
        Whether no batch is known. There may have been one: a marker of a new epoch removes them.
        """
        return not self.batch_metadata

    @property
    def first_seq(self) -> int:
        return self.batch_metadata[0].first_seq if self.batch_metadata else NO_SEQUENCE

    @property
    def last_seq(self) -> int:
        return self.batch_metadata[-1].last_seq if self.batch_metadata else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        return self.batch_metadata[-1].last_offset if self.batch_metadata else -1

    @property
    def last_offset_delta(self) -> int:
        return self.batch_metadata[-1].offset_delta if self.batch_metadata else 0

    def add_batch(
        self,
        producer_epoch: int,
        last_seq: int,
        last_offset: int,
        offset_delta: int,
        timestamp: int,
    ) -> None:
        """
        Add a batch, and remove the oldest if there are too many.
        """
        batches = self.batch_metadata
        if self.producer_epoch != producer_epoch:
            batches.clear()
            self.producer_epoch = producer_epoch
        elif len(batches) == NUM_BATCHES_TO_RETAIN:
            del batches[0]
        batches.append(BatchMetadata(last_seq, last_offset, offset_delta, timestamp))
        self.last_timestamp = timestamp

    def update(self, that: ProducerStateEntry) -> None:
        """
        Add the batches and the transaction of an append.
        """
        batches = self.batch_metadata
        if self.producer_epoch != that.producer_epoch:
            batches.clear()
            self.producer_epoch = that.producer_epoch
        batches += that.batch_metadata
        del batches[:-NUM_BATCHES_TO_RETAIN]
        self.coordinator_epoch = that.coordinator_epoch
        self.current_txn_first_offset = that.current_txn_first_offset
        self.last_timestamp = that.last_timestamp

    def recall_batches(self, that: ProducerStateEntry) -> None:
        """
        Add the earlier batches of *that*, if both have the same last batch.
        """
        mine, known = self.batch_metadata, that.batch_metadata
        if self.producer_epoch != that.producer_epoch or len(known) <= len(mine):
            return
        if mine and mine[-1].last_offset == known[-1].last_offset:
            mine[:-1] = known[:-1]

    def end_transaction(self, producer_epoch: int, coordinator_epoch: int, timestamp: int) -> None:
        """
        Note that a marker has ended the transaction, if there was one. Batches of its epoch stay.
        """
        if self.producer_epoch != producer_epoch:
            self.batch_metadata.clear()
            self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_first_offset = None
        self.last_timestamp = timestamp

    def find_duplicate_batch(self, batch: RecordBatch) -> BatchMetadata | None:
        """
        The stored batch that *batch* repeats: of the same epoch, with the same sequences.
        """
        known = self.batch_metadata
        if not known or batch.producer_epoch != self.producer_epoch:
            return None
        last_seq = batch.last_sequence
        for metadata in known:
            if metadata.last_seq == last_seq and metadata.first_seq == batch.base_sequence:
                return metadata
        return None

    def __repr__(self) -> str:
        return (
            f"ProducerStateEntry(producerId={self.producer_id}, "
            f"producerEpoch={self.producer_epoch}, "
            f"currentTxnFirstOffset={self.current_txn_first_offset}, "
            f"coordinatorEpoch={self.coordinator_epoch}, lastTimestamp={self.last_timestamp}, "
            f"batchMetadata={self.batch_metadata})"
        )


class ProducerState(NamedTuple):
    """
    An active producer in the answer to DescribeProducers (KIP-664); -1 stands for unknown values.
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


class TxnMetadata:
    """
    A transaction of a producer in one log.
    """

    __slots__ = ("first_offset", "last_offset", "producer_id")

    def __init__(self, producer_id: int, first_offset: LogOffsetMetadata) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset: int | None = None
        """The offset of its marker, once it has one."""

    def __repr__(self) -> str:
        return (
            f"TxnMetadata(producerId={self.producer_id}, firstOffset={self.first_offset}, "
            f"lastOffset={self.last_offset})"
        )


class VerificationGuard:
    """
    A ticket for the first batch of a transaction, taken before the coordinator is asked whether the
    transaction is open (KIP-890). The batch is appended only if the ticket is still current then.
    """

    __slots__ = ("_value",)

    _values = itertools.count(1)

    def __init__(self, value: int | None = None) -> None:
        self._value = next(self._values) if value is None else value

    def verify(self, verifying_guard: VerificationGuard) -> bool:
        """
        Whether *verifying_guard* is this ticket. ``SENTINEL`` equals no ticket.
        """
        return verifying_guard is not SENTINEL and verifying_guard._value == self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VerificationGuard) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return f"VerificationGuard(value={self._value})"


SENTINEL: Final = VerificationGuard(0)
"""Stands for no ticket: none is needed, as the transaction is open already."""


class VerificationStateEntry:
    """
    The verification of a producer's next transaction that is under way.

    It has the lowest sequence that was seen: were a later batch appended first, the earlier one
    would be refused for ever.
    """

    __slots__ = (
        "epoch",
        "lowest_sequence",
        "supports_epoch_bump",
        "timestamp",
        "verification_guard",
    )

    def __init__(
        self, timestamp: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> None:
        self.timestamp = timestamp
        self.verification_guard = VerificationGuard()
        self.supports_epoch_bump = supports_epoch_bump
        """Whether each transaction of the producer has an epoch of its own (transaction v2)."""
        self.lowest_sequence = sequence
        self.epoch = epoch

    def maybe_update_lowest_sequence_and_epoch(self, sequence: int, epoch: int) -> None:
        if epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence
        elif epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
