"""
The brokers of a cluster, and which of them to ask for what.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Final, Self, TypeVar

from barnabas.client.connection import Connection
from barnabas.client.errors import BrokerError, ClientError, Disconnected
from barnabas.client.retries import Patience
from barnabas.client.settings import ClientSettings
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.storage.topic_partition import TopicPartition

_T = TypeVar("_T")

GROUP, TRANSACTION = 0, 1
"""The kinds of coordinators."""

_NO_LEADER: Final = -1

_QUESTIONS, _RECORDS = 0, 1
"""
A broker has a connection for each: requests about records may be outstanding while it is asked for
something else.
"""


class Cluster:
    """
    A client of a cluster. It connects to the brokers that are needed, and knows the leaders of the
    partitions that were asked for.

    Args:
        creates_topics: whether a question for the metadata of a topic may make it, as a producer's
            does.
    """

    def __init__(self, settings: ClientSettings, *, creates_topics: bool = False) -> None:
        self.settings = settings
        self._creates_topics = creates_topics
        self._addresses: dict[int, tuple[str, int]] = {}
        self._connections: dict[tuple[int, str, int], Connection] = {}
        self._leaders: dict[str, dict[int, int]] = {}
        self._coordinators: dict[tuple[int, str], tuple[str, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def patience(self) -> Patience:
        return Patience(self.settings.timeout_s)

    def retried(self, attempt: Callable[[], _T]) -> _T:
        """
        What *attempt* gives, tried again after errors that may pass.

        Raises:
            BrokerError, Disconnected: the last of them.
        """
        patience = self.patience()
        while True:
            try:
                return attempt()
            except ClientError as error:
                patience.after(error)
                self.forget()

    def forget(self) -> None:
        """
        Look again for leaders and coordinators, over new connections.
        """
        self.close()
        self._leaders.clear()
        self._coordinators.clear()

    # Topics.

    def topics(self) -> dict[str, int]:
        """
        All topics but internal ones, and how many partitions each has.
        """
        answer = self.retried(lambda: self.any().ask(self._question(None)))
        return {
            topic.name: len(topic.partitions)
            for topic in answer.topics
            if not topic.is_internal and not topic.error_code
        }

    def partition_count(self, topic: str) -> int:
        """
        Raises:
            BrokerError: there is no such topic, or this client may not use it.
        """
        if topic not in self._leaders:
            self.retried(lambda: self._load(topic))
        return len(self._leaders[topic])

    def existing(self, topics: Iterable[str]) -> dict[str, int]:
        """
        Those of the *topics* that are there, and how many partitions each has.
        """
        names = list(topics)
        answer = self.retried(lambda: self.any().ask(self._question(names)))
        found = {}
        for topic in answer.topics:
            if topic.error_code not in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                raise BrokerError.of(topic.error_code, f"The topic {topic.name} cannot be used")
            if not topic.error_code:
                found[topic.name] = len(topic.partitions)
        return found

    def leader(self, partition: TopicPartition) -> Connection:
        """
        Raises:
            BrokerError: the partition is not there, or has no leader at the moment.
            Disconnected: it cannot be reached.
        """
        if partition.topic not in self._leaders:
            self._load(partition.topic)
        node = self._leaders[partition.topic].get(partition.partition)
        if node is None:
            raise BrokerError.of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, str(partition))
        if node == _NO_LEADER or node not in self._addresses:
            raise BrokerError.of(ErrorCode.LEADER_NOT_AVAILABLE, str(partition))
        return self._connection(_RECORDS, *self._addresses[node])

    def _load(self, topic: str) -> None:
        answer = self.any().ask(self._question([topic]))
        for found in answer.topics:
            if found.error_code:
                raise BrokerError.of(found.error_code, f"The topic {topic} cannot be used")
            self._leaders[topic] = {
                each.partition_index: each.leader_id for each in found.partitions
            }
        self._addresses.update(
            {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        )

    def _question(self, topics: list[str] | None) -> MetadataRequest:
        return MetadataRequest(
            topics=None if topics is None else [MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=self._creates_topics,
        )

    # Brokers.

    def coordinator(self, kind: int, key: str) -> Connection:
        """
        The coordinator of a group or of a transactional id.

        Raises:
            BrokerError: there is none at the moment.
            Disconnected: it cannot be reached.
        """
        if (kind, key) not in self._coordinators:
            answer = self.any().ask(FindCoordinatorRequest(key=key, key_type=kind))
            if answer.error_code:
                raise BrokerError.of(answer.error_code, f"Nobody coordinates {key}")
            self._coordinators[kind, key] = (answer.host, answer.port)
        return self._connection(_QUESTIONS, *self._coordinators[kind, key])

    def any(self) -> Connection:
        """
        A connection to some broker, over which nothing is outstanding.

        Raises:
            Disconnected: none can be reached.
        """
        for lane, host, port in self._connections:
            if lane == _QUESTIONS:
                return self._connection(_QUESTIONS, host, port)
        addresses = [*dict.fromkeys([*self._addresses.values(), *self.settings.bootstrap])]
        random.shuffle(addresses)
        last: Disconnected | None = None
        for host, port in addresses:
            try:
                return self._connection(_QUESTIONS, host, port)
            except Disconnected as error:
                last = error
        assert last is not None, "there is an address at least"
        raise last

    def every(self) -> list[Connection]:
        """
        A connection to each broker, over which no response is outstanding.

        Raises:
            Disconnected: one of them cannot be reached.
        """
        answer = self.any().ask(self._question([]))
        return [self._connection(_QUESTIONS, node.host, node.port) for node in answer.brokers]

    def _connection(self, lane: int, host: str, port: int) -> Connection:
        found = self._connections.get((lane, host, port))
        if found is None or found.is_closed:
            self._connections.pop((lane, host, port), None)
            found = self._connections[lane, host, port] = Connection(host, port, self.settings)
        return found

    # Offsets.

    def offsets(
        self, timestamps: Mapping[TopicPartition, int], isolation_level: int = 0
    ) -> dict[TopicPartition, int]:
        """
        The offset of the first record that is not older than a timestamp in ms, in each partition;
        -1 if there is none. The timestamps -1 and -2 are the end and the beginning.
        """
        found: dict[TopicPartition, int] = {}

        def attempt() -> dict[TopicPartition, int]:
            missing = {each: at for each, at in timestamps.items() if each not in found}
            for connection, some in self._by_leader(missing).items():
                found.update(_asked(connection, some, isolation_level))
            return found

        return self.retried(attempt)

    def _by_leader(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[Connection, dict[TopicPartition, int]]:
        by_leader: dict[Connection, dict[TopicPartition, int]] = {}
        for partition, timestamp in timestamps.items():
            by_leader.setdefault(self.leader(partition), {})[partition] = timestamp
        return by_leader


def _asked(
    connection: Connection, timestamps: Mapping[TopicPartition, int], isolation_level: int
) -> dict[TopicPartition, int]:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for asked_for, timestamp in timestamps.items():
        wanted = ListOffsetsPartition(partition_index=asked_for.partition, timestamp=timestamp)
        topics.setdefault(asked_for.topic, []).append(wanted)
    answer = connection.ask(
        ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[
                ListOffsetsTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
    )
    found: dict[TopicPartition, int] = {}
    for topic in answer.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if each.error_code:
                raise BrokerError.of(each.error_code, f"{partition} does not give its offsets")
            found[partition] = each.offset
    return found
