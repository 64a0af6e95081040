"""
The shard of the transaction coordinator for one partition of ``__transaction_state``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ConcurrentTransactions, KafkaError, error_for
from barnabas.protocol.records.batch import NO_SEQUENCE
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.config.coordinators import TransactionOptions
from barnabas.server.coordinator_runtime.errors import coordinator_error
from barnabas.server.coordinator_runtime.partition_log import PartitionLog
from barnabas.server.transactions.records import TransactionPlayback, encode_key, encode_value
from barnabas.server.transactions.transaction import Transaction

if TYPE_CHECKING:
    from barnabas.server.clock import ServerClock


class TransactionShard:
    """
    The transactional ids of one partition.

    Invariants:

    1. A transactional id is in the state of its last committed record.
    2. Only the request that has claimed an id changes it.

    Used on the event loop's thread only; loading alone runs in the executor.
    """

    def __init__(
        self,
        log: PartitionLog,
        *,
        options: TransactionOptions,
        clock: ServerClock,
        server_version: Callable[[], int],
    ) -> None:
        """
        Args:
            server_version: returns the ``transaction.version`` of the cluster.
        """
        self.log = log
        self._options = options
        self._clock = clock
        self._server_version = server_version
        self._transactions: dict[str, Transaction] = {}
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
            CoordinatorLoadInProgress, KafkaError: see ``PartitionLog.check``.
        """
        try:
            self.log.check()
        except KafkaError as error:
            raise error_for(coordinator_error(error.code)) from None
        return self._transactions

    async def load(self) -> None:
        """
        Replay the log, then ``open``.

        Raises:
            Exception: the log cannot be read, or has records that no coordinator writes.
        """
        playback = TransactionPlayback()
        await self.log.load(playback, self._options.transaction_state_log_load_buffer_size)
        self._transactions = playback.transactions
        self.open()

    def open(self) -> None:
        """
        Take requests: the log is replayed. Without effect after ``close``.
        """
        self.log.open()

    def close(self) -> None:
        """
        Resign: take no more requests.
        """
        self.log.close()
        self._transactions = {}

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

    async def write(self, transactional_id: str, following: Transaction) -> None:
        """
        Write the next state of a transactional id, and take it once it is committed.

        Raises:
            KafkaError: the record was refused, or its commit failed, with the code for the client.
        """
        # Kafka: TransactionVersion.transactionLogValueVersion
        value = encode_value(following, 1 if self._server_version() >= 1 else 0)
        record = SimpleRecord(self._clock.now_ms(), encode_key(transactional_id), value)
        await self._append([record])
        self._transactions[transactional_id] = following

    async def forget(self, transactional_ids: Sequence[str]) -> None:
        """
        Remove transactional ids, which the caller has claimed.

        Raises:
            KafkaError: see ``write``.
        """
        now_ms = self._clock.now_ms()
        tombstones = [SimpleRecord(now_ms, encode_key(each), None) for each in transactional_ids]
        for part in self.log.divided(tombstones):
            await self._append(tombstones[part])
            for transactional_id in transactional_ids[part]:
                self._transactions.pop(transactional_id, None)

    async def _append(self, records: Sequence[SimpleRecord]) -> None:
        try:
            info = self.log.append(records, base_sequence=NO_SEQUENCE)
            await self.log.partition.committed(info.last_offset + 1)
        except KafkaError as error:
            raise error_for(coordinator_error(error.code))(str(error)) from error

    def __repr__(self) -> str:
        return f"<TransactionShard {self.log!r}>"
