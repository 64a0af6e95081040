"""
A topology with the topics that the cluster has (Kafka's ``InternalTopicManager``).

It says how many tasks there are, which internal topics are missing, or why there can be no tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from barnabas.coordination.groups.assignors.java_order.hash_order import HashOrder
from barnabas.coordination.groups.modern.topics import ClusterTopics
from barnabas.coordination.groups.streams.partition_counts import PartitionCounts
from barnabas.coordination.groups.streams.statuses import StatusCode, TopicConfigurationError
from barnabas.coordination.groups.streams.topology import StreamsTopology
from barnabas.coordination.java_strings import string_hash, string_rank
from barnabas.protocol.errors import UnknownServerError
from barnabas.protocol.internal_topics.group_records.streams import Subtopology, TopicInfo
from barnabas.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from barnabas.protocol.structs import struct

DEFAULT_REPLICATION_FACTOR = -1
MOST_NAMED = 3
"""
The topics that a sentence names; of the others it says how many there are.
"""


@struct(kw_only=True)
class ConfiguredInternalTopic:
    """
    A topic that the broker creates for the group.
    """

    name: str
    partitions: int
    replication_factor: int  # 0 is the broker's default
    configs: Mapping[str, str]

    def to_create(self) -> CreatableTopic:
        """
        The topic as CreateTopics would name it.
        """
        return CreatableTopic(
            name=self.name,
            num_partitions=self.partitions,
            replication_factor=self.replication_factor or DEFAULT_REPLICATION_FACTOR,
            assignments=[],
            configs=[
                CreatableTopicConfig(name=name, value=value) for name, value in self.configs.items()
            ],
        )


@struct(kw_only=True)
class ConfiguredSubtopology:
    """
    A subtopology whose topics have numbers of partitions.
    """

    task_count: int
    source_topics: frozenset[str]
    repartition_source_topics: Mapping[str, ConfiguredInternalTopic]
    repartition_sink_topics: frozenset[str]
    changelogs: Mapping[str, ConfiguredInternalTopic]

    @property
    def is_stateful(self) -> bool:
        """
        Whether standbys can keep the state of its tasks.
        """
        return bool(self.changelogs)

    @property
    def all_sources(self) -> frozenset[str]:
        """
        The topics that its tasks read.
        """
        return self.source_topics.union(self.repartition_source_topics)


@struct(kw_only=True)
class ConfiguredTopology:
    """
    A topology with its topics.

    Invariants:

    1. It has subtopologies, a problem, or both: then only internal topics are missing.
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None = None
    """By id, in their order."""
    missing: Mapping[str, CreatableTopic]
    """The internal topics that are to be created."""
    problem: TopicConfigurationError | None = None

    @property
    def is_ready(self) -> bool:
        """
        Whether tasks can be assigned.
        """
        return self.problem is None


def configured(topology: StreamsTopology, topics: ClusterTopics) -> ConfiguredTopology:
    """
    The topology with the topics as they are.

    Raises:
        StreamsInvalidTopology, UnknownServerError: no topics would do.
    """

    def count_of(name: str) -> int | None:
        topic = topics.get(name)
        return None if topic is None else len(topic.partitions)

    try:
        _check_sources(topology, topics)
        counts = PartitionCounts(topology, count_of)
        subtopologies = {
            subtopology_id: _configured(topology.subtopologies[subtopology_id], counts)
            for subtopology_id in sorted(topology.subtopologies, key=string_rank)
        }
        missing = _missing(subtopologies.values(), topology, topics)
    except TopicConfigurationError as error:
        return ConfiguredTopology(epoch=topology.epoch, missing={}, problem=error)
    problem = None
    if missing:
        problem = TopicConfigurationError(
            StatusCode.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {_summary(missing)}"
        )
    return ConfiguredTopology(
        epoch=topology.epoch, subtopologies=subtopologies, missing=missing, problem=problem
    )


def _check_sources(topology: StreamsTopology, topics: ClusterTopics) -> None:
    missing = {
        name
        for subtopology in topology.subtopologies.values()
        for name in subtopology.source_topics
        if topics.get(name) is None
    }
    if missing:
        raise TopicConfigurationError(
            StatusCode.MISSING_SOURCE_TOPICS,
            f"Source topics {_summary(sorted(missing, key=string_rank))} are missing.",
        )


def _configured(subtopology: Subtopology, counts: PartitionCounts) -> ConfiguredSubtopology:
    repartition = _internal_topics(subtopology.repartition_source_topics, counts)
    return ConfiguredSubtopology(
        task_count=max(map(counts.of, (*subtopology.source_topics, *repartition))),
        source_topics=frozenset(subtopology.source_topics),
        repartition_source_topics=repartition,
        repartition_sink_topics=frozenset(subtopology.repartition_sink_topics),
        changelogs=_internal_topics(subtopology.state_changelog_topics, counts),
    )


def _internal_topics(
    topics: Collection[TopicInfo], counts: PartitionCounts
) -> dict[str, ConfiguredInternalTopic]:
    found = {topic.name: _internal_topic(topic, counts) for topic in topics}
    if len(found) < len(topics):
        raise UnknownServerError("Two internal topics of a subtopology have the same name.")
    return found


def _internal_topic(topic: TopicInfo, counts: PartitionCounts) -> ConfiguredInternalTopic:
    partitions = topic.partitions or counts.decided[topic.name]
    if partitions < 1:
        raise UnknownServerError("Number of partitions must be at least 1.")
    configs = {config.key: config.value for config in topic.topic_configs}
    if len(configs) < len(topic.topic_configs):
        raise UnknownServerError(f"Topic {topic.name} has a configuration twice.")
    return ConfiguredInternalTopic(
        name=topic.name,
        partitions=partitions,
        replication_factor=topic.replication_factor,
        configs=configs,
    )


def _missing(
    subtopologies: Iterable[ConfiguredSubtopology], topology: StreamsTopology, topics: ClusterTopics
) -> dict[str, CreatableTopic]:
    """
    The internal topics that do not exist, in the order of Kafka's map.

    Raises:
        TopicConfigurationError: one of those that exist has another number of partitions.
    """
    wanted: dict[str, CreatableTopic] = {}
    for subtopology in subtopologies:
        for of_kind in (subtopology.repartition_source_topics, subtopology.changelogs):
            wanted |= {name: topic.to_create() for name, topic in of_kind.items()}
    order = HashOrder(string_hash, keys=wanted)
    for name in topology.required_in_order() if wanted else ():
        existing = topics.get(name)
        if existing is None or name not in wanted:
            continue
        expected, found = wanted[name].num_partitions, len(existing.partitions)
        if expected != found:
            raise TopicConfigurationError(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected {expected},"
                f" found {found}",
            )
        order.remove(name)
    return {name: wanted[name] for name in order}


def _summary(names: Collection[str]) -> str:
    named = ", ".join([*names][:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{named} and {more} additional topics" if more > 0 else named
