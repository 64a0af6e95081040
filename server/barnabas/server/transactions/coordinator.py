"""
The transaction coordinator: it changes a transactional id, writes its state and answers.

::

    InitProducerId ---+                        +--> __transaction_state, one record
    AddPartitions  ---+--> claim the id, decide +
    EndTxn         ---+                        +--> prepared --> markers --> completed
    a timeout      ---+

``barnabas.coordination.transactions`` decides the next state of an id. The coordinator claims the
id, writes that state, and answers once it is committed (Kafka's ``TransactionCoordinator`` and
``TransactionStateManager``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Set
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from barnabas.coordination.cluster.topic_names import TRANSACTION_STATE_TOPIC
from barnabas.coordination.config.coordinators import TransactionOptions
from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.coordination.transactions.adding import add_partitions, verify_partitions
from barnabas.coordination.transactions.ending import (
    TV2,
    check_named,
    complete,
    end,
    end_raising_epoch,
    fence,
)
from barnabas.coordination.transactions.initializing import (
    check,
    initialize,
    needs_producer_id,
    new_transaction,
)
from barnabas.coordination.transactions.state import TransactionState
from barnabas.coordination.transactions.transaction import Transaction
from barnabas.protocol.errors import (
    ConcurrentTransactions,
    ErrorCode,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTransactionTimeout,
    KafkaError,
)
from barnabas.server.coordinator_runtime.partition_log import PartitionLog
from barnabas.server.coordinator_runtime.shards import Shards
from barnabas.server.transactions.completing import Completion
from barnabas.server.transactions.markers import MarkerWriter
from barnabas.server.transactions.producer_ids import ProducerIds
from barnabas.server.transactions.shard import TransactionShard
from barnabas.storage.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock
    from barnabas.server.scheduling.background import Background

logger = logging.getLogger(__name__)


class TransactionCoordinator:
    """
    The transactional ids of this broker.

    Invariants:

    1. A request that changes an id has claimed it; others get ``CONCURRENT_TRANSACTIONS``.
    2. The answer to a request that changes an id leaves after the change is committed.

    Used on the event loop's thread only.
    """

    def __init__(
        self,
        *,
        options: TransactionOptions,
        clock: ServerClock,
        io: Executor,
        background: Background,
        producer_ids: ProducerIds,
        markers: MarkerWriter,
        server_version: Callable[[], int],
        memory: MemoryBudget,
        completes: bool = True,
    ) -> None:
        """
        Args:
            server_version: returns the ``transaction.version`` of the cluster.
            memory: the budget of all transactional ids.
            completes: whether prepared transactions that are loaded are completed.
        """
        self._options = options
        self._clock = clock
        self._background = background
        self._producer_ids = producer_ids
        self._server_version = server_version
        self._completion = Completion(markers, clock, background)
        self.shards = Shards(
            TRANSACTION_STATE_TOPIC,
            options.transaction_state_log_num_partitions,
            make=lambda partition: TransactionShard(
                PartitionLog(partition, io),
                options=options,
                clock=clock,
                server_version=server_version,
                memory=memory,
            ),
            background=background,
            on_loaded=self._completion.complete_all if completes else None,
        )

    def start(self) -> None:
        """
        Take requests, and run the checks for timeouts and idle ids.
        """
        self.shards.start()
        options = self._options
        abort_ms = options.transaction_abort_timed_out_transaction_cleanup_interval_ms
        remove_ms = options.transaction_remove_expired_transaction_cleanup_interval_ms
        self._background.every("transaction-abort", abort_ms / 1000, self.abort_timed_out)
        self._background.every("transactional-id-expiration", remove_ms / 1000, self.forget_idle)

    def stop(self) -> None:
        """
        Take no more requests. The next start completes prepared transactions.
        """
        self.shards.stop()

    # Requests

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch | None
    ) -> ProducerIdAndEpoch:
        """
        Assign a transactional id to a producer, and abort the transaction of its predecessor.

        Args:
            timeout_ms: the longest duration of the producer's transactions.
            expected: the identity that the producer had before, if the request has one.

        Raises:
            ConcurrentTransactions: the previous transaction is still completing.
            InvalidRequest, InvalidTransactionTimeout, ProducerFenced, KafkaError: it is refused.
        """
        _check_id(transactional_id)
        if not 0 < timeout_ms <= self._options.transaction_max_timeout_ms:
            raise InvalidTransactionTimeout(
                f"{timeout_ms} ms is not within 1 and"
                f" {self._options.transaction_max_timeout_ms} (transaction.max.timeout.ms)"
            )
        shard = self._shard_of(transactional_id)
        known = shard.transactions.get(transactional_id)
        with _claimed(shard, transactional_id):
            current = known or new_transaction(
                await self._producer_ids.generate_producer_id(), timeout_ms, self._clock.now_ms()
            )
            check(current, expected)
            if current.state is TransactionState.ONGOING:
                following = await self._fence(current)
            else:
                following = initialize(
                    current,
                    timeout_ms=timeout_ms,
                    expected=expected,
                    new_producer_id=await self._id_if(needs_producer_id(current, expected)),
                    now_ms=self._clock.now_ms(),
                )
            await shard.update(transactional_id, following)
        if following.state is TransactionState.PREPARE_ABORT:
            # As in Kafka the producer asks again, and gets an epoch that was never used.
            await self._completion.complete(shard, transactional_id, following)
            raise ConcurrentTransactions("The transaction of the previous producer is aborted")
        shard.release(transactional_id)
        logger.info(
            "%s is now producer %d, epoch %d",
            transactional_id,
            following.producer_id,
            following.producer_epoch,
        )
        return ProducerIdAndEpoch(following.producer_id, following.producer_epoch)

    async def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Set[TopicPartition],
        *,
        client_version: int,
    ) -> None:
        """
        Add partitions to a transaction, which begins if none is ongoing.

        Raises:
            KafkaError: see ``adding.add_partitions`` and ``TransactionShard.update``.
        """
        shard, current = self._find(transactional_id)
        shard.claim(transactional_id)
        try:
            following = add_partitions(
                current,
                producer,
                partitions,
                client_version=client_version,
                now_ms=self._clock.now_ms(),
            )
            if following is not current:
                await shard.update(transactional_id, following)
        finally:
            shard.release(transactional_id)

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Set[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """
        See which partitions are part of a transaction.

        Raises:
            ConcurrentTransactions: a crash may still take the last change of the transaction back.
            KafkaError: see ``adding.verify_partitions``.
        """
        shard, current = self._find(transactional_id)
        if not shard.log.is_settled and shard.is_claimed(transactional_id):
            raise ConcurrentTransactions("The transaction is being changed")
        return verify_partitions(current, producer, partitions)

    async def end(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        *,
        commit: bool,
        client_version: int,
    ) -> ProducerIdAndEpoch:
        """
        Commit or abort a transaction.

        Args:
            client_version: the ``transaction.version`` that the producer uses.

        Returns:
            The producer's identity from now on.

        Raises:
            KafkaError: see ``ending.end``, ``end_raising_epoch`` and ``TransactionShard.update``.
        """
        shard, current = self._find(transactional_id)
        if client_version < TV2:
            check_named(current, producer)
        with _claimed(shard, transactional_id):
            following = await self._prepare(current, producer, commit, client_version)
            if following is not current:
                await shard.update(transactional_id, following)
        if following is current:
            shard.release(transactional_id)
            return ProducerIdAndEpoch(current.producer_id, current.producer_epoch)
        after = complete(following, self._clock.now_ms())
        await self._completion.complete(shard, transactional_id, following)
        return ProducerIdAndEpoch(after.producer_id, after.producer_epoch)

    async def _prepare(
        self, current: Transaction, producer: ProducerIdAndEpoch, commit: bool, client_version: int
    ) -> Transaction:
        if client_version < TV2:
            return end(current, producer, commit=commit, now_ms=self._clock.now_ms())
        return end_raising_epoch(
            current,
            producer,
            commit=commit,
            client_version=client_version,
            new_producer_id=await self._id_if(current.is_exhausted),
            now_ms=self._clock.now_ms(),
        )

    # Timeouts

    async def abort_timed_out(self) -> None:
        """
        Abort the transactions that are ongoing for longer than their timeout.
        """
        for shard in self._open_shards():
            for transactional_id in tuple(shard.transactions):
                try:
                    await self._abort_if_timed_out(shard, transactional_id)
                except KafkaError as error:
                    logger.warning("%s cannot be aborted: %s", transactional_id, error)

    async def _abort_if_timed_out(self, shard: TransactionShard, transactional_id: str) -> None:
        current = shard.transactions.get(transactional_id)
        if current is None or shard.is_claimed(transactional_id):
            return
        if not _is_timed_out(current, self._clock.now_ms()):
            return
        logger.info(
            "%s: the transaction that began at %d is aborted, since its timeout is %d ms",
            transactional_id,
            current.start_ms,
            current.timeout_ms,
        )
        with _claimed(shard, transactional_id):
            following = await self._fence(current)
            await shard.update(transactional_id, following)
        await self._completion.complete(shard, transactional_id, following)

    async def _fence(self, current: Transaction) -> Transaction:
        return fence(
            current,
            server_version=self._server_version(),
            new_producer_id=await self._id_if(current.is_exhausted),
            now_ms=self._clock.now_ms(),
        )

    async def forget_idle(self) -> None:
        """
        Remove the ids that are idle for ``transactional.id.expiration.ms``.
        """
        latest = self._clock.now_ms() - self._options.transactional_id_expiration_ms
        for shard in self._open_shards():
            idle = [
                transactional_id
                for transactional_id, transaction in shard.transactions.items()
                if transaction.state.can_expire
                and transaction.updated_ms <= latest
                and not shard.is_claimed(transactional_id)
            ]
            for transactional_id in idle:
                shard.claim(transactional_id)
            try:
                await shard.forget(idle)
            except KafkaError as error:
                logger.warning("%s: %d idle ids are kept: %s", shard, len(idle), error)
            finally:
                for transactional_id in idle:
                    shard.release(transactional_id)

    # State

    def describe(self, transactional_id: str) -> Transaction | None:
        """
        The state of a transactional id; None if no producer has it.

        Raises:
            KafkaError: the id is not coordinated here, or not loaded yet.
        """
        return self._shard_of(transactional_id).transactions.get(transactional_id)

    def list_transactions(self) -> Iterator[tuple[str, Transaction]]:
        """
        All transactional ids.

        Raises:
            CoordinatorNotAvailable: the broker is starting, or stopping.
            CoordinatorLoadInProgress: some ids are not loaded yet.
        """
        self.shards.check_active()
        for shard in self.shards:
            yield from shard.transactions.items()

    def _open_shards(self) -> Iterator[TransactionShard]:
        return (shard for shard in self.shards if shard.log.is_open)

    def _shard_of(self, transactional_id: str) -> TransactionShard:
        """
        The shard that a transactional id belongs to.

        Raises:
            InvalidRequest: the id is empty.
            KafkaError: see ``Shards.of``.
        """
        self.shards.check_active()
        _check_id(transactional_id)
        return self.shards.of(transactional_id)

    def _find(self, transactional_id: str) -> tuple[TransactionShard, Transaction]:
        """
        The shard and the state of a transactional id.

        Raises:
            InvalidProducerIdMapping: no producer has the id.
            KafkaError: see ``_shard_of`` and ``TransactionShard.transactions``.
        """
        shard = self._shard_of(transactional_id)
        current = shard.transactions.get(transactional_id)
        if current is None:
            raise InvalidProducerIdMapping(f"{transactional_id} has no producer")
        return shard, current

    async def _id_if(self, needed: bool) -> int | None:
        return await self._producer_ids.generate_producer_id() if needed else None


@contextmanager
def _claimed(shard: TransactionShard, transactional_id: str) -> Iterator[None]:
    """
    Claim a transactional id. An error releases it; after a success the caller does.
    """
    shard.claim(transactional_id)
    try:
        yield
    except BaseException:
        shard.release(transactional_id)
        raise


def _check_id(transactional_id: str) -> None:
    """
    Raises:
        InvalidRequest: the id is empty.
    """
    if not transactional_id:
        raise InvalidRequest("A transactional id cannot be empty")


def _is_timed_out(transaction: Transaction, now_ms: int) -> bool:
    return (
        transaction.state is TransactionState.ONGOING
        and transaction.start_ms + transaction.timeout_ms < now_ms
    )
