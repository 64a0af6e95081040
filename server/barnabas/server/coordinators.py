"""
The coordinators of a broker, created when they have something to coordinate.

They are a fifth of the modules of a broker, and many brokers have neither groups nor transactions.
A coordinator whose topic exists is created at the start, another one by its first request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final

from barnabas.coordination.cluster.topic_names import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from barnabas.protocol.errors import CoordinatorNotAvailable

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock
    from barnabas.coordination.cluster.image import Topic
    from barnabas.coordination.config.groups import GroupConfig
    from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
    from barnabas.coordination.share.groups import ShareGroups
    from barnabas.server.config import BrokerConfig
    from barnabas.server.groups.coordinator import GroupCoordinator
    from barnabas.server.groups.topic_creation import InternalTopicCreation
    from barnabas.server.metrics import Metrics
    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.scheduling.background import Background
    from barnabas.server.scheduling.turns import Turns
    from barnabas.server.share.coordinator import ShareCoordinator
    from barnabas.server.share.manager import SharePartitionManager
    from barnabas.server.topics.topics import Topics
    from barnabas.server.transactions.coordinator import TransactionCoordinator
    from barnabas.server.transactions.markers import MarkerWriter
    from barnabas.server.transactions.producer_ids import ProducerIds
    from barnabas.storage.topic_partition import TopicPartition


class CoordinatorType(IntEnum):
    """
    The kinds of keys that coordinators serve (Kafka's enum of this name).
    """

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


COORDINATOR_TOPICS: Final[Mapping[int, str]] = {
    CoordinatorType.GROUP: GROUP_METADATA_TOPIC,
    CoordinatorType.TRANSACTION: TRANSACTION_STATE_TOPIC,
    CoordinatorType.SHARE: SHARE_GROUP_STATE_TOPIC,
}
"""The internal topics of the coordinators of each type."""


class Coordinators:
    """
    The coordinators of groups, of share states and of transactions, the share-partition manager,
    and the writer of transaction markers.

    Invariants:

    1. From ``start`` to ``stop`` a coordinator exists if its topic does.
    2. A coordinator takes requests from its creation until ``stop``.

    Used on the event loop's thread only.
    """

    def __init__(
        self,
        *,
        options: BrokerConfig,
        clock: ServerClock,
        io: Executor,
        reads: Executor,
        background: Background,
        turns: Turns,
        metrics: Metrics,
        topics: Topics,
        partitions: Partitions,
        producer_ids: ProducerIds,
        config_of: Callable[[str], GroupConfig],
        server_version: Callable[[], int],
    ) -> None:
        """
        Args:
            reads: threads that read what the page cache lacks.
            config_of: returns the configuration of a group.
            server_version: returns the ``transaction.version`` of the cluster.
        """
        self._options = options
        self._clock = clock
        self._io = io
        self._reads = reads
        self._metrics = metrics
        self._background = background
        self._turns = turns
        self._topics = topics
        self._partitions = partitions
        self._producer_ids = producer_ids
        self._config_of = config_of
        self._server_version = server_version

    @cached_property
    def groups(self) -> GroupCoordinator:
        from barnabas.server.groups import coordinator as group_coordinator

        made = group_coordinator.GroupCoordinator(
            options=self._options,
            clock=self._clock,
            io=self._io,
            background=self._background,
            turns=self._turns,
            topics=self._topics,
            config_of=self._config_of,
            share_coordinator=lambda: self.shares,
        )
        made.follow(self._topics, self._partitions)
        made.start()
        return made

    @cached_property
    def streams_topics(self) -> InternalTopicCreation:
        from barnabas.server.groups import topic_creation

        return topic_creation.InternalTopicCreation(self._topics, self._background, self._clock)

    @cached_property
    def shares(self) -> ShareCoordinator:
        from barnabas.server.share import coordinator as share_coordinator

        made = share_coordinator.ShareCoordinator(
            options=self._options,
            clock=self._clock,
            io=self._io,
            background=self._background,
            topics=self._topics,
            memory=self._budget("States of share-partitions"),
        )
        made.follow(self._partitions)
        made.start()
        return made

    def _budget(self, what: str) -> MemoryBudget:
        from barnabas.coordination.coordinator_runtime.memory import MemoryBudget

        return MemoryBudget(what, self._options.barnabas_max_coordinator_bytes)

    @property
    def share_groups(self) -> ShareGroups:
        """
        The share groups, as those see them who keep their states.
        """
        return self.groups.share_states

    @cached_property
    def share_partitions(self) -> SharePartitionManager:
        from barnabas.server.share import manager

        made = manager.SharePartitionManager(
            options=self._options,
            config_of=self._config_of,
            coordinator=self.shares,
            clock=self._clock,
            reads=self._reads,
            background=self._background,
            metrics=self._metrics,
        )
        made.follow(self._topics)
        return made

    @cached_property
    def markers(self) -> MarkerWriter:
        from barnabas.server.transactions import markers

        return markers.MarkerWriter(self._partitions, self.groups, self._clock, self._turns)

    @cached_property
    def transactions(self) -> TransactionCoordinator:
        from barnabas.server.transactions import coordinator

        made = coordinator.TransactionCoordinator(
            options=self._options,
            clock=self._clock,
            io=self._io,
            background=self._background,
            producer_ids=self._producer_ids,
            markers=self.markers,
            server_version=self._server_version,
            memory=self._budget("Transactional ids"),
            completes=not self._options.barnabas_read_only,
        )
        made.shards.follow(self._topics, self._partitions)
        made.start()
        return made

    def start(self) -> None:
        """
        Create the coordinators whose topics exist, and later those whose topics are created.
        """
        self._topics.on_topic_created.append(self._created)
        for topic in self._topics:
            self._created(topic)

    def _created(self, topic: Topic) -> None:
        if topic.name == GROUP_METADATA_TOPIC:
            _ = self.groups
        elif topic.name == SHARE_GROUP_STATE_TOPIC:
            _ = self.shares
        elif topic.name == TRANSACTION_STATE_TOPIC:
            _ = self.transactions

    async def open_topic(self, kind: int) -> None:
        """
        Return when the topic of a type of coordinators can be used. It is created if need be.

        Raises:
            CoordinatorNotAvailable: it cannot be created.
        """
        topic = COORDINATOR_TOPICS[kind]
        if self._topics.is_usable(topic):
            return
        await self._topics.create_missing([topic])
        if topic not in self._topics:
            raise CoordinatorNotAvailable(f"{topic} could not be created")

    def partitioner(self, kind: int) -> Callable[[str], int]:
        """
        A function that says which partition of the coordinator's topic a key belongs to.
        """
        if kind == CoordinatorType.GROUP:
            return self.groups.partition_for
        shards = self.shares.shards if kind == CoordinatorType.SHARE else self.transactions.shards
        return shards.partition_for

    @property
    def group_coordinator(self) -> GroupCoordinator | None:
        """
        The coordinator of groups; None until a request has needed it.
        """
        made: GroupCoordinator | None = vars(self).get("groups")
        return made

    @property
    def share_coordinator(self) -> ShareCoordinator | None:
        """
        The coordinator of the states of share groups; likewise.
        """
        made: ShareCoordinator | None = vars(self).get("shares")
        return made

    @property
    def transaction_coordinator(self) -> TransactionCoordinator | None:
        """
        The coordinator of transactions; likewise.
        """
        made: TransactionCoordinator | None = vars(self).get("transactions")
        return made

    @property
    def loading(self) -> int:
        """
        The number of partitions of coordinators that take no requests yet.
        """
        made = vars(self)
        return sum(
            not shard.log.is_open
            for name in ("groups", "shares", "transactions")
            if name in made
            for shard in made[name].shards
        )

    def resign(self, partitions: Iterable[TopicPartition]) -> None:
        """
        Resign from *partitions*, whose logs are lost.
        """
        made = vars(self)
        for topic, index in partitions:
            if topic == GROUP_METADATA_TOPIC and "groups" in made:
                self.groups.shards.resign(index)
            elif topic == SHARE_GROUP_STATE_TOPIC and "shares" in made:
                self.shares.shards.resign(index)
            elif topic == TRANSACTION_STATE_TOPIC and "transactions" in made:
                self.transactions.shards.resign(index)

    def answer_all(self) -> None:
        """
        Answer the requests that wait: members with ``NOT_COORDINATOR``, share fetches with what
        there is. Groups take no more requests.
        """
        self._stop("share_partitions", "groups")

    def stop(self) -> None:
        """
        Take no more requests.
        """
        self._stop("transactions", "shares")

    def _stop(self, *names: str) -> None:
        made = vars(self)
        for name in names:
            if name in made:
                made[name].stop()
