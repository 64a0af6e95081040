"""
The shard of the transaction coordinator for one partition of ``__transaction_state``.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.coordination.config.coordinators import TransactionOptions
from barnabas.coordination.coordinator_runtime.errors import coordinator_error
from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.coordinator_runtime.result import CoordinatorResult
from barnabas.coordination.transactions.state import TransactionState
from barnabas.coordination.transactions.transaction import Transaction
from barnabas.coordination.transactions.transactional_ids import (
    TransactionalIds,
    TransactionRecord,
)
from barnabas.protocol.errors import ConcurrentTransactions, ErrorCode, error_for
from barnabas.protocol.records.batch import HEADER_SIZE, NO_SEQUENCE
from barnabas.server.coordinator_runtime.partition_log import RECORD_OVERHEAD, PartitionLog
from barnabas.server.coordinator_runtime.shard import CoordinatorShard, LogFormat

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock


END_BYTES: Final = 32
"""
The most bytes by which the record of a prepared transaction is longer than that of the ongoing one:
a previous and a next producer id, and the version of the client.
"""


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
