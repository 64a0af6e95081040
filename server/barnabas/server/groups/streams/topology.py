"""
The topology of a streams group: the topics that each part of its program reads and writes.

The first member brings it, and its record keeps it. Members with another one are refused (Kafka's
``StreamsTopology``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from barnabas.protocol.errors import UnknownServerError
from barnabas.protocol.internal_topics.group_records import streams as schemas
from barnabas.protocol.messages import streams_group_heartbeat as messages
from barnabas.server.groups.assignors.java_order.hash_order import HashOrder
from barnabas.server.groups.assignors.java_order.hashing import string_hash
from barnabas.server.scheduling.turns import Steps


class StreamsTopology:
    """
    A topology, from its record.

    Raises:
        UnknownServerError: the epoch is negative, or two subtopologies have the same id.
    """

    __slots__ = ("record", "required_topics", "source_topics", "subtopologies")

    def __init__(self, record: schemas.StreamsGroupTopologyValue) -> None:
        by_id = {each.subtopology_id: each for each in record.subtopologies}
        if record.epoch < 0:
            raise UnknownServerError("Topology epoch must be non-negative.")
        if len(by_id) < len(record.subtopologies):
            raise UnknownServerError("Two subtopologies have the same id.")
        self.record = record
        self.subtopologies: Mapping[str, schemas.Subtopology] = {
            subtopology_id: by_id[subtopology_id]
            for subtopology_id in HashOrder(string_hash, keys=by_id)
        }
        """By id, in the order of Kafka's map, which decides where topics depend on each other."""
        self.source_topics: Mapping[str, str] = dict(self._sources())
        """The subtopology that reads a topic, by topic."""
        self.required_topics: Sequence[str] = tuple(
            HashOrder(string_hash, keys=self._required_topics())
        )
        """The topics that have to exist, in the order of Kafka's set."""

    @property
    def epoch(self) -> int:
        return self.record.epoch

    def _sources(self) -> Iterator[tuple[str, str]]:
        for subtopology_id, subtopology in self.subtopologies.items():
            for name in sources_of(subtopology):
                yield name, subtopology_id

    def _required_topics(self) -> Iterator[str]:
        for subtopology in self.subtopologies.values():
            yield from sources_of(subtopology)
            for topic in subtopology.state_changelog_topics:
                yield topic.name

    def __eq__(self, other: object) -> bool:
        """
        Whether both are the same, whatever the order of their subtopologies.
        """
        if not isinstance(other, StreamsTopology):
            return NotImplemented
        return self.epoch == other.epoch and self.subtopologies == other.subtopologies

    __hash__ = None  # type: ignore[assignment]  # equal ones have records that differ

    def __repr__(self) -> str:
        return f"<StreamsTopology epoch {self.epoch}: {', '.join(self.subtopologies)}>"


def sources_of(subtopology: schemas.Subtopology) -> Iterator[str]:
    """
    The topics that a subtopology reads.
    """
    yield from subtopology.source_topics
    for topic in subtopology.repartition_source_topics:
        yield topic.name


def topology_of(topology: messages.Topology) -> StreamsTopology:
    """
    The topology that a member sends.

    Raises:
        UnknownServerError: see ``StreamsTopology``.
    """
    return StreamsTopology(
        schemas.StreamsGroupTopologyValue(
            epoch=topology.epoch, subtopologies=[*map(_subtopology, topology.subtopologies)]
        )
    )


def topics_of(topology: messages.Topology) -> Steps[list[str]]:
    """
    The topics that a member's topology names, each once.
    """
    names: dict[str, None] = {}
    for each in topology.subtopologies:
        for name in chain(
            each.source_topics,
            each.repartition_sink_topics,
            (topic.name for topic in each.repartition_source_topics),
            (topic.name for topic in each.state_changelog_topics),
        ):
            yield
            names[name] = None
    return list(names)


def _subtopology(subtopology: messages.Subtopology) -> schemas.Subtopology:
    return schemas.Subtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=subtopology.source_topics,
        source_topic_regex=subtopology.source_topic_regex,
        state_changelog_topics=[*map(_topic_info, subtopology.state_changelog_topics)],
        repartition_sink_topics=subtopology.repartition_sink_topics,
        repartition_source_topics=[*map(_topic_info, subtopology.repartition_source_topics)],
        copartition_groups=[
            schemas.CopartitionGroup(
                source_topics=each.source_topics,
                source_topic_regex=each.source_topic_regex,
                repartition_source_topics=each.repartition_source_topics,
            )
            for each in subtopology.copartition_groups
        ],
    )


def _topic_info(topic: messages.TopicInfo) -> schemas.TopicInfo:
    return schemas.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[
            schemas.TopicConfig(key=config.key, value=config.value)
            for config in topic.topic_configs
        ],
    )
