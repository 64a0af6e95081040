"""
AlterPartitionReassignments: partitions on other brokers (KIP-455; Kafka
``ReplicationControlManager``).

On one node that is of use after a cluster has become smaller: replicas on brokers that are gone can
be taken away.
"""

from __future__ import annotations

import logging
from functools import partial

from barnabas.coordination.security.acl.permissions import ALTER_CLUSTER
from barnabas.coordination.steps import map_in_turns
from barnabas.coordination.topics.reassignment import PartitionChanges
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

logger = logging.getLogger(__name__)


@handles(AlterPartitionReassignmentsRequest, needs=gate(ALTER_CLUSTER))
async def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    """
    Begin the moves that can be, and take back those that are asked for without replicas.
    """
    if not request.topics:
        # Kafka does not look at the request, and answers with the defaults of the fields.
        return AlterPartitionReassignmentsResponse(
            error_code=ErrorCode.NONE, error_message="", responses=[]
        )
    may_change_factor = request.allow_replication_factor_change

    async def alter(plan: PartitionChanges) -> list[ReassignableTopicResponse]:
        results = []
        for topic in request.topics:
            name = topic.name
            altered = await map_in_turns(
                partial(_alter, plan, name, may_change_factor), topic.partitions
            )
            results.append(ReassignableTopicResponse(name=name, partitions=altered))
        return results

    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change_factor,
        error_code=ErrorCode.NONE,
        error_message=None,
        responses=await context.broker.topics.change_partitions(alter),
    )


def _alter(
    plan: PartitionChanges, name: str, may_change_factor: bool, wanted: ReassignablePartition
) -> ReassignablePartitionResponse:
    index = wanted.partition_index
    try:
        if wanted.replicas is None:
            plan.cancel_move(name, index)
        else:
            plan.move(name, index, wanted.replicas, may_change_factor=may_change_factor)
    except KafkaError as error:
        logger.info("%s-%d is not moved: %s", name, index, error)
        return ReassignablePartitionResponse(
            partition_index=index, error_code=error.code, error_message=error.own_sentence
        )
    return ReassignablePartitionResponse(partition_index=index, error_code=ErrorCode.NONE)
