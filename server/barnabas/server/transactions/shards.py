"""
The partitions of ``__transaction_state`` that this broker leads, on one node all of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from barnabas.protocol.errors import (
    CoordinatorNotAvailable,
    InvalidProducerIdMapping,
    InvalidRequest,
    NotCoordinator,
)
from barnabas.server.cluster.topic_names import TRANSACTION_STATE_TOPIC
from barnabas.server.config.coordinators import TransactionOptions
from barnabas.server.groups.partitioning import partition_of
from barnabas.server.transactions.shard import TransactionShard
from barnabas.server.transactions.transaction import Transaction

if TYPE_CHECKING:
    from barnabas.server.clock import ServerClock
    from barnabas.server.cluster.image import Topic
    from barnabas.server.partitions.partition import Partition
    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.scheduling.background import Background
    from barnabas.server.topics.topics import Topics

logger = logging.getLogger(__name__)

Loaded = Callable[[TransactionShard], Awaitable[None]]


class TransactionShards:
    """
    Finds the shard of a transactional id, and loads shards.

    Invariants:

    1. A shard is in ``_shards`` from the election of this broker until its resignation, loaded or
       not.

    Used on the event loop's thread only.
    """

    def __init__(
        self,
        *,
        options: TransactionOptions,
        clock: ServerClock,
        io: Executor,
        background: Background,
        server_version: Callable[[], int],
        on_loaded: Loaded,
    ) -> None:
        """
        Args:
            server_version: the cluster's ``transaction.version``, as it is now.
            on_loaded: is called with each shard that had something in its log.
        """
        self._options = options
        self._clock = clock
        self._io = io
        self._background = background
        self._server_version = server_version
        self._on_loaded = on_loaded
        self._shards: dict[int, TransactionShard] = {}
        self._partition_count = options.transaction_state_log_num_partitions
        self.is_active = False

    def follow(self, topics: Topics, partitions: Partitions) -> None:
        """
        Coordinate what the topic has, now and when it comes.
        """

        def created(topic: Topic) -> None:
            if topic.name == TRANSACTION_STATE_TOPIC:
                self.lead(partitions.of_topic(TRANSACTION_STATE_TOPIC), len(topic.partitions))

        def deleted(topics: Sequence[Topic]) -> None:
            if any(topic.name == TRANSACTION_STATE_TOPIC for topic in topics):
                self.lead([], 0)

        topics.on_topic_created.append(created)
        topics.on_topics_deleted.append(deleted)
        known = topics.get(TRANSACTION_STATE_TOPIC)
        if known is not None:
            created(known)

    def lead(self, partitions: Sequence[Partition], partition_count: int) -> None:
        """
        Coordinate what these partitions of the topic have.

        Args:
            partition_count: how many the topic has, with those that are not ours or that could not
                be opened; 0 if there is no topic.
        """
        self.close()
        # The topic is created when a producer first looks for a coordinator.
        self._partition_count = (
            partition_count or self._options.transaction_state_log_num_partitions
        )
        for partition in partitions:
            shard = TransactionShard(
                partition, clock=self._clock, io=self._io, server_version=self._server_version
            )
            self._shards[partition.index] = shard
            if partition.log.log_end_offset == partition.log.log_start_offset:
                shard.open()
            else:
                self._background.spawn(f"load {shard}", self._load(shard))

    def on_resignation(self, index: int) -> None:
        """
        Coordinate the ids of that partition no more; harmless if we do not.
        """
        shard = self._shards.pop(index, None)
        if shard is not None:
            shard.close()

    def close(self) -> None:
        """
        Coordinate nothing any more.
        """
        for index in tuple(self._shards):
            self.on_resignation(index)

    async def _load(self, shard: TransactionShard) -> None:
        try:
            await shard.load(self._options.transaction_state_log_load_buffer_size)
        except asyncio.CancelledError:
            raise
        except Exception:
            # Its ids have no coordinator until somebody looks into it.
            logger.exception("%r cannot be loaded", shard)
            if self._shards.get(shard.partition.index) is shard:
                self.on_resignation(shard.partition.index)
            return
        if shard.is_open:
            await self._on_loaded(shard)

    # Finding

    def partition_for(self, transactional_id: str) -> int:
        """
        The partition of the topic that a transactional id belongs to.
        """
        return partition_of(transactional_id, self._partition_count)

    def of(self, transactional_id: str) -> TransactionShard:
        """
        The shard that a transactional id belongs to.

        Raises:
            CoordinatorNotAvailable: we are starting, or stopping.
            InvalidRequest: the id is empty.
            NotCoordinator: the partition is not ours, or does not exist.
        """
        if not self.is_active:
            raise CoordinatorNotAvailable
        self.check_id(transactional_id)
        shard = self._shards.get(self.partition_for(transactional_id))
        if shard is None:
            raise NotCoordinator
        return shard

    @staticmethod
    def check_id(transactional_id: str) -> None:
        """
        Raises:
            InvalidRequest: the id is empty.
        """
        if not transactional_id:
            raise InvalidRequest("A transactional id cannot be empty")

    def find(self, transactional_id: str) -> tuple[TransactionShard, Transaction]:
        """
        A transactional id and its shard.

        Raises:
            InvalidProducerIdMapping: no producer has that id.
            KafkaError: as ``of`` and ``TransactionShard.transactions``.
        """
        shard = self.of(transactional_id)
        current = shard.transactions.get(transactional_id)
        if current is None:
            raise InvalidProducerIdMapping(f"{transactional_id} has no producer")
        return shard, current

    def open(self) -> Iterator[TransactionShard]:
        """
        The shards that take requests now.
        """
        return (shard for shard in tuple(self._shards.values()) if shard.is_open)

    def transactions(self) -> Iterator[tuple[str, Transaction]]:
        """
        All transactional ids.

        Raises:
            CoordinatorNotAvailable: we are starting, or stopping.
            CoordinatorLoadInProgress: some are not known yet.
        """
        if not self.is_active:
            raise CoordinatorNotAvailable
        for shard in self._shards.values():
            yield from shard.transactions.items()
