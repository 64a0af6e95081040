"""
The shards of a coordinator: one for each partition of its topic that this broker leads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from barnabas.coordination.coordinator_runtime.loading import LaterRecord
from barnabas.coordination.coordinator_runtime.partitioning import partition_of
from barnabas.protocol.errors import (
    CoordinatorNotAvailable,
    ErrorCode,
    NotCoordinator,
    error_for,
)
from barnabas.server.coordinator_runtime.shard import CoordinatorShard

if TYPE_CHECKING:
    from barnabas.coordination.cluster.image import Topic
    from barnabas.server.partitions.partition import Partition
    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.scheduling.background import Background
    from barnabas.server.topics.topics import Topics

logger = logging.getLogger(__name__)


MOST_NAMED: Final = 1000
"""
The keys of which an answer looks up the shards, which takes less than a millisecond.
"""

S = TypeVar("S", bound=CoordinatorShard[Any])


class Shards(Generic[S]):
    """
    Finds the shard of a key, and loads and closes shards as the partitions come and go.

    Invariants:

    1. A shard is in ``_shards`` from the election of this broker until its resignation, loaded or
       not.

    Used on the event loop's thread only.
    """

    def __init__(
        self,
        topic: str,
        partition_count: int,
        *,
        make: Callable[[Partition], S],
        background: Background,
        on_loaded: Callable[[S], Awaitable[None]] | None = None,
    ) -> None:
        """
        Args:
            topic: the internal topic of the coordinator.
            partition_count: of the topic, as long as it does not exist.
            on_loaded: is called with each shard that had records to replay.
        """
        self._topic = topic
        self._default_partition_count = self._partition_count = partition_count
        self._make = make
        self._background = background
        self._on_loaded = on_loaded
        self._shards: dict[int, S] = {}
        self._is_active = False

    def start(self) -> None:
        """
        Take requests.
        """
        self._is_active = True

    def stop(self) -> None:
        """
        Take no more requests, and resign from all partitions.
        """
        self._is_active = False
        self._resign_all()

    def __iter__(self) -> Iterator[S]:
        return iter(tuple(self._shards.values()))

    def get(self, index: int) -> S | None:
        """
        The shard of a partition; None if this broker does not coordinate it.
        """
        return self._shards.get(index)

    def partition_for(self, key: str) -> int:
        """
        The partition of the topic that *key* belongs to.
        """
        return partition_of(key, self._partition_count)

    def check_active(self) -> None:
        """
        See whether the coordinator takes requests.

        Raises:
            CoordinatorNotAvailable: the broker is starting, or stopping.
        """
        if not self._is_active:
            raise CoordinatorNotAvailable

    def of(self, key: str) -> S:
        """
        The shard that *key* belongs to, loaded or not.

        Raises:
            CoordinatorNotAvailable: the broker is starting, or stopping.
            NotCoordinator: the partition is not coordinated here, or does not exist.
        """
        self.check_active()
        shard = self._shards.get(self.partition_for(key))
        if shard is None:
            raise NotCoordinator
        return shard

    # Answers

    def unsettled(self, keys: Iterable[str] | None = None) -> asyncio.Future[None] | None:
        """
        A future for the commit of the state that the answer to a request tells, or None if it is
        committed: a crash could take it back otherwise.

        Args:
            keys: whose shards were read; None if all were. An answer about very many waits for all.
        """
        unsettled = [shard for shard in self._shards.values() if not shard.log.is_settled]
        if unsettled and keys is not None:
            named = [*islice(keys, MOST_NAMED + 1)]
            if len(named) <= MOST_NAMED:
                indexes = set(map(self.partition_for, named))
                unsettled = [shard for shard in unsettled if shard.log.index in indexes]
        if not unsettled:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        left = len(unsettled)

        def settle(error: ErrorCode | None) -> None:
            nonlocal left
            left -= 1
            if future.done():
                return
            if error is not None:
                future.set_exception(error_for(error)())
            elif not left:
                future.set_result(None)

        for shard in unsettled:
            shard.when_settled(settle)
        return future

    # Elections and resignations

    def follow(self, topics: Topics, partitions: Partitions) -> None:
        """
        Lead the partitions of the topic, those that exist now and those that are created later.
        """

        def created(topic: Topic) -> None:
            if topic.name == self._topic:
                self.lead(partitions.of_topic(topic.name), len(topic.partitions))

        def deleted(topics: Sequence[Topic]) -> None:
            if any(topic.name == self._topic for topic in topics):
                self.lead([], 0)

        topics.on_topic_created.append(created)
        topics.on_topics_deleted.append(deleted)
        known = topics.get(self._topic)
        if known is not None:
            created(known)

    def lead(self, partitions: Sequence[Partition], partition_count: int) -> None:
        """
        Coordinate these partitions, and resign from all others.

        Args:
            partition_count: of the topic, including the partitions that this broker does not lead
                or could not open; 0 if the topic does not exist.
        """
        self._resign_all()
        # The topic is created when a client first looks for a coordinator.
        self._partition_count = partition_count or self._default_partition_count
        for partition in partitions:
            self.elect(partition)

    def elect(self, partition: Partition) -> None:
        """
        Coordinate a partition of the topic, as soon as its log is replayed.
        """
        self.resign(partition.index)
        shard = self._shards[partition.index] = self._make(partition)
        if shard.log.is_empty:
            shard.open()
        else:
            self._background.spawn(f"load {shard}", self._load(shard))

    def resign(self, index: int) -> None:
        """
        Stop coordinating a partition; without effect if this broker does not coordinate it.
        """
        shard = self._shards.pop(index, None)
        if shard is not None:
            shard.close()

    def _resign_all(self) -> None:
        for index in tuple(self._shards):
            self.resign(index)

    async def _load(self, shard: S) -> None:
        try:
            await shard.load()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            # As in Kafka the partition has no coordinator until the next election or start.
            if isinstance(error, LaterRecord):
                notes = ", ".join(getattr(error, "__notes__", ()))
                logger.error("%s cannot be loaded: %s (%s)", shard, error, notes)
            else:
                logger.exception("%s cannot be loaded", shard)
            if self._shards.get(shard.log.index) is shard:
                self.resign(shard.log.index)
            return
        logger.info("%s is loaded", shard)
        if self._on_loaded is not None and shard.log.is_open:
            await self._on_loaded(shard)
