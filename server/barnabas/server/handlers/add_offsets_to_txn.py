"""
AddOffsetsToTxn: a transaction is going to commit offsets of this group.

What is added is the partition of ``__consumer_offsets`` that the group belongs to.
"""

from __future__ import annotations

from barnabas.coordination.cluster.topic_names import GROUP_METADATA_TOPIC
from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.coordination.security.acl.permissions import READ_GROUP, WRITE_TRANSACTIONAL_ID
from barnabas.coordination.transactions.errors import told
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.storage.topic_partition import TopicPartition


@handles(AddOffsetsToTxnRequest, needs=asks(WRITE_TRANSACTIONAL_ID, READ_GROUP))
async def add_offsets_to_txn(
    request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse:
    context.require(WRITE_TRANSACTIONAL_ID, request.transactional_id)
    context.require(READ_GROUP, request.group_id)
    partition = context.broker.groups.partition_for(request.group_id)
    try:
        await context.broker.transactions.add_partitions(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            {TopicPartition(GROUP_METADATA_TOPIC, partition)},
            client_version=0,
        )
    except KafkaError as error:
        return AddOffsetsToTxnResponse(error_code=told(error, context.version))
    return AddOffsetsToTxnResponse(error_code=0)
