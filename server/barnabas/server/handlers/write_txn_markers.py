"""
WriteTxnMarkers: end transactions in partitions, as their coordinator would.

The coordinator here is in the same process and does not ask. Who does is an administrator that ends
a transaction which hangs (KIP-664).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeAlias

from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.coordination.security.acl.bindings import CLUSTER_NAME
from barnabas.coordination.security.acl.permissions import ALTER_CLUSTER, CLUSTER_ACTION
from barnabas.coordination.steps import checkpoint, map_in_turns
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.transactions.markers import check_somebody
from barnabas.storage.topic_partition import TopicPartition

ErrorsOfProducers: TypeAlias = defaultdict[int, dict[TopicPartition, ErrorCode]]
"""By producer id: all markers of a producer are answered as one."""


@handles(WriteTxnMarkersRequest, needs=asks(ALTER_CLUSTER, CLUSTER_ACTION))
async def write_txn_markers(
    request: WriteTxnMarkersRequest, context: RequestContext
) -> WriteTxnMarkersResponse:
    if not context.sees(ALTER_CLUSTER, CLUSTER_NAME):
        context.require(CLUSTER_ACTION)
    errors: ErrorsOfProducers = defaultdict(dict)
    async for marker in context.broker.turns.between(request.markers):
        partitions = await _partitions(marker)
        producer = ProducerIdAndEpoch(marker.producer_id, marker.producer_epoch)
        check_somebody(producer, partitions, context.broker.partitions)
        async for where in context.broker.turns.between(partitions):
            errors[marker.producer_id][where] = await _write_one(marker, where, context)
    return await _response(errors)


async def _partitions(marker: WritableTxnMarker) -> list[TopicPartition]:
    partitions = []
    for topic in marker.topics:
        await checkpoint()
        for index in topic.partition_indexes:
            await checkpoint()
            partitions.append(TopicPartition(topic.name, index))
    return partitions


async def _write_one(
    marker: WritableTxnMarker, where: TopicPartition, context: RequestContext
) -> ErrorCode:
    if context.broker.partitions.get(*where) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return await context.broker.markers.write_alone(
        where,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
        commit=marker.transaction_result,
        transaction_version=marker.transaction_version,
    )


async def _response(errors: ErrorsOfProducers) -> WriteTxnMarkersResponse:
    markers = []
    for producer_id, of_producer in errors.items():
        await checkpoint()
        if of_producer:
            topics = await _topics(of_producer)
            markers.append(WritableTxnMarkerResult(producer_id=producer_id, topics=topics))
    return WriteTxnMarkersResponse(markers=markers)


async def _topics(
    errors: Mapping[TopicPartition, ErrorCode],
) -> list[WritableTxnMarkerTopicResult]:
    topics: defaultdict[str, list[WritableTxnMarkerPartitionResult]] = defaultdict(list)
    for where, code in errors.items():
        await checkpoint()
        topics[where.topic].append(
            WritableTxnMarkerPartitionResult(partition_index=where.partition, error_code=code)
        )
    return await map_in_turns(
        lambda item: WritableTxnMarkerTopicResult(name=item[0], partitions=item[1]),
        topics.items(),
    )
