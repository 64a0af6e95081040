"""
Topics of a cluster that is a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from uuid import UUID, uuid4


class TableTopic(NamedTuple):
    """
    A topic, whose partitions have nothing but numbers.
    """

    name: str
    id: UUID
    partitions: dict[int, None]


class TopicTable:
    """
    Topics by name and id.
    """

    def __init__(self) -> None:
        self.version = 1
        self.rack_names: Sequence[str] = ()
        self._topics: dict[str, TableTopic] = {}

    def get(self, name: str) -> TableTopic | None:
        return self._topics.get(name)

    def existing(self, names: Iterable[str]) -> set[str]:
        return self._topics.keys() & names

    def get_by_id(self, topic_id: UUID) -> TableTopic | None:
        return next((each for each in self if each.id == topic_id), None)

    def __iter__(self) -> Iterator[TableTopic]:
        return iter(self._topics.values())

    def racks(self, name: str, partition: int) -> Sequence[str]:
        return self.rack_names

    def put(self, name: str, partition_count: int, topic_id: UUID | None = None) -> UUID:
        """
        Create a topic, or give it more partitions; return its id.
        """
        known = self._topics.get(name)
        if topic_id is None:
            topic_id = uuid4() if known is None else known.id
        self._topics[name] = TableTopic(name, topic_id, dict.fromkeys(range(partition_count)))
        self.version += 1
        return topic_id

    def remove(self, name: str) -> None:
        """
        Delete a topic.
        """
        del self._topics[name]
        self.version += 1
