"""
AlterShareGroupOffsets: a share group without members begins at other offsets.

Offsets are not compared with the log. A group that is missing is made.
"""

from __future__ import annotations

from uuid import UUID

from barnabas.coordination.security.acl.permissions import READ_GROUP, READ_TOPIC
from barnabas.coordination.share.offsets import alter
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import ErrorCode, InvalidGroupId, KafkaError
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

Failures = dict[UUID, dict[int, KafkaError]]


@handles(AlterShareGroupOffsetsRequest, needs=asks(READ_GROUP, READ_TOPIC))
async def alter_share_group_offsets(
    request: AlterShareGroupOffsetsRequest, context: RequestContext
) -> AlterShareGroupOffsetsResponse:
    context.require(READ_GROUP, request.group_id)
    broker = context.broker
    refused, accepted = [], []
    offsets: dict[UUID, dict[int, int]] = {}
    async for asked in broker.turns.between(request.topics):
        topic = broker.topics.get(asked.topic_name)
        if not asked.partitions and (topic is None or not context.allows(READ_TOPIC, topic.name)):
            # Kafka answers a refused topic by its partitions.
            continue
        if not context.allows(READ_TOPIC, asked.topic_name):
            refused.append(await _refused(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED, context))
        elif topic is None:
            refused.append(await _refused(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, context))
        else:
            accepted.append((asked, topic.id))
            known = {}
            async for each in broker.turns.between(asked.partitions):
                if each.partition_index in topic.partitions:
                    known[each.partition_index] = each.start_offset
            offsets[topic.id] = known
    if not request.group_id:
        raise InvalidGroupId
    failed = await alter(request.group_id, offsets, broker.share_groups, broker.shares)
    answered = [
        await _answered(asked, topic_id, offsets, failed, context) for asked, topic_id in accepted
    ]
    return AlterShareGroupOffsetsResponse(responses=refused + answered)


async def _refused(
    asked: AlterShareGroupOffsetsRequestTopic, code: ErrorCode, context: RequestContext
) -> AlterShareGroupOffsetsResponseTopic:
    partitions = [
        _partition(each.partition_index, code)
        async for each in context.broker.turns.between(asked.partitions)
    ]
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=asked.topic_name, topic_id=ZERO_UUID, partitions=partitions
    )


async def _answered(
    asked: AlterShareGroupOffsetsRequestTopic,
    topic_id: UUID,
    offsets: dict[UUID, dict[int, int]],
    failed: Failures,
    context: RequestContext,
) -> AlterShareGroupOffsetsResponseTopic:
    known, errors = offsets.get(topic_id, {}), failed.get(topic_id, {})
    partitions = []
    async for each in context.broker.turns.between(asked.partitions):
        index = each.partition_index
        if index not in known:
            partitions.append(_partition(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif index in errors:
            partitions.append(_partition(index, errors[index].code))
        else:
            partitions.append(AlterShareGroupOffsetsResponsePartition(partition_index=index))
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=asked.topic_name, topic_id=topic_id, partitions=partitions
    )


def _partition(index: int, code: ErrorCode) -> AlterShareGroupOffsetsResponsePartition:
    return AlterShareGroupOffsetsResponsePartition(
        partition_index=index, error_code=code, error_message=code.sentence
    )
