"""
AlterPartitionReassignments: partitions on other brokers (KIP-455; Kafka
``ReplicationControlManager``).

On one node that is of use after a cluster has become smaller: replicas on brokers that are gone can
be taken away.
"""

from __future__ import annotations

import logging

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas.server.context import Context
from barnabas.server.handlers import handles
from barnabas.server.partition_plan import PartitionPlan

logger = logging.getLogger(__name__)


def _error_response(
    request: AlterPartitionReassignmentsRequest,
    _version: int,
    code: ErrorCode,
    message: str | None,
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=message,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=partition.partition_index,
                        error_code=code,
                        error_message=message,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


@handles(AlterPartitionReassignmentsRequest, error_response=_error_response)
async def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, context: Context
) -> AlterPartitionReassignmentsResponse:
    """
    Begin the moves that can be, and take back those that are asked for without replicas.
    """
    if not request.topics:
        # Nobody looks at the request; what is told are the defaults of the fields.
        return AlterPartitionReassignmentsResponse(
            error_code=ErrorCode.NONE, error_message="", responses=[]
        )
    may_change_factor = request.allow_replication_factor_change

    def alter(plan: PartitionPlan) -> list[ReassignableTopicResponse]:
        return [
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    _alter(plan, topic.name, partition, may_change_factor)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]

    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change_factor,
        error_code=ErrorCode.NONE,
        error_message=None,
        responses=await context.topics.change_partitions(alter),
    )


def _alter(
    plan: PartitionPlan, name: str, wanted: ReassignablePartition, may_change_factor: bool
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
