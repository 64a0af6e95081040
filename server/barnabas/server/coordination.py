"""
The coordinators of a broker, made when there is something to coordinate.

They are a fifth of the modules that a broker may load, and many brokers never hear of a group or a
transaction. What has a log is coordinated from the start on; the rest when a request first asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from functools import cached_property
from typing import TYPE_CHECKING

from barnabas.server.cluster.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

if TYPE_CHECKING:
    from barnabas.server.background import Background
    from barnabas.server.clock import ServerClock
    from barnabas.server.cluster.image import Topic
    from barnabas.server.config import BrokerConfig
    from barnabas.server.groups.coordinator import GroupCoordinator
    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.topics.topics import Topics
    from barnabas.server.transactions.coordinator import TransactionCoordinator
    from barnabas.server.transactions.markers import MarkerWriter
    from barnabas.server.transactions.producer_ids import ProducerIds
    from barnabas.server.turns import Turns
    from barnabas.storage.state_files.file_names import TopicPartition


class Coordinators:
    """
    The coordinator of groups, that of transactions, and what writes its markers.

    Invariants:

    1. From ``start`` to ``stop`` each of them is there as long as the topic of its log is.
    2. One that was made takes requests until ``stop``.

    Belongs to the event loop.
    """

    def __init__(
        self,
        *,
        options: BrokerConfig,
        clock: ServerClock,
        io: Executor,
        background: Background,
        turns: Turns,
        topics: Topics,
        partitions: Partitions,
        producer_ids: ProducerIds,
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
        self._turns = turns
        self._topics = topics
        self._partitions = partitions
        self._producer_ids = producer_ids
        self._server_version = server_version

    @cached_property
    def groups(self) -> GroupCoordinator:
        from barnabas.server.groups import coordinator as group_coordinator  # noqa: PLC0415  # see above

        made = group_coordinator.GroupCoordinator(
            options=self._options,
            clock=self._clock,
            io=self._io,
            background=self._background,
            turns=self._turns,
        )
        made.follow(self._topics, self._partitions)
        made.start()
        return made

    @cached_property
    def markers(self) -> MarkerWriter:
        from barnabas.server.transactions import markers  # noqa: PLC0415  # see above

        return markers.MarkerWriter(self._partitions, self.groups, self._clock, self._turns)

    @cached_property
    def transactions(self) -> TransactionCoordinator:
        from barnabas.server.transactions import coordinator  # noqa: PLC0415  # the same

        made = coordinator.TransactionCoordinator(
            options=self._options,
            clock=self._clock,
            io=self._io,
            background=self._background,
            producer_ids=self._producer_ids,
            markers=self.markers,
            server_version=self._server_version,
        )
        made.shards.follow(self._topics, self._partitions)
        made.start()
        return made

    def start(self) -> None:
        """
        Coordinate what the logs have, now and when they come.
        """
        self._topics.on_topic_created.append(self._created)
        for topic in self._topics:
            self._created(topic)

    def _created(self, topic: Topic) -> None:
        if topic.name == GROUP_METADATA_TOPIC:
            _ = self.groups
        elif topic.name == TRANSACTION_STATE_TOPIC:
            _ = self.transactions

    def resign(self, partitions: Iterable[TopicPartition]) -> None:
        """
        Coordinate no more what the logs of these *partitions* have, which are lost.
        """
        made = vars(self)
        for topic, index in partitions:
            if topic == GROUP_METADATA_TOPIC and "groups" in made:
                self.groups.on_resignation(index)
            elif topic == TRANSACTION_STATE_TOPIC and "transactions" in made:
                self.transactions.shards.on_resignation(index)

    def stop(self) -> None:
        """
        Take no more requests; whoever waits is told to look for another coordinator.
        """
        made = vars(self)
        for name in ("transactions", "groups"):
            if name in made:
                made[name].stop()
