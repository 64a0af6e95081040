"""
ElectLeaders (43): elects leaders of partitions.

* v1 adds the kind of election, and an error code for the whole answer (KIP-460).
* v2 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import ELECT_LEADERS
from barnabas.protocol.codec.schema import Api, int8, int16, int32, message, since


@message
class TopicPartitions:
    topic: str
    partitions: list[int32]


@message
class ElectLeadersRequest:
    api: ClassVar[Api] = ELECT_LEADERS

    election_type: int8 = since(1, default=0)
    topic_partitions: list[TopicPartitions] | None
    timeout_ms: int32 = 60000


@message
class PartitionResult:
    partition_id: int32
    error_code: int16
    error_message: str | None = None


@message
class ReplicaElectionResult:
    topic: str
    partition_result: list[PartitionResult]


@message
class ElectLeadersResponse:
    api: ClassVar[Api] = ELECT_LEADERS

    throttle_time_ms: int32 = 0
    error_code: int16 = since(1, default=0)
    replica_election_results: list[ReplicaElectionResult]
