"""
DeleteRecords: lets partitions begin later (Kafka ``ReplicaManager.deleteRecords``).

There is one replica, so that what is gone from it is gone: nobody has to be waited for. The new
start of a log survives a crash once it is in the checkpoint of its directory, as in Kafka.
"""

from __future__ import annotations

import logging
from typing import Final

from barnabas.coordination.security.acl.permissions import DELETE_TOPIC
from barnabas.coordination.steps import await_each, checkpoint, map_in_turns
from barnabas.protocol.errors import (
    ErrorCode,
    InvalidTopicException,
    KafkaError,
    UnknownTopicOrPartition,
)
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.authorized import partition_by_authorized
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

logger = logging.getLogger(__name__)

INVALID_LOW_WATERMARK: Final = -1


@handles(DeleteRecordsRequest, needs=asks(DELETE_TOPIC))
async def delete_records(
    request: DeleteRecordsRequest, context: RequestContext
) -> DeleteRecordsResponse:
    """
    Delete what lies below each offset, and say where each log begins now.
    """
    asked = [topic for topic in request.topics if topic.partitions]
    asked, kept = await partition_by_authorized(
        context, DELETE_TOPIC, asked, lambda topic: topic.name
    )
    topics = await await_each(lambda topic: _delete(topic, context), asked)
    topics += await await_each(_refuse, kept)
    return DeleteRecordsResponse(topics=topics)


async def _refuse(topic: DeleteRecordsTopic) -> DeleteRecordsTopicResult:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    indexes = dict.fromkeys(partition.partition_index for partition in topic.partitions)
    results = await map_in_turns(lambda index: _answer(index, INVALID_LOW_WATERMARK, code), indexes)
    return DeleteRecordsTopicResult(name=topic.name, partitions=results)


async def _delete(topic: DeleteRecordsTopic, context: RequestContext) -> DeleteRecordsTopicResult:
    results = []
    # Of a partition that is named twice the last offset counts.
    offsets = {partition.partition_index: partition.offset for partition in topic.partitions}
    for index, offset in offsets.items():
        await checkpoint()
        try:
            start = _delete_before(topic.name, index, offset, context)
        except KafkaError as error:
            logger.info("Records of %s-%d were not deleted: %s", topic.name, index, error)
            results.append(_answer(index, INVALID_LOW_WATERMARK, error.code))
        else:
            results.append(_answer(index, start, ErrorCode.NONE))
    return DeleteRecordsTopicResult(name=topic.name, partitions=results)


def _delete_before(name: str, index: int, offset: int, context: RequestContext) -> int:
    topic = context.broker.topics.get(name)
    if topic is None or index not in topic.partitions:
        raise UnknownTopicOrPartition
    if topic.is_internal:
        raise InvalidTopicException(f"Cannot delete records of internal topic {name}")
    partition = context.broker.partitions.expect(name, index)
    if partition.error is not None:
        raise partition.error.with_traceback(None)
    return partition.log.delete_records(offset)


def _answer(index: int, low_watermark: int, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=low_watermark, error_code=code
    )
