"""
The partitions this broker serves, by name and by id.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from barnabas.protocol.errors import KafkaError
from barnabas.server.partition import Partition


class Partitions:
    """
    All partitions that are open.

    A partition is here as long as clients may see it: ``add`` on creation and at start-up,
    ``remove`` on deletion. What topics exist is the business of ``Topics``, which calls both.
    """

    __slots__ = ("_by_id", "_by_name")

    def __init__(self) -> None:
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[UUID, dict[int, Partition]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_name.values()))

    def __iter__(self) -> Iterator[Partition]:
        for partitions in tuple(self._by_name.values()):
            yield from tuple(partitions.values())

    def get(self, topic: str, index: int) -> Partition | None:
        """
        The partition of that topic name, or None.
        """
        partitions = self._by_name.get(topic)
        return None if partitions is None else partitions.get(index)

    def get_by_id(self, topic_id: UUID, index: int) -> Partition | None:
        """
        The partition of that topic id, or None.
        """
        partitions = self._by_id.get(topic_id)
        return None if partitions is None else partitions.get(index)

    def of_topic(self, topic: str) -> list[Partition]:
        """
        All open partitions of a topic, by index.
        """
        partitions = self._by_name.get(topic, {})
        return [partitions[index] for index in sorted(partitions)]

    def add(self, partition: Partition) -> None:
        """
        Serve this partition from now on.
        """
        known = self._by_name.setdefault(partition.topic, {})
        assert partition.index not in known, f"{partition!r} is open already"
        known[partition.index] = partition
        self._by_id[partition.topic_id] = known

    def remove(self, topic: str) -> list[Partition]:
        """
        Serve a deleted topic no more; everyone who waits for it hears UNKNOWN_TOPIC_OR_PARTITION.

        Returns:
            The partitions, closed; their logs are still there.
        """
        removed = list(self._by_name.pop(topic, {}).values())
        for partition in removed:
            self._by_id.pop(partition.topic_id, None)
            partition.close()
        return removed

    def close(self, error: KafkaError) -> None:
        """
        Serve nothing more, with that error.
        """
        for partition in self:
            partition.close(error)
