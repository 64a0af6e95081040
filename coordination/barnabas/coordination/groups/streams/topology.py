"""
The topology of a streams group: the topics that each part of its program reads and writes.

The first member brings it, and its record keeps it. Members with another one are refused (Kafka's
``StreamsTopology``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from barnabas.coordination.cluster.topic_names import is_internal, reason_invalid
from barnabas.coordination.groups.assignors.java_order.hash_order import HashOrder
from barnabas.coordination.java_strings import string_hash
from barnabas.coordination.steps import checkpoint
from barnabas.protocol.errors import StreamsInvalidTopology, UnknownServerError, joined
from barnabas.protocol.internal_topics.group_records import streams as schemas
from barnabas.protocol.messages import streams_group_heartbeat as messages

MOST_SUBTOPOLOGIES: Final = 2_000
MOST_TOPICS: Final = 10_000
"""
The topics that a topology names: the first heartbeat of a member handles all of them in one step.
"""


def texts_of(topology: messages.Topology) -> Iterator[str]:
    """
    The texts in a topology: its record has all of them.
    """
    for part in topology.subtopologies:
        yield part.subtopology_id
        yield from part.source_topics
        yield from part.source_topic_regex
        yield from part.repartition_sink_topics
        for topic in chain(part.state_changelog_topics, part.repartition_source_topics):
            yield topic.name
            for config in topic.topic_configs:
                yield config.key
                yield config.value


class StreamsTopology:
    """
    A topology, from its record.

    Raises:
        UnknownServerError: the epoch is negative, or two subtopologies have the same id.
    """

    __slots__ = ("_sources", "record", "subtopologies")

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
        self._sources: Mapping[str, str] | None = None

    @property
    def epoch(self) -> int:
        return self.record.epoch

    @property
    def source_topics(self) -> Mapping[str, str]:
        """
        The subtopology that reads a topic, by topic. Only commits of offsets need it.
        """
        if self._sources is None:
            self._sources = {
                name: subtopology_id
                for subtopology_id, subtopology in self.subtopologies.items()
                for name in sources_of(subtopology)
            }
        return self._sources

    @property
    def required_topics(self) -> frozenset[str]:
        """
        The topics that have to exist.
        """
        names: set[str] = set()
        for subtopology in self.subtopologies.values():
            names.update(subtopology.source_topics)
            names.update(topic.name for topic in subtopology.repartition_source_topics)
            names.update(topic.name for topic in subtopology.state_changelog_topics)
        return frozenset(names)

    def required_in_order(self) -> Iterator[str]:
        """
        The topics that have to exist, in the order of Kafka's set.
        """
        names = (
            name
            for subtopology in self.subtopologies.values()
            for name in chain(
                sources_of(subtopology),
                (topic.name for topic in subtopology.state_changelog_topics),
            )
        )
        return iter(HashOrder(string_hash, keys=names))

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


async def topics_of(topology: messages.Topology) -> list[str]:
    """
    The topics that a member's topology names, each once.

    Raises:
        StreamsInvalidTopology: it is so large that its member would keep others waiting.
    """
    if len(topology.subtopologies) > MOST_SUBTOPOLOGIES:
        raise StreamsInvalidTopology(
            f"The topology has {len(topology.subtopologies)} subtopologies, and may have"
            f" {MOST_SUBTOPOLOGIES}."
        )
    names: dict[str, None] = {}
    count = 0
    for each in topology.subtopologies:
        for name in chain(
            each.source_topics,
            each.repartition_sink_topics,
            (topic.name for topic in each.repartition_source_topics),
            (topic.name for topic in each.state_changelog_topics),
        ):
            await checkpoint()
            names[name] = None
            count += 1
            if count > MOST_TOPICS:
                raise StreamsInvalidTopology(f"The topology names more than {MOST_TOPICS} topics.")
    return list(names)


async def check_names(names: Sequence[str]) -> None:
    """
    Raises:
        StreamsInvalidTopology: some of the topics that a topology names are internal ones of Kafka,
            or can never exist.
    """
    prohibited, invalid = [], []
    for name in names:
        await checkpoint()
        if is_internal(name):
            prohibited.append(name)
        elif reason_invalid(name) is not None:
            invalid.append(name)
    if prohibited:
        raise StreamsInvalidTopology(
            f"Use of Kafka internal topics {joined(prohibited, ',')} in a Kafka Streams topology is"
            " prohibited."
        )
    if invalid:
        raise StreamsInvalidTopology(
            f"Topic names {joined(invalid, ',')} are not valid topic names."
        )


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
