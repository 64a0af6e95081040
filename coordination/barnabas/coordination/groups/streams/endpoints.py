"""
The partitions at each address of a streams program, for interactive queries (Kafka's
``EndpointToPartitionsManager``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from barnabas.coordination.groups.modern.topics import ClusterTopics
from barnabas.coordination.groups.streams.configured_topology import ConfiguredTopology
from barnabas.coordination.groups.streams.group import StreamsGroup
from barnabas.coordination.groups.streams.member import StreamsGroupMember
from barnabas.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    EndpointToPartitions,
    TopicPartition,
)


def partitions_by_endpoint(
    group: StreamsGroup,
    updated: StreamsGroupMember,
    topology: ConfiguredTopology,
    topics: ClusterTopics,
) -> list[EndpointToPartitions]:
    """
    The endpoints of all members that have one, the updated member's last.
    """
    others = (
        group.members[member_id]
        for member_id in group.members_in_order()
        if member_id != updated.member_id
    )
    return [
        EndpointToPartitions(
            user_endpoint=Endpoint(host=member.user_endpoint.host, port=member.user_endpoint.port),
            active_partitions=[*_partitions(member.assigned.active, topology, topics)],
            standby_partitions=[*_partitions(member.assigned.standby, topology, topics)],
        )
        for member in (*others, updated)
        if member.user_endpoint is not None
    ]


def _partitions(
    tasks: Mapping[str, Collection[int]], topology: ConfiguredTopology, topics: ClusterTopics
) -> Iterator[TopicPartition]:
    """
    The partitions of tasks. Topics that do not exist are left out; Kafka refuses the heartbeat.
    """
    for subtopology_id, numbers in tasks.items():
        subtopology = (topology.subtopologies or {}).get(subtopology_id)
        if subtopology is None:
            continue
        for name in sorted(subtopology.all_sources):
            topic = topics.get(name)
            if topic is not None:
                # As in Kafka, where a topic has fewer partitions than there are tasks here.
                yield TopicPartition(
                    topic=name, partitions=sorted(numbers)[: len(topic.partitions)]
                )
