"""
The numbers of partitions of a topology's internal topics.

=================  ============================================================
topics             partitions
=================  ============================================================
repartition        as the topology says, or as many as the largest source of
                   the subtopology that writes them (``RepartitionTopics``)
copartition group  all the same: those of the topics that exist, else the
                   largest (``CopartitionedTopicsEnforcer``)
changelogs         as many as the largest source of their subtopology
                   (``ChangelogTopics``)
=================  ============================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from barnabas.coordination.groups.assignors.java_order.hash_order import HashOrder
from barnabas.coordination.groups.streams.statuses import StatusCode, TopicConfigurationError
from barnabas.coordination.groups.streams.topology import StreamsTopology, sources_of
from barnabas.coordination.java_strings import string_hash, string_rank
from barnabas.protocol.errors import StreamsInvalidTopology, UnknownServerError
from barnabas.protocol.internal_topics.group_records.streams import Subtopology

CountOf: TypeAlias = Callable[[str], int | None]
"""
Returns the number of partitions of a topic; None if it does not exist.
"""


class PartitionCounts:
    """
    The numbers of partitions of existing topics, and of internal topics that are to be created.

    Args:
        existing: of the topics of the cluster.

    Raises:
        TopicConfigurationError: topics of a copartition group have different numbers.
        StreamsInvalidTopology: the topology does not determine all numbers.
        UnknownServerError: a copartition group has topics that the topology does not have.
    """

    def __init__(self, topology: StreamsTopology, existing: CountOf) -> None:
        self._existing = existing
        self._subtopologies = topology.subtopologies
        groups = [*map(_copartition_groups, self._subtopologies.values())]
        self._repartition = {
            topic.name: topic.partitions != 0
            for subtopology in self._subtopologies.values()
            for topic in subtopology.repartition_source_topics
        }
        """Whether the topology says the number of partitions, by repartition topic."""
        self.decided: dict[str, int] = {}
        """Of the internal topics, whether they exist or not."""
        self.decided |= self._of_repartition_topics()
        for subtopology_groups in groups:
            for group in subtopology_groups:
                self.decided |= self._of_copartition_group(group)
        self.decided |= self._of_changelogs()

    def of(self, topic: str) -> int:
        """
        The number of partitions of a topic: that which it has, or is going to have.

        Raises:
            UnknownServerError: it neither exists nor is to be created.
        """
        count = self._existing(topic)
        if count is None:
            count = self.decided.get(topic)
        if count is None:
            raise UnknownServerError(f"Number of partitions must be set for topic {topic}")
        return count

    # Repartition topics

    def _of_repartition_topics(self) -> dict[str, int]:
        counts = {
            topic.name: topic.partitions
            for subtopology in self._subtopologies.values()
            for topic in subtopology.repartition_source_topics
            if topic.partitions
        }
        while not self._extend(counts):
            pass
        for subtopology in self._subtopologies.values():
            if any(topic.name not in counts for topic in subtopology.repartition_source_topics):
                raise StreamsInvalidTopology(
                    "Failed to compute number of partitions for all repartition topics, because a"
                    " repartition source topic is never used as a sink topic."
                )
        return counts

    def _extend(self, counts: dict[str, int]) -> bool:
        """
        Find more numbers, and say whether none is missing any more.
        """
        is_missing = has_progress = False
        for subtopology in self._subtopologies.values():
            for sink in subtopology.repartition_sink_topics:
                if sink in counts:
                    continue
                count = max(self._known_sources(subtopology, counts), default=None)
                if count is None:
                    is_missing = True
                else:
                    counts[sink] = count
                    has_progress = True
        if is_missing and not has_progress:
            raise StreamsInvalidTopology(
                "Failed to compute number of partitions for all repartition topics. There may be"
                " loops in the topology that cannot be resolved."
            )
        return not is_missing

    def _known_sources(self, subtopology: Subtopology, counts: Mapping[str, int]) -> Iterator[int]:
        for topic in subtopology.repartition_source_topics:
            if topic.name in counts:
                yield counts[topic.name]
        for name in subtopology.source_topics:
            count = self._existing(name)
            if count is not None:
                yield count

    # Copartition groups

    def _of_copartition_group(self, group: Sequence[str]) -> dict[str, int]:
        if not group:
            return {}
        internal = {
            name: self.of(name)
            for name in HashOrder(
                string_hash, keys=(each for each in group if each in self._repartition)
            )
        }
        external = {name: self.of(name) for name in group if name not in internal}
        if external:
            count = _same(external)
        elif fixed := [name for name, is_fixed in self._repartition.items() if is_fixed]:
            # As in Kafka these are the fixed ones of all groups.
            count = _same({name: self.of(name) for name in fixed}, told=internal)
        else:
            count = max(0, *internal.values())
            if not count:
                raise StreamsInvalidTopology(
                    "All topics in the copartition group had undefined partition number:"
                    f" [{', '.join(internal)}]"
                )
        for name, current in internal.items():
            if self._repartition[name] and current != count:
                raise TopicConfigurationError(
                    StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Number of partitions [{current}] of repartition topic [{name}] doesn't match"
                    f" number of partitions [{count}] of the source topic.",
                )
        return dict.fromkeys(internal, count)

    # Changelogs

    def _of_changelogs(self) -> dict[str, int]:
        counts = {}
        for subtopology_id, subtopology in self._subtopologies.items():
            count = max(map(self.of, sources_of(subtopology)), default=None)
            if count is None:
                raise StreamsInvalidTopology(
                    f"No source topics found for subtopology {subtopology_id}"
                )
            for topic in subtopology.state_changelog_topics:
                counts[topic.name] = count
        return counts


def _copartition_groups(subtopology: Subtopology) -> list[Sequence[str]]:
    """
    The topics of each group, in the order of Kafka's set.

    Raises:
        UnknownServerError: a group has a topic that the subtopology does not read.
    """
    sources = subtopology.source_topics
    repartition = [topic.name for topic in subtopology.repartition_source_topics]
    return [
        tuple(
            HashOrder(
                string_hash,
                keys=(
                    *(_at(sources, index) for index in group.source_topics),
                    *(_at(repartition, index) for index in group.repartition_source_topics),
                ),
            )
        )
        for group in subtopology.copartition_groups
    ]


def _at(topics: Sequence[str], index: int) -> str:
    if not 0 <= index < len(topics):
        raise UnknownServerError(f"A copartition group has source {index} of {len(topics)}.")
    return topics[index]


def _same(counts: Mapping[str, int], told: Mapping[str, int] | None = None) -> int:
    """
    The number of partitions that all these topics have.

    Args:
        told: the topics that the error names, if others than those.
    """
    first, *others = counts.values()
    if any(each != first for each in others):
        named = counts if told is None else told
        pairs = ", ".join(f"{name}={named[name]}" for name in sorted(named, key=string_rank))
        raise TopicConfigurationError(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{pairs}}}]",
        )
    return first
