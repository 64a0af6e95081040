"""
ListPartitionReassignments: the partitions of which replicas come or go (KIP-455).
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.coordination.cluster.image import Topic
from barnabas.coordination.security.acl.permissions import DESCRIBE_CLUSTER
from barnabas.coordination.steps import checkpoint
from barnabas.coordination.topics.reassignment import is_moving
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


@handles(ListPartitionReassignmentsRequest, needs=gate(DESCRIBE_CLUSTER))
async def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    """
    What moves of the partitions that are asked for, or of all.
    """
    asked: Iterable[tuple[Topic | None, Iterable[int]]]
    if request.topics is None:
        asked = ((topic, list(topic.partitions)) for topic in tuple(context.broker.topics))
    else:
        asked = ((context.broker.topics.get(t.name), t.partition_indexes) for t in request.topics)
    room = context.room()
    listed = room.list()
    for topic, indexes in asked:
        await checkpoint()
        if topic is not None:
            ongoing = await _ongoing(topic, indexes)
            room.take(1 + len(ongoing.partitions), len(topic.name))
            listed.append(ongoing)
    return ListPartitionReassignmentsResponse(
        error_code=ErrorCode.NONE, topics=[topic for topic in listed if topic.partitions]
    )


async def _ongoing(topic: Topic, indexes: Iterable[int]) -> OngoingTopicReassignment:
    moving = []
    for index in indexes:
        await checkpoint()
        partition = topic.partitions.get(index)
        if partition is not None and is_moving(partition):
            moving.append(
                OngoingPartitionReassignment(
                    partition_index=index,
                    replicas=list(partition.replicas),
                    adding_replicas=list(partition.adding_replicas),
                    removing_replicas=list(partition.removing_replicas),
                )
            )
    return OngoingTopicReassignment(name=topic.name, partitions=moving)
