"""
The partitions whose states a share group has, or is about to have or to lose.

::

    a member subscribes --> initializing --> initialized --> deleting --> gone
                                 |  the share coordinator failed
                                 +--> forgotten, and tried again with the next heartbeat

A member is assigned initialized partitions only. Each change is written as one record, which has
all three parts (Kafka's ``ShareGroupStatePartitionMetadata``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias
from uuid import UUID

from barnabas.protocol.structs import NamedTuple, replace, struct

UNKNOWN_TOPIC: Final = "<UNKNOWN>"
"""
The name of a topic that does not exist any more.
"""


class TopicStates(NamedTuple):
    """
    The partitions of a topic.
    """

    name: str
    partitions: frozenset[int]


StatesByTopic: TypeAlias = Mapping[UUID, TopicStates]

_NO_TOPICS: Final[StatesByTopic] = {}
_NO_NAMES: Final[Mapping[UUID, str]] = {}


@struct(kw_only=True)
class StatePartitions:
    """
    What a group knows of the states of its partitions.
    """

    initializing: StatesByTopic = _NO_TOPICS
    initialized: StatesByTopic = _NO_TOPICS
    deleting: Mapping[UUID, str] = _NO_NAMES
    """The names of topics."""

    def beginning(self, topics: StatesByTopic) -> StatePartitions:
        """
        The same, with states that are being initialized.
        """
        initializing = _merged(self.initializing, topics)
        deleting = {each: name for each, name in self.deleting.items() if each not in initializing}
        return replace(self, initializing=initializing, deleting=deleting)

    def completed(self, topics: StatesByTopic) -> StatePartitions:
        """
        The same, with states that are initialized.
        """
        initializing = _without(self.initializing, topics)
        return replace(
            self, initializing=initializing, initialized=_merged(self.initialized, topics)
        )

    def failed(self, topics: StatesByTopic) -> StatePartitions:
        """
        The same, without states that could not be initialized.
        """
        return replace(self, initializing=_without(self.initializing, topics))

    def ending(self, topic_ids: Collection[UUID]) -> StatePartitions:
        """
        The same, with the states of initialized topics being deleted.
        """
        kept = {each: topic for each, topic in self.initialized.items() if each not in topic_ids}
        gone = {each: topic.name for each, topic in self.initialized.items() if each in topic_ids}
        return replace(self, initialized=kept, deleting={**self.deleting, **gone})

    def ended(self, topic_ids: Collection[UUID]) -> StatePartitions:
        """
        The same, without topics whose states are deleted.
        """
        kept = {each: name for each, name in self.deleting.items() if each not in topic_ids}
        return replace(self, deleting=kept)

    def without(self, topic_ids: Collection[UUID]) -> StatePartitions:
        """
        The same, without topics that do not exist any more.
        """

        def others(topics: StatesByTopic) -> StatesByTopic:
            return {each: topic for each, topic in topics.items() if each not in topic_ids}

        return replace(
            self.ended(topic_ids),
            initializing=others(self.initializing),
            initialized=others(self.initialized),
        )

    def knows_any(self, topic_ids: Iterable[UUID]) -> bool:
        """
        Whether one of these topics is in one of the parts.
        """
        parts = (self.initializing, self.initialized, self.deleting)
        return any(topic_id in part for topic_id in topic_ids for part in parts)


NO_STATES: Final = StatePartitions()


def _merged(some: StatesByTopic, others: StatesByTopic) -> StatesByTopic:
    merged = dict(some)
    for topic_id, topic in others.items():
        known = some.get(topic_id)
        partitions = topic.partitions if known is None else topic.partitions | known.partitions
        merged[topic_id] = TopicStates(topic.name, partitions)
    return merged


def _without(some: StatesByTopic, others: StatesByTopic) -> StatesByTopic:
    left = dict(some)
    for topic_id, topic in others.items():
        if topic_id in left:
            partitions = left[topic_id].partitions - topic.partitions
            if partitions:
                left[topic_id] = TopicStates(left[topic_id].name, partitions)
            else:
                del left[topic_id]
    return left
