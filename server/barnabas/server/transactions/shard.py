"""
One partition of ``__transaction_state``: the transactional ids that hash to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    KafkaError,
    error_for,
)
from barnabas.protocol.records.batch import HEADER_SIZE, build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.groups.answers import coordinator_error
from barnabas.server.transactions.loading import encode_key, encode_value, load
from barnabas.server.transactions.transaction import Transaction
from barnabas.storage.producers.append_origin import AppendOrigin

if TYPE_CHECKING:
    from barnabas.server.clock import ServerClock
    from barnabas.server.partitions.partition import Partition

TOMBSTONE_OVERHEAD: Final = 32
"""
More than a record takes beside its key.
"""


class TransactionShard:
    """
    What the log of one partition adds up to, and the way to add to it.

    Invariants:

    1. A transactional id is what its last committed record says; nothing else changes it.
    2. An id that is claimed is changed by whoever has claimed it, and nobody else.

    Used on the event loop's thread only; loading alone runs in the executor.
    """

    def __init__(
        self,
        partition: Partition,
        *,
        clock: ServerClock,
        io: Executor,
        server_version: Callable[[], int],
    ) -> None:
        self.partition = partition
        self._server_version = server_version
        self._clock = clock
        self._io = io
        self._transactions: dict[str, Transaction] = {}
        self._claimed: set[str] = set()
        self._is_loaded = False
        self._is_closed = False

    @property
    def is_open(self) -> bool:
        """
        Whether the log is replayed, and these ids are still coordinated.
        """
        return self._is_loaded and self.partition.error is None

    @property
    def epoch(self) -> int:
        """
        The epoch of the coordinator, which its markers carry.
        """
        return self.partition.leader_epoch

    @property
    def transactions(self) -> Mapping[str, Transaction]:
        """
        All transactional ids of this partition.

        Raises:
            CoordinatorLoadInProgress: they are not known yet.
            KafkaError: the partition is not served any more.
        """
        if self.partition.error is not None:
            raise error_for(coordinator_error(self.partition.error.code))
        if not self._is_loaded:
            raise CoordinatorLoadInProgress
        return self._transactions

    async def load(self, buffer_bytes: int) -> None:
        """
        Replay the log, then ``open``.

        Raises:
            Exception: it cannot be read, or is not what a coordinator writes.
        """
        loop = asyncio.get_running_loop()
        log = self.partition.log
        self._transactions = await loop.run_in_executor(self._io, load, log, buffer_bytes)
        self.open()

    def open(self) -> None:
        """
        Take requests: all of the log is replayed.
        """
        self._is_loaded = not self._is_closed

    def close(self) -> None:
        """
        Coordinate these ids no more.
        """
        self._is_closed = True
        self._is_loaded = False
        self._transactions = {}

    # One at a time

    def is_claimed(self, transactional_id: str) -> bool:
        return transactional_id in self._claimed

    def claim(self, transactional_id: str) -> None:
        """
        Be the one who changes a transactional id, until ``release``.

        Raises:
            ConcurrentTransactions: it is being changed already.
        """
        if transactional_id in self._claimed:
            raise ConcurrentTransactions("The transactional id is being changed")
        self._claimed.add(transactional_id)

    def release(self, transactional_id: str) -> None:
        self._claimed.discard(transactional_id)

    # Changing

    async def write(self, transactional_id: str, following: Transaction) -> None:
        """
        Make a transactional id what *following* says, once that is committed.

        Raises:
            KafkaError: the record is not in the log, or nobody knows whether it is; as the client
                is to be told.
        """
        now_ms = self._clock.now_ms()
        # Kafka: TransactionVersion.transactionLogValueVersion
        value = encode_value(following, 1 if self._server_version() >= 1 else 0)
        record = SimpleRecord(now_ms, encode_key(transactional_id), value)
        await self._append([record])
        self._transactions[transactional_id] = following

    async def forget(self, transactional_ids: Iterable[str]) -> None:
        """
        Remove transactional ids, which the caller has claimed.

        Raises:
            KafkaError: as ``write``.
        """
        now_ms = self._clock.now_ms()
        most = self.partition.log.config.max_message_bytes
        batch: dict[str, SimpleRecord] = {}
        size = HEADER_SIZE
        for transactional_id in transactional_ids:
            key = encode_key(transactional_id)
            size += len(key) + TOMBSTONE_OVERHEAD
            if size > most and batch:
                await self._forget(batch)
                batch, size = {}, HEADER_SIZE + len(key) + TOMBSTONE_OVERHEAD
            batch[transactional_id] = SimpleRecord(now_ms, key, None)
        if batch:
            await self._forget(batch)

    async def _forget(self, tombstones: Mapping[str, SimpleRecord]) -> None:
        await self._append(list(tombstones.values()))
        for transactional_id in tombstones:
            self._transactions.pop(transactional_id, None)

    async def _append(self, records: list[SimpleRecord]) -> None:
        try:
            info = self.partition.append(
                memoryview(build_batch(records)), origin=AppendOrigin.COORDINATOR
            )
            await self.partition.committed(info.last_offset + 1)
        except KafkaError as error:
            raise error_for(coordinator_error(error.code))(str(error)) from error

    def __repr__(self) -> str:
        return f"<TransactionShard {self.partition.topic}-{self.partition.index}>"
