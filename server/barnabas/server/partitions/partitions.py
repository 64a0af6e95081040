"""
The partitions that this broker serves, by name and by id of the topic.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from barnabas.protocol.errors import KafkaError, UnknownTopicId, UnknownTopicOrPartition
from barnabas.server.partitions.partition import Partition


class _Topic:
    """
    The open partitions of one topic, and the errors of those that could not be opened.
    """

    __slots__ = ("failed", "id", "name", "open")

    def __init__(self, name: str, topic_id: UUID) -> None:
        self.name = name
        self.id = topic_id
        self.open: dict[int, Partition] = {}
        self.failed: dict[int, KafkaError] = {}

    def expect(self, index: int) -> Partition:
        partition = self.open.get(index)
        if partition is None:
            failure = self.failed.get(index)
            if failure is not None:
                # Otherwise each raise would add to the traceback of the error.
                raise failure.with_traceback(None)
            raise UnknownTopicOrPartition
        return partition


class Traffic:
    """
    Counts the records that went into partitions, the bytes of batches that went in and out, and the
    requests.
    """

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "produces",
        "records_in",
    )

    def __init__(self) -> None:
        self.records_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.produces = self.failed_produces = 0
        self.fetches = self.failed_fetches = 0

    def add(self, partition: Partition) -> None:
        """
        Count what went in and out of *partition* as well.
        """
        self.records_in += partition.records_in
        self.bytes_in += partition.bytes_in
        self.bytes_out += partition.bytes_out
        self.produces += partition.produces
        self.failed_produces += partition.failed_produces
        self.fetches += partition.fetches
        self.failed_fetches += partition.failed_fetches

    def add_all(self, other: Traffic) -> None:
        """
        Count the *other* one as well.
        """
        self.records_in += other.records_in
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.produces += other.produces
        self.failed_produces += other.failed_produces
        self.fetches += other.fetches
        self.failed_fetches += other.failed_fetches


class Partitions:
    """
    All open partitions.

    ``Topics`` adds partitions when they are created and at the start, and removes those of deleted
    topics.
    """

    __slots__ = ("_by_id", "_by_name", "gone")

    def __init__(self) -> None:
        self.gone = Traffic()
        """The traffic of partitions that are not open any more."""
        self._by_name: dict[str, _Topic] = {}
        # By the bytes of the id, which are hashed faster than a UUID.
        self._by_id: dict[bytes, _Topic] = {}

    def __len__(self) -> int:
        return sum(len(topic.open) for topic in self._by_name.values())

    def __iter__(self) -> Iterator[Partition]:
        for topic in tuple(self._by_name.values()):
            yield from tuple(topic.open.values())

    @property
    def topics(self) -> list[str]:
        """
        The names of all topics that have partitions here.
        """
        return list(self._by_name)

    @property
    def failed(self) -> int:
        """
        The number of partitions that could not be opened.
        """
        return sum(len(topic.failed) for topic in self._by_name.values())

    def get(self, topic: str, index: int) -> Partition | None:
        """
        The open partition, or None.
        """
        known = self._by_name.get(topic)
        return None if known is None else known.open.get(index)

    def name_of(self, topic_id: UUID) -> str | None:
        """
        The name of the topic with that id, or None.
        """
        known = self._by_id.get(topic_id.bytes)
        return None if known is None else known.name

    def knows(self, topic: str, index: int) -> bool:
        """
        Whether the partition exists, open or not.
        """
        known = self._by_name.get(topic)
        return known is not None and (index in known.open or index in known.failed)

    def expect(self, topic: str, index: int) -> Partition:
        """
        The open partition of the topic with that name.

        Raises:
            UnknownTopicOrPartition: the partition does not exist.
            KafkaError: it could not be opened.
        """
        known = self._by_name.get(topic)
        if known is None:
            raise UnknownTopicOrPartition
        return known.expect(index)

    def expect_by_id(self, topic_id: UUID, index: int) -> Partition:
        """
        The open partition of the topic with that id.

        Raises:
            UnknownTopicId: no topic has that id.
            UnknownTopicOrPartition: the partition does not exist.
            KafkaError: it could not be opened.
        """
        known = self._by_id.get(topic_id.bytes)
        if known is None:
            raise UnknownTopicId
        return known.expect(index)

    def of_topic(self, topic: str) -> list[Partition]:
        """
        All open partitions of a topic, by index.
        """
        known = self._by_name.get(topic)
        return [] if known is None else [known.open[index] for index in sorted(known.open)]

    def add(self, partition: Partition) -> None:
        """
        Serve a partition.
        """
        known = self._topic(partition.topic, partition.topic_id)
        assert partition.index not in known.open, f"{partition!r} is open already"
        known.open[partition.index] = partition
        known.failed.pop(partition.index, None)

    def fail(self, topic: str, topic_id: UUID, index: int, error: KafkaError) -> None:
        """
        Answer requests for a partition that could not be opened with *error*.
        """
        self._topic(topic, topic_id).failed[index] = error

    def remove(self, topic: str) -> list[Partition]:
        """
        Close the partitions of a deleted topic: waiting requests fail with
        ``UNKNOWN_TOPIC_OR_PARTITION``.

        Returns:
            The closed partitions; their logs are not deleted yet.
        """
        known = self._by_name.pop(topic, None)
        if known is None:
            return []
        del self._by_id[known.id.bytes]
        for partition in known.open.values():
            self.gone.add(partition)
            partition.close()
        return list(known.open.values())

    def _topic(self, name: str, topic_id: UUID) -> _Topic:
        known = self._by_name.get(name)
        if known is None:
            known = _Topic(name, topic_id)
            self._by_name[name] = self._by_id[topic_id.bytes] = known
        assert known.id == topic_id, f"{name} has two ids"
        return known
