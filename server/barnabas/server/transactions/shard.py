"""
The shard of the transaction coordinator for one partition of ``__transaction_state``.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import ConcurrentTransactions, ErrorCode, error_for
from barnabas.protocol.records.batch import HEADER_SIZE, NO_SEQUENCE, RecordBatch
from barnabas.protocol.structs import NamedTuple
from barnabas.server.config.coordinators import TransactionOptions
from barnabas.server.coordinator_runtime.errors import coordinator_error
from barnabas.server.coordinator_runtime.memory import MemoryBudget
from barnabas.server.coordinator_runtime.partition_log import RECORD_OVERHEAD, PartitionLog
from barnabas.server.coordinator_runtime.result import CoordinatorResult, EncodedRecord
from barnabas.server.coordinator_runtime.shard import CoordinatorShard, LogFormat
from barnabas.server.text_memory import text_bytes
from barnabas.server.transactions.records import (
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from barnabas.server.transactions.state import TransactionState
from barnabas.server.transactions.transaction import Transaction

if TYPE_CHECKING:
    from barnabas.server.clock import ServerClock


ID_BYTES: Final = 570
"""
The memory of a transactional id, without its name and its partitions.
"""
PARTITION_BYTES: Final = 160
"""
The memory of a partition in a transaction.
"""
END_BYTES: Final = 32
"""
The most bytes by which the record of a prepared transaction is longer than that of the ongoing one:
a previous and a next producer id, and the version of the client.
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


class TransactionShard(CoordinatorShard[TransactionalIds]):
    """
    The transactional ids of one partition, and who changes them.

    Invariants:

    1. Only the request that has claimed an id changes it.

    Used on the event loop's thread only; loading alone runs in the executor.
    """

    def __init__(
        self,
        log: PartitionLog,
        *,
        options: TransactionOptions,
        clock: ServerClock,
        server_version: Callable[[], int],
        memory: MemoryBudget,
    ) -> None:
        """
        Args:
            server_version: returns the ``transaction.version`` of the cluster.
            memory: the budget of all transactional ids of the broker.
        """
        super().__init__(
            log,
            log_format=LogFormat(
                base_sequence=NO_SEQUENCE,
                load_buffer_bytes=options.transaction_state_log_load_buffer_size,
            ),
            clock=clock,
            make_state=lambda timers: TransactionalIds(memory),
        )
        self._server_version = server_version
        self._claimed: set[str] = set()

    @property
    def epoch(self) -> int:
        """
        The epoch of the coordinator, which its markers carry.
        """
        return self.log.partition.leader_epoch

    @property
    def transactions(self) -> Mapping[str, Transaction]:
        """
        All transactional ids of this partition.

        Raises:
            CoordinatorLoadInProgress, KafkaError: see ``check``.
        """
        return self.state.transactions

    # Claims

    def is_claimed(self, transactional_id: str) -> bool:
        return transactional_id in self._claimed

    def claim(self, transactional_id: str) -> None:
        """
        Exclude other requests from changing a transactional id, until ``release``.

        Raises:
            ConcurrentTransactions: another request has claimed it.
        """
        if transactional_id in self._claimed:
            raise ConcurrentTransactions("The transactional id is being changed")
        self._claimed.add(transactional_id)

    def release(self, transactional_id: str) -> None:
        self._claimed.discard(transactional_id)

    # Records

    async def update(self, transactional_id: str, following: Transaction) -> None:
        """
        Write the next state of a transactional id, and return once it is committed.

        Raises:
            KafkaError: the record was refused, or its commit failed, with the code for the client.
        """
        # Kafka: TransactionVersion.transactionLogValueVersion
        version = 1 if self._server_version() >= 1 else 0
        record = TransactionRecord(transactional_id, following, version)
        key, value = encoded = self._state.encode(record)
        if following.state is TransactionState.ONGOING:
            self._check_end_fits(len(key) + len(value or b""))
        await self.commit(CoordinatorResult(records=[record], encoded=[encoded]))

    def _check_end_fits(self, size: int) -> None:
        """
        See whether the record that ends an ongoing transaction fits into the topic as well. If it
        did not, the transaction could not end, and readers would wait at its first record forever.

        Args:
            size: the bytes of key and value of its record.

        Raises:
            KafkaError: it does not fit; the error is that of a record that is too large.
        """
        most = self.log.max_message_bytes
        if HEADER_SIZE + RECORD_OVERHEAD + size + END_BYTES > most:
            raise error_for(coordinator_error(ErrorCode.MESSAGE_TOO_LARGE))(
                f"A transaction with these partitions needs a record of more than {most} bytes"
            )

    async def forget(self, transactional_ids: Sequence[str]) -> None:
        """
        Remove transactional ids, which the caller has claimed.

        Raises:
            KafkaError: see ``update``.
        """
        tombstones = [TransactionRecord(each, None, 0) for each in transactional_ids]
        await self.commit(CoordinatorResult(records=tombstones, is_atomic=False))
