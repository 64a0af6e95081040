"""
The transaction coordinator: which shard takes a request, and what it writes.

::

    InitProducerId ---+                        +--> __transaction_state, one record
    AddPartitions  ---+--> claim the id, decide +
    EndTxn         ---+                        +--> prepared --> markers --> completed
    a timeout      ---+

Each partition of ``__transaction_state`` that this broker leads is a ``TransactionShard``; an id
belongs to the partition that it hashes to. What a request means is decided by functions of the
modules beside (``initializing``, ``adding``, ``ending``); here the id is claimed, what follows is
written, and the answer leaves once that is committed (Kafka's ``TransactionCoordinator``,
``TransactionStateManager`` and ``TransactionMarkerChannelManager``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Final

from barnabas.protocol.errors import (
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    ErrorCode,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTransactionTimeout,
    KafkaError,
    NotCoordinator,
    TransactionCoordinatorFenced,
)
from barnabas.server.cluster.topic_names import TRANSACTION_STATE_TOPIC
from barnabas.server.config.coordinators import TransactionOptions
from barnabas.server.coordinators.changes import Producer
from barnabas.server.coordinators.partitioning import partition_of
from barnabas.server.coordinators.producer_ids import ProducerIds
from barnabas.server.coordinators.transactions.adding import add_partitions, verify_partitions
from barnabas.server.coordinators.transactions.ending import (
    SECOND_PROTOCOL,
    check_named,
    complete,
    end,
    end_raising_epoch,
    fence,
)
from barnabas.server.coordinators.transactions.initializing import (
    check,
    initialize,
    needs_producer_id,
    new_transaction,
)
from barnabas.server.coordinators.transactions.markers import MarkerWriter
from barnabas.server.coordinators.transactions.shard import TransactionShard
from barnabas.server.coordinators.transactions.state import TransactionState
from barnabas.server.coordinators.transactions.transaction import Transaction
from barnabas.storage.log_files import TopicPartition

if TYPE_CHECKING:
    from barnabas.server.background import Background
    from barnabas.server.clock import ServerClock
    from barnabas.server.cluster.image import Topic
    from barnabas.server.partition import Partition
    from barnabas.server.partitions import Partitions
    from barnabas.server.topics import Topics

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
"""
How long to wait before a partition that could not take its marker is told again.
"""


class TransactionCoordinator:
    """
    All transactional ids of this broker.

    Invariants:

    1. A shard is in ``_shards`` from the election of this broker until its resignation, loaded or
       not.
    2. No answer that speaks of a change leaves before the change is committed.
    3. A prepared transaction has its markers written, however often that is tried, unless a later
       producer or coordinator has taken over.

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
    ) -> None:
        """
        Args:
            server_version: the cluster's ``transaction.version``, as it is now.
        """
        self._options = options
        self._clock = clock
        self._io = io
        self._background = background
        self._producer_ids = producer_ids
        self._markers = markers
        self._server_version = server_version
        self._shards: dict[int, TransactionShard] = {}
        self._partition_count = options.transaction_state_log_num_partitions
        self._is_active = False

    # Coming and going

    def start(self) -> None:
        """
        Take requests, and look after what nobody ends.
        """
        self._is_active = True
        options = self._options
        abort_ms = options.transaction_abort_timed_out_transaction_cleanup_interval_ms
        remove_ms = options.transaction_remove_expired_transaction_cleanup_interval_ms
        self._background.every("transaction-abort", abort_ms / 1000, self.abort_timed_out)
        self._background.every("transactional-id-expiration", remove_ms / 1000, self.forget_idle)

    def follow(self, topics: Topics, partitions: Partitions) -> None:
        """
        Coordinate what the topic of transactions has, now and when it comes.
        """

        def created(topic: Topic) -> None:
            if topic.name == TRANSACTION_STATE_TOPIC:
                self.lead(partitions.of_topic(TRANSACTION_STATE_TOPIC))

        def deleted(topic: Topic) -> None:
            if topic.name == TRANSACTION_STATE_TOPIC:
                self.lead([])

        topics.on_topic_created.append(created)
        topics.on_topic_deleted.append(deleted)
        self.lead(partitions.of_topic(TRANSACTION_STATE_TOPIC))

    def lead(self, partitions: Sequence[Partition]) -> None:
        """
        These are the partitions of the topic now, and all of them are ours.
        """
        for shard in self._shards.values():
            shard.close()
        self._shards = {}
        # The topic is created when a producer first looks for a coordinator.
        self._partition_count = (
            len(partitions) or self._options.transaction_state_log_num_partitions
        )
        for partition in partitions:
            shard = TransactionShard(partition, clock=self._clock, io=self._io)
            self._shards[partition.index] = shard
            if partition.log.log_end_offset == partition.log.log_start_offset:
                shard.open()
            else:
                self._background.spawn(f"load {shard}", self._load(shard))

    async def _load(self, shard: TransactionShard) -> None:
        try:
            await shard.load(self._options.transaction_state_log_load_buffer_size)
        except asyncio.CancelledError:
            raise
        except Exception:
            # Its ids have no coordinator until somebody looks into it.
            logger.exception("%r cannot be loaded", shard)
            if self._shards.get(shard.partition.index) is shard:
                del self._shards[shard.partition.index]
            return
        if not shard.is_open:
            return
        prepared = {
            transactional_id: transaction
            for transactional_id, transaction in shard.transactions.items()
            if transaction.state.is_prepared
        }
        for transactional_id in prepared:
            shard.claim(transactional_id)
        for transactional_id, transaction in prepared.items():
            logger.info("%s: the end of its transaction goes on", transactional_id)
            await self._complete(shard, transactional_id, transaction)

    def stop(self) -> None:
        """
        Take no more requests. What is prepared is completed at the next start.
        """
        self._is_active = False
        for shard in self._shards.values():
            shard.close()
        self._shards = {}

    # Requests

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: Producer | None
    ) -> Producer:
        """
        Give a transactional id to a producer, and end what the one before has left.

        Args:
            timeout_ms: how long a transaction of the producer may take.
            expected: who the producer was before, if it says so.

        Raises:
            ConcurrentTransactions: the transaction before is about to end; ask again.
            InvalidTransactionTimeout, ProducerFenced, KafkaError: it is refused.
        """
        if not 0 < timeout_ms <= self._options.transaction_max_timeout_ms:
            raise InvalidTransactionTimeout(
                f"{timeout_ms} ms is not within 1 and"
                f" {self._options.transaction_max_timeout_ms} (transaction.max.timeout.ms)"
            )
        shard = self._shard_of(transactional_id)
        known = shard.transactions.get(transactional_id)
        shard.claim(transactional_id)
        try:
            current = known or new_transaction(
                await self._producer_ids.generate_producer_id(), timeout_ms, self._clock.now_ms()
            )
            check(current, expected)
            if current.state is TransactionState.ONGOING:
                following = fence(
                    current,
                    server_version=self._server_version(),
                    new_producer_id=await self._id_if(current.is_exhausted),
                    now_ms=self._clock.now_ms(),
                )
            else:
                following = initialize(
                    current,
                    timeout_ms=timeout_ms,
                    expected=expected,
                    new_producer_id=await self._id_if(needs_producer_id(current, expected)),
                    now_ms=self._clock.now_ms(),
                )
            await self._write(shard, transactional_id, following)
        except BaseException:
            shard.release(transactional_id)
            raise
        if following.state is TransactionState.PREPARE_ABORT:
            # As in Kafka the producer asks again, and is given an epoch that nobody has had.
            await self._complete(shard, transactional_id, following)
            raise ConcurrentTransactions("The transaction of the producer before is aborted")
        shard.release(transactional_id)
        logger.info(
            "%s is now producer %d, epoch %d",
            transactional_id,
            following.producer_id,
            following.producer_epoch,
        )
        return Producer(following.producer_id, following.producer_epoch)

    async def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Set[TopicPartition],
        *,
        client_version: int,
    ) -> None:
        """
        Make partitions part of a transaction, which begins if there is none.

        Raises:
            KafkaError: it is refused.
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
                await self._write(shard, transactional_id, following)
        finally:
            shard.release(transactional_id)

    def verify_partitions(
        self, transactional_id: str, producer: Producer, partitions: Set[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """
        Tell which partitions are part of a transaction.

        Raises:
            KafkaError: the producer has no such transaction.
        """
        _, current = self._find(transactional_id)
        return verify_partitions(current, producer, partitions)

    async def end(
        self, transactional_id: str, producer: Producer, *, commit: bool, client_version: int
    ) -> Producer:
        """
        Commit or abort a transaction.

        Args:
            client_version: the ``transaction.version`` that the producer goes by.

        Returns:
            Who the producer is from now on.

        Raises:
            KafkaError: it is refused.
        """
        shard, current = self._find(transactional_id)
        if client_version < SECOND_PROTOCOL:
            check_named(current, producer)
        shard.claim(transactional_id)
        try:
            following = await self._prepare(current, producer, commit, client_version)
            if following is not current:
                await self._write(shard, transactional_id, following)
        except BaseException:
            shard.release(transactional_id)
            raise
        if following is current:
            shard.release(transactional_id)
            return Producer(current.producer_id, current.producer_epoch)
        after = complete(following, self._clock.now_ms())
        await self._complete(shard, transactional_id, following)
        return Producer(after.producer_id, after.producer_epoch)

    async def _prepare(
        self, current: Transaction, producer: Producer, commit: bool, client_version: int
    ) -> Transaction:
        if client_version < SECOND_PROTOCOL:
            return end(current, producer, commit=commit, now_ms=self._clock.now_ms())
        return end_raising_epoch(
            current,
            producer,
            commit=commit,
            client_version=client_version,
            new_producer_id=await self._id_if(current.is_exhausted),
            now_ms=self._clock.now_ms(),
        )

    # Completing

    async def _complete(
        self, shard: TransactionShard, transactional_id: str, prepared: Transaction
    ) -> None:
        """
        Tell the partitions of a prepared transaction, then note that they are told.

        The id is claimed, and released when that is done. What cannot be told now is tried again
        in the background.
        """
        left = await self._tell(shard, transactional_id, prepared, prepared.partitions)
        if left:
            self._background.spawn(
                f"complete {transactional_id}",
                self._go_on_completing(shard, transactional_id, prepared, left),
            )

    async def _go_on_completing(
        self,
        shard: TransactionShard,
        transactional_id: str,
        prepared: Transaction,
        left: Set[TopicPartition],
    ) -> None:
        while left and shard.is_open:
            await self._clock.sleep(RETRY_SECONDS)
            left = await self._tell(shard, transactional_id, prepared, left)

    async def _tell(
        self,
        shard: TransactionShard,
        transactional_id: str,
        prepared: Transaction,
        partitions: Iterable[TopicPartition],
    ) -> Set[TopicPartition]:
        """
        Tell partitions, complete the transaction if that was all, and return what is left.
        """
        try:
            left = await self._markers.end(prepared, partitions, coordinator_epoch=shard.epoch)
            if left:
                return left
            await self._write(shard, transactional_id, complete(prepared, self._clock.now_ms()))
        except (InvalidProducerEpoch, TransactionCoordinatorFenced) as error:
            logger.info("%s: somebody else ends its transaction: %s", transactional_id, error)
        except KafkaError as error:
            # The log of transactions has failed: it is prepared there, and completed after a start.
            logger.error("%s: its transaction cannot be completed: %s", transactional_id, error)
        except BaseException:
            shard.release(transactional_id)
            raise
        shard.release(transactional_id)
        return frozenset()

    # What time does

    async def abort_timed_out(self) -> None:
        """
        Abort the transactions that take longer than their producers said they would.
        """
        now_ms = self._clock.now_ms()
        for shard in tuple(self._open_shards()):
            for transactional_id, current in tuple(shard.transactions.items()):
                if _is_timed_out(current, now_ms) and not shard.is_claimed(transactional_id):
                    try:
                        await self._abort(shard, transactional_id, current)
                    except KafkaError as error:
                        logger.warning("%s cannot be aborted: %s", transactional_id, error)

    async def _abort(
        self, shard: TransactionShard, transactional_id: str, current: Transaction
    ) -> None:
        logger.info(
            "%s: the transaction that began at %d took longer than %d ms and is aborted",
            transactional_id,
            current.start_ms,
            current.timeout_ms,
        )
        shard.claim(transactional_id)
        try:
            following = fence(
                current,
                server_version=self._server_version(),
                new_producer_id=await self._id_if(current.is_exhausted),
                now_ms=self._clock.now_ms(),
            )
            await self._write(shard, transactional_id, following)
        except BaseException:
            shard.release(transactional_id)
            raise
        await self._complete(shard, transactional_id, following)

    async def forget_idle(self) -> None:
        """
        Forget the ids that nobody has used for ``transactional.id.expiration.ms``.
        """
        latest = self._clock.now_ms() - self._options.transactional_id_expiration_ms
        for shard in tuple(self._open_shards()):
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
                logger.warning("%r: %d idle ids are kept: %s", shard, len(idle), error)
            finally:
                for transactional_id in idle:
                    shard.release(transactional_id)

    # What is known

    def describe(self, transactional_id: str) -> Transaction | None:
        """
        What is known of a transactional id.

        Raises:
            KafkaError: we are not in a position to tell.
        """
        return self._shard_of(transactional_id).transactions.get(transactional_id)

    def transactions(self) -> Iterator[tuple[str, Transaction]]:
        """
        All transactional ids.

        Raises:
            CoordinatorNotAvailable: we are starting, or stopping.
            CoordinatorLoadInProgress: some are not known yet.
        """
        if not self._is_active:
            raise CoordinatorNotAvailable
        for shard in self._shards.values():
            yield from shard.transactions.items()

    # Where an id is

    def partition_for(self, transactional_id: str) -> int:
        """
        The partition of the topic of transactions that an id belongs to.
        """
        return partition_of(transactional_id, self._partition_count)

    def _shard_of(self, transactional_id: str) -> TransactionShard:
        if not self._is_active:
            raise CoordinatorNotAvailable
        if not transactional_id:
            raise InvalidRequest("A transactional id cannot be empty")
        shard = self._shards.get(self.partition_for(transactional_id))
        if shard is None:
            raise NotCoordinator
        return shard

    def _find(self, transactional_id: str) -> tuple[TransactionShard, Transaction]:
        shard = self._shard_of(transactional_id)
        current = shard.transactions.get(transactional_id)
        if current is None:
            raise InvalidProducerIdMapping(f"{transactional_id} has no producer")
        return shard, current

    def _open_shards(self) -> Iterator[TransactionShard]:
        return (shard for shard in self._shards.values() if shard.is_open)

    async def _write(
        self, shard: TransactionShard, transactional_id: str, following: Transaction
    ) -> None:
        await shard.write(transactional_id, following, 1 if self._server_version() >= 1 else 0)

    async def _id_if(self, needed: bool) -> int | None:
        return await self._producer_ids.generate_producer_id() if needed else None


def _is_timed_out(transaction: Transaction, now_ms: int) -> bool:
    return (
        transaction.state is TransactionState.ONGOING
        and transaction.start_ms + transaction.timeout_ms < now_ms
    )
