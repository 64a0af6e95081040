"""
The transactional ids of one partition of ``__transaction_state``, as its records say.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import Final

from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.coordinator_runtime.result import CoordinatorResult, EncodedRecord
from barnabas.coordination.text_memory import text_bytes
from barnabas.coordination.transactions.records import (
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from barnabas.coordination.transactions.transaction import Transaction
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.structs import NamedTuple

ID_BYTES: Final = 570
"""
The memory of a transactional id, without its name and its partitions.
"""
PARTITION_BYTES: Final = 160
"""
The memory of a partition in a transaction.
"""


class TransactionRecord(NamedTuple):
    """
    The state of a transactional id, or its tombstone.
    """

    transactional_id: str
    transaction: Transaction | None
    version: int  # of the value


class TransactionalIds:
    """
    The transactional ids of one partition, as its records say.
    """

    def __init__(self, memory: MemoryBudget) -> None:
        self.transactions: dict[str, Transaction] = {}
        self._memory = memory
        self._held = memory.hold(0)

    def check_room(self, result: CoordinatorResult[TransactionRecord]) -> None:
        """
        See whether there is memory for new transactional ids and further partitions.

        Raises:
            CoordinatorNotAvailable: there is none.
        """
        self._memory.check_room(sum(map(self._growth, result.records)))

    def _growth(self, record: TransactionRecord) -> int:
        transactional_id, transaction, _ = record
        known = self.transactions.get(transactional_id)
        return _bytes_of(transactional_id, transaction) - _bytes_of(transactional_id, known)

    @staticmethod
    def encode(record: TransactionRecord) -> EncodedRecord:
        """
        The key and the value of a record.
        """
        transactional_id, transaction, version = record
        value = None if transaction is None else encode_value(transaction, version)
        return encode_key(transactional_id), value

    def apply(self, record: TransactionRecord, record_offset: int, producer_id: int) -> None:
        """
        Apply a record that is in the log.
        """
        self._put(record.transactional_id, record.transaction)

    def replay(self, batch: RecordBatch) -> None:
        """
        Apply a batch; control batches mean nothing in this topic.

        Raises:
            DecodeError, ValueError: see ``replay_record``.
        """
        if not batch.is_control:
            for record in batch.records():
                self.replay_record(record.key, record.value, record.offset)

    def replay_record(self, key: bytes | None, value: bytes | None, record_offset: int) -> None:
        """
        Apply a record, or a tombstone.

        Raises:
            DecodeError, ValueError: no coordinator writes this record.
        """
        if key is None:
            raise ValueError("A record of __transaction_state without a key")
        transactional_id = decode_key(key)
        if transactional_id is not None:
            self._put(transactional_id, None if value is None else decode_value(value))

    def loaded(self, now_ms: int) -> None:
        """
        Do nothing: the coordinator completes prepared transactions itself.
        """

    def unloaded(self, now_ms: int) -> None:
        """
        Do nothing: no request waits here.
        """

    def _put(self, transactional_id: str, transaction: Transaction | None) -> None:
        known = self.transactions.get(transactional_id)
        self._held.grow(
            _bytes_of(transactional_id, transaction) - _bytes_of(transactional_id, known)
        )
        if transaction is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = transaction


def _bytes_of(transactional_id: str, transaction: Transaction | None) -> int:
    """
    About the memory of a transactional id, 0 without a transaction.
    """
    if transaction is None:
        return 0
    return ID_BYTES + text_bytes(transactional_id) + PARTITION_BYTES * len(transaction.partitions)
