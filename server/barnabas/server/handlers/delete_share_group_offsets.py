"""
DeleteShareGroupOffsets: a share group without members forgets topics.
"""

from __future__ import annotations

from uuid import UUID

from barnabas.coordination.security.acl.permissions import DELETE_GROUP, READ_TOPIC
from barnabas.coordination.share.offsets import delete
from barnabas.protocol.errors import ErrorCode, InvalidGroupId
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


@handles(DeleteShareGroupOffsetsRequest, needs=asks(DELETE_GROUP, READ_TOPIC))
async def delete_share_group_offsets(
    request: DeleteShareGroupOffsetsRequest, context: RequestContext
) -> DeleteShareGroupOffsetsResponse:
    context.require(DELETE_GROUP, request.group_id)
    broker = context.broker
    refused, missing = [], []
    names: dict[UUID, str] = {}
    async for asked in broker.turns.between(request.topics):
        topic = broker.topics.get(asked.topic_name)
        if not context.allows(READ_TOPIC, asked.topic_name):
            refused.append(_failed(asked.topic_name, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif topic is None:
            missing.append(_failed(asked.topic_name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            names[topic.id] = topic.name
    if not request.group_id:
        raise InvalidGroupId
    results = await delete(request.group_id, list(names), broker.share_groups, broker.shares)
    deleted, failed = [], []
    for topic_id, error in results.items():
        if error is None:
            deleted.append(
                DeleteShareGroupOffsetsResponseTopic(topic_name=names[topic_id], topic_id=topic_id)
            )
        else:
            failed.append(_failed(names[topic_id], error.code, str(error) or None))
    return DeleteShareGroupOffsetsResponse(responses=refused + deleted + failed + missing)


def _failed(
    name: str, code: ErrorCode, message: str | None = None
) -> DeleteShareGroupOffsetsResponseTopic:
    """
    Args:
        message: None leaves the sentence for the code to the client.
    """
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name, error_code=code, error_message=message
    )
