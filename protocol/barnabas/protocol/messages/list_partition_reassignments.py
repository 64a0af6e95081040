"""
ListPartitionReassignments (46): the replicas that are on the move (KIP-455).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import LIST_PARTITION_REASSIGNMENTS
from barnabas.protocol.codec.schema import Api, int16, int32, message


@message
class ListPartitionReassignmentsTopics:
    name: str
    partition_indexes: list[int32]


@message
class ListPartitionReassignmentsRequest:
    api: ClassVar[Api] = LIST_PARTITION_REASSIGNMENTS

    timeout_ms: int32 = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None


@message
class OngoingPartitionReassignment:
    partition_index: int32
    replicas: list[int32]
    adding_replicas: list[int32]
    removing_replicas: list[int32]


@message
class OngoingTopicReassignment:
    name: str
    partitions: list[OngoingPartitionReassignment]


@message
class ListPartitionReassignmentsResponse:
    api: ClassVar[Api] = LIST_PARTITION_REASSIGNMENTS

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: str | None = None
    topics: list[OngoingTopicReassignment]
