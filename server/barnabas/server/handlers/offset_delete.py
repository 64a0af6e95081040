"""
OffsetDelete: an administrator makes a group forget single offsets.
"""

from __future__ import annotations

from barnabas.protocol.codec.schema import replace
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.server.handlers.shaping import shaped
from barnabas.server.purgatory import Delayed
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import Steps
from barnabas.server.security.acl.permissions import DELETE_GROUP, READ_TOPIC


@handles(OffsetDeleteRequest, needs=asks(DELETE_GROUP, READ_TOPIC))
def offset_delete(
    request: OffsetDeleteRequest, context: RequestContext
) -> Steps[OffsetDeleteResponse | Delayed]:
    """
    Have offsets of partitions that exist deleted, and answer for those that do not.
    """
    refused: dict[str, OffsetDeleteResponseTopic] = {}

    def answered(name: str) -> OffsetDeleteResponseTopic:
        if name not in refused:
            refused[name] = OffsetDeleteResponseTopic(name=name, partitions=[])
        return refused[name]

    topics = []
    for topic in request.topics:
        found = context.broker.topics.get(topic.name)
        known = []
        for partition in topic.partitions:
            yield
            if found is not None and partition.partition_index in found.partitions:
                known.append(partition)
            else:
                answered(topic.name).partitions.append(
                    OffsetDeleteResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    )
                )
        if known:
            topics.append(OffsetDeleteRequestTopic(name=topic.name, partitions=known))

    def merge(response: OffsetDeleteResponse) -> OffsetDeleteResponse:
        if response.error_code != ErrorCode.NONE or not refused:
            return response
        for topic in response.topics:
            answered(topic.name).partitions.extend(topic.partitions)
        return OffsetDeleteResponse(error_code=ErrorCode.NONE, topics=list(refused.values()))

    answer = yield from context.broker.groups.delete_offsets(replace(request, topics=topics))
    return shaped(answer, merge)
