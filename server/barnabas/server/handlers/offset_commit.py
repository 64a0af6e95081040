"""
OffsetCommit: a group says how far it has come.

Before the coordinator sees the request, topics get both their name and their id, and what does not
exist or may not be read is answered (Kafka's ``KafkaApis.handleOffsetCommitRequest``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from barnabas.coordination.security.acl.permissions import READ_GROUP, READ_TOPIC
from barnabas.coordination.steps import checkpoint, map_in_turns
from barnabas.protocol.codec.schema import replace
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

TOPIC_IDS_SINCE: Final = 10


@handles(OffsetCommitRequest, needs=asks(READ_GROUP, READ_TOPIC))
async def offset_commit(
    request: OffsetCommitRequest, context: RequestContext
) -> OffsetCommitResponse:
    """
    Commit what can be committed.
    """
    context.require(READ_GROUP, request.group_id)
    refused = _Refused()
    topics = []
    for topic in request.topics:
        known = await _known_part(topic, context, refused)
        if known is not None and known.partitions:
            topics.append(known)
    if not topics:
        return OffsetCommitResponse(topics=await refused.in_turns())
    known_part = replace(request, topics=topics)
    committed = await context.broker.groups.commit_offsets(known_part, context.version)
    return await refused.merge(await context.committed(committed))


async def _known_part(
    topic: OffsetCommitRequestTopic, context: RequestContext, refused: _Refused
) -> OffsetCommitRequestTopic | None:
    """
    The topic with those of its partitions that exist, if the client may read it.
    """
    has_id = context.version >= TOPIC_IDS_SINCE
    if has_id:
        found = context.broker.topics.get_by_id(topic.topic_id)
    else:
        found = context.broker.topics.get(topic.name)
    await checkpoint()
    name = topic.name if found is None else found.name
    if has_id and found is None:
        error = ErrorCode.UNKNOWN_TOPIC_ID
    elif not context.allows(READ_TOPIC, name):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        found = None
    else:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if found is None:
        await refused.add(name, topic.topic_id, topic.partitions, error)
        return None
    known = []
    for partition in topic.partitions:
        await checkpoint()
        if partition.partition_index in found.partitions:
            known.append(partition)
        else:
            await refused.add(found.name, found.id, [partition], error)
    return OffsetCommitRequestTopic(name=found.name, topic_id=found.id, partitions=known)


class _Refused:
    """
    The part of the answer that the coordinator has no say in.

    The response has each topic once, with its accepted and its refused partitions.
    """

    def __init__(self) -> None:
        self._topics: dict[tuple[str, UUID], list[OffsetCommitResponsePartition]] = {}

    async def add(
        self,
        name: str,
        topic_id: UUID,
        partitions: Iterable[OffsetCommitRequestPartition],
        error: ErrorCode,
    ) -> None:
        """
        Refuse some partitions of a topic; it is named even if there are none.
        """
        refused = self._topics.setdefault((name, topic_id), [])
        for partition in partitions:
            await checkpoint()
            refused.append(
                OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=error
                )
            )

    async def in_turns(self) -> list[OffsetCommitResponseTopic]:
        """
        All topics of which something was refused.
        """
        return await map_in_turns(
            lambda item: OffsetCommitResponseTopic(
                name=item[0][0], topic_id=item[0][1], partitions=item[1]
            ),
            self._topics.items(),
        )

    async def merge(self, response: OffsetCommitResponse) -> OffsetCommitResponse:
        """
        The answer of the coordinator, with what it was not asked.
        """
        if not self._topics:
            return response
        for topic in response.topics:
            partitions = self._topics.setdefault((topic.name, topic.topic_id), [])
            partitions.extend(topic.partitions)
        return OffsetCommitResponse(topics=await self.in_turns())
