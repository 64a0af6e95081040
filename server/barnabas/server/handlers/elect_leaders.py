"""
ElectLeaders: other leaders for partitions (KIP-460; Kafka ``ReplicationControlManager``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.protocol.errors import ErrorCode, InvalidRequest, KafkaError
from barnabas.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from barnabas.server.cluster.partition_changes import Election
from barnabas.server.context import Context
from barnabas.server.handlers import handles
from barnabas.server.partition_plan import PartitionPlan

ELECTIONS: Final[Mapping[int, Election]] = {0: Election.PREFERRED, 1: Election.UNCLEAN}


def _error_response(
    request: ElectLeadersRequest, _version: int, code: ErrorCode, message: str | None
) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(partition_id=index, error_code=code, error_message=message)
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


@handles(ElectLeadersRequest, error_response=_error_response)
async def elect_leaders(request: ElectLeadersRequest, context: Context) -> ElectLeadersResponse:
    """
    Elect leaders of the partitions that are asked for; of all, those that need none left out.
    """
    asked = request.topic_partitions
    if asked is not None and not asked:
        return ElectLeadersResponse(error_code=ErrorCode.NONE, replica_election_results=[])
    election = ELECTIONS.get(request.election_type)
    if election is None:
        raise InvalidRequest(f"Unknown election type {request.election_type}")

    def elect(plan: PartitionPlan) -> list[ReplicaElectionResult]:
        wanted = plan.places() if asked is None else ((t.topic, t.partitions) for t in asked)
        return [
            ReplicaElectionResult(
                topic=name,
                partition_result=[
                    result
                    for index in indexes
                    if (result := _elect(plan, name, index, election)).error_code
                    != ErrorCode.ELECTION_NOT_NEEDED
                    or asked is not None
                ],
            )
            for name, indexes in wanted
        ]

    results = await context.topics.change_partitions(elect)
    return ElectLeadersResponse(error_code=ErrorCode.NONE, replica_election_results=results)


def _elect(plan: PartitionPlan, name: str, index: int, election: Election) -> PartitionResult:
    try:
        plan.elect(name, index, election)
    except KafkaError as error:
        return PartitionResult(partition_id=index, error_code=error.code, error_message=str(error))
    return PartitionResult(partition_id=index, error_code=ErrorCode.NONE)
