"""
ElectLeaders: other leaders for partitions (KIP-460; Kafka ``ReplicationControlManager``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from barnabas.coordination.cluster.partition_changes import Election
from barnabas.coordination.security.acl.permissions import ALTER_CLUSTER
from barnabas.coordination.steps import map_in_turns
from barnabas.coordination.topics.reassignment import PartitionChanges
from barnabas.protocol.errors import ErrorCode, InvalidRequest, KafkaError
from barnabas.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

ELECTIONS: Final[Mapping[int, Election]] = {0: Election.PREFERRED, 1: Election.UNCLEAN}


@handles(ElectLeadersRequest, needs=gate(ALTER_CLUSTER))
async def elect_leaders(
    request: ElectLeadersRequest, context: RequestContext
) -> ElectLeadersResponse:
    """
    Elect leaders of the partitions that are asked for; of all, those that need none left out.
    """
    asked = request.topic_partitions
    if asked is not None and not asked:
        return ElectLeadersResponse(error_code=ErrorCode.NONE, replica_election_results=[])
    election = ELECTIONS.get(request.election_type)
    if election is None:
        raise InvalidRequest(f"Unknown election type {request.election_type}")

    async def elect(plan: PartitionChanges) -> list[ReplicaElectionResult]:
        results = []
        wanted = plan.places() if asked is None else ((t.topic, t.partitions) for t in asked)
        for name, indexes in wanted:
            every = await map_in_turns(partial(_elect, plan, name, election), indexes)
            if asked is None:
                every = [e for e in every if e.error_code != ErrorCode.ELECTION_NOT_NEEDED]
            results.append(ReplicaElectionResult(topic=name, partition_result=every))
        return results

    results = await context.broker.topics.change_partitions(elect)
    return ElectLeadersResponse(error_code=ErrorCode.NONE, replica_election_results=results)


def _elect(plan: PartitionChanges, name: str, election: Election, index: int) -> PartitionResult:
    try:
        plan.elect(name, index, election)
    except KafkaError as error:
        return PartitionResult(partition_id=index, error_code=error.code, error_message=str(error))
    return PartitionResult(partition_id=index, error_code=ErrorCode.NONE)
