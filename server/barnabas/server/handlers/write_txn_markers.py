"""
WriteTxnMarkers: end transactions in partitions, as their coordinator would.

The coordinator here is in the same process and does not ask. Who does is an administrator that ends
a transaction which hangs (KIP-664).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from barnabas.protocol.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    KafkaError,
    NotCoordinator,
    NotLeaderOrFollower,
    UnknownServerError,
)
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.server.cluster.topic_names import GROUP_METADATA_TOPIC
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import checkpoint, map_in_turns
from barnabas.server.security.acl.bindings import CLUSTER_NAME
from barnabas.server.security.acl.permissions import ALTER_CLUSTER, CLUSTER_ACTION
from barnabas.storage.topic_partition import TopicPartition

ErrorsOfProducers: TypeAlias = defaultdict[int, dict[TopicPartition, ErrorCode]]
"""By producer id: all markers of a producer are answered as one."""

_NOT_READY = (CoordinatorNotAvailable, CoordinatorLoadInProgress, NotCoordinator)


@handles(WriteTxnMarkersRequest, needs=asks(ALTER_CLUSTER, CLUSTER_ACTION))
async def write_txn_markers(
    request: WriteTxnMarkersRequest, context: RequestContext
) -> WriteTxnMarkersResponse:
    if not context.sees(ALTER_CLUSTER, CLUSTER_NAME):
        context.require(CLUSTER_ACTION)
    errors: ErrorsOfProducers = defaultdict(dict)
    async for marker in context.broker.turns.between(request.markers):
        partitions = await _partitions(marker)
        _check_somebody(marker, partitions, context)
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


def _check_somebody(
    marker: WritableTxnMarker, partitions: Iterable[TopicPartition], context: RequestContext
) -> None:
    """
    Of nobody's marker no batch can be built, which Kafka does not foresee: the request fails as a
    whole. It comes to that only if there is a partition to write to, and group coordinators build
    batches of their own.
    """
    nobody = marker.producer_id == NO_PRODUCER_ID or marker.producer_epoch == NO_PRODUCER_EPOCH
    if nobody and any(
        where.topic != GROUP_METADATA_TOPIC and context.broker.partitions.get(*where) is not None
        for where in partitions
    ):
        raise UnknownServerError("A marker needs a producer id and its epoch")


async def _write_one(
    marker: WritableTxnMarker, where: TopicPartition, context: RequestContext
) -> ErrorCode:
    if context.broker.partitions.get(*where) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        await context.broker.markers.write(
            where,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            commit=marker.transaction_result,
            transaction_version=marker.transaction_version,
        )
    except _NOT_READY:
        # As if the partition were elsewhere: a coordinator of transactions does not know these.
        return NotLeaderOrFollower.code
    except KafkaError as error:
        return error.code
    except ValueError:
        return UnknownServerError.code
    return ErrorCode.NONE


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
