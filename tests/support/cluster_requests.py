"""
Requests about the cluster as a whole, in few words.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.messages import (
    alter_partition_reassignments,
    describe_quorum,
    elect_leaders,
    list_partition_reassignments,
)
from barnabas.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from barnabas.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest


def topic_pages(
    *topics: str, after: tuple[str, int] | None = None, limit: int = 2000
) -> DescribeTopicPartitionsRequest:
    """
    A request for a page of topics: of all, if none is named.
    """
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in topics],
        response_partition_limit=limit,
        cursor=None if after is None else Cursor(topic_name=after[0], partition_index=after[1]),
    )


def sizes(topics: Sequence[tuple[str, list[int]]] | None) -> DescribeLogDirsRequest:
    """
    A request for the sizes of logs.
    """
    wanted = None
    if topics is not None:
        wanted = [DescribableLogDirTopic(topic=name, partitions=p) for name, p in topics]
    return DescribeLogDirsRequest(topics=wanted)


def resources(*types: int) -> ListConfigResourcesRequest:
    """
    A request for what has configs.
    """
    return ListConfigResourcesRequest(resource_types=list(types))


def quorum(*topics: tuple[str, list[int]]) -> describe_quorum.DescribeQuorumRequest:
    """
    A request for the state of a quorum.
    """
    return describe_quorum.DescribeQuorumRequest(
        topics=[
            describe_quorum.RequestTopicData(
                topic_name=name,
                partitions=[describe_quorum.RequestPartitionData(partition_index=p) for p in asked],
            )
            for name, asked in topics
        ]
    )


def election(
    kind: int, *topics: tuple[str, list[int]], everything: bool = False
) -> elect_leaders.ElectLeadersRequest:
    """
    A request for elections: 0 of preferred leaders, 1 of unclean ones.
    """
    asked = [elect_leaders.TopicPartitions(topic=name, partitions=p) for name, p in topics]
    return elect_leaders.ElectLeadersRequest(
        election_type=kind, topic_partitions=None if everything else asked, timeout_ms=10_000
    )


def moves(
    *partitions: tuple[str, int, list[int] | None], factor: bool = True
) -> alter_partition_reassignments.AlterPartitionReassignmentsRequest:
    """
    A request to have partitions on other brokers, or, without any, to leave them where they were.
    """
    topics: dict[str, list[alter_partition_reassignments.ReassignablePartition]] = {}
    for name, index, replicas in partitions:
        topics.setdefault(name, []).append(
            alter_partition_reassignments.ReassignablePartition(
                partition_index=index, replicas=replicas
            )
        )
    return alter_partition_reassignments.AlterPartitionReassignmentsRequest(
        timeout_ms=10_000,
        allow_replication_factor_change=factor,
        topics=[
            alter_partition_reassignments.ReassignableTopic(name=name, partitions=p)
            for name, p in topics.items()
        ],
    )


def moving(
    topics: Sequence[tuple[str, list[int]]] | None = None,
) -> list_partition_reassignments.ListPartitionReassignmentsRequest:
    """
    A request for the moves that are under way.
    """
    asked = None
    if topics is not None:
        asked = [
            list_partition_reassignments.ListPartitionReassignmentsTopics(
                name=name, partition_indexes=p
            )
            for name, p in topics
        ]
    return list_partition_reassignments.ListPartitionReassignmentsRequest(
        timeout_ms=10_000, topics=asked
    )
