"""
ListPartitionReassignments: the partitions of which replicas come or go (KIP-455).
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from barnabas.server.cluster.image import Topic
from barnabas.server.context import Context
from barnabas.server.handlers import handles
from barnabas.server.partition_plan import is_moving


@handles(ListPartitionReassignmentsRequest)
def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: Context
) -> ListPartitionReassignmentsResponse:
    """
    What moves of the partitions that are asked for, or of all.
    """
    asked: Iterable[tuple[Topic | None, Iterable[int]]]
    if request.topics is None:
        asked = ((topic, list(topic.partitions)) for topic in context.topics)
    else:
        asked = ((context.topics.get(t.name), t.partition_indexes) for t in request.topics)
    listed = [_ongoing(topic, indexes) for topic, indexes in asked if topic is not None]
    return ListPartitionReassignmentsResponse(
        error_code=ErrorCode.NONE, topics=[topic for topic in listed if topic.partitions]
    )


def _ongoing(topic: Topic, indexes: Iterable[int]) -> OngoingTopicReassignment:
    return OngoingTopicReassignment(
        name=topic.name,
        partitions=[
            OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding_replicas),
                removing_replicas=list(partition.removing_replicas),
            )
            for index in indexes
            if (partition := topic.partitions.get(index)) is not None and is_moving(partition)
        ],
    )
