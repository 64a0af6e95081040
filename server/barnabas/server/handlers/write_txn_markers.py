"""
WriteTxnMarkers: end transactions in partitions, as their coordinator would.

The coordinator here is in the same process and does not ask. Who does is an administrator that ends
a transaction which hangs (KIP-664).
"""

from __future__ import annotations

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
from barnabas.protocol.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from barnabas.server.context import Context
from barnabas.server.handlers import handles
from barnabas.storage.log_files import TopicPartition

_NOT_READY = (CoordinatorNotAvailable, CoordinatorLoadInProgress, NotCoordinator)


def error_response(
    request: WriteTxnMarkersRequest, _version: int, code: ErrorCode, _message: str | None
) -> WriteTxnMarkersResponse:
    """
    The same error for every partition of every marker.
    """
    return WriteTxnMarkersResponse(
        markers=[
            _result(
                marker,
                {
                    TopicPartition(topic.name, index): code
                    for topic in marker.topics
                    for index in topic.partition_indexes
                },
            )
            for marker in request.markers
        ]
    )


@handles(WriteTxnMarkersRequest, error_response=error_response)
async def write_txn_markers(
    request: WriteTxnMarkersRequest, context: Context
) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[_result(marker, await _write(marker, context)) for marker in request.markers]
    )


async def _write(marker: WritableTxnMarker, context: Context) -> dict[TopicPartition, ErrorCode]:
    errors: dict[TopicPartition, ErrorCode] = {}
    nobody = marker.producer_id == NO_PRODUCER_ID or marker.producer_epoch == NO_PRODUCER_EPOCH
    if nobody and any(topic.partition_indexes for topic in marker.topics):
        # No batch can be built of it, which Kafka does not foresee: the request fails as a whole.
        raise UnknownServerError("A marker needs a producer id and its epoch")
    for topic in marker.topics:
        for index in topic.partition_indexes:
            where = TopicPartition(topic.name, index)
            errors[where] = await _write_one(marker, where, context)
    return errors


async def _write_one(
    marker: WritableTxnMarker, where: TopicPartition, context: Context
) -> ErrorCode:
    if context.partitions.get(*where) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        await context.markers.write(
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


def _result(
    marker: WritableTxnMarker, errors: dict[TopicPartition, ErrorCode]
) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index,
                        error_code=errors[TopicPartition(topic.name, index)],
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )
