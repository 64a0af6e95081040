"""
Requests about the cluster as a whole, in few words.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.messages import describe_quorum
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
