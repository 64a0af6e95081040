"""
Produce requests that are served in turns: they have many partitions, a transaction, a partition
twice, or are of a version from before zstd.

A first pass finds every error that fails the whole request; only then anything is appended. Of a
partition that is there twice the last one counts (Kafka ``KafkaApis.handleProduceRequest``).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from barnabas.coordination.security.acl.permissions import WRITE_TRANSACTIONAL_ID
from barnabas.coordination.steps import ENTRIES_PER_STEP, checkpoint, map_in_turns
from barnabas.protocol.errors import TransactionalIdAuthorizationFailed
from barnabas.protocol.hot_messages.produce import topic_response
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.server.produce.append import ProduceAppends, may_write
from barnabas.server.produce.transactions import Participation
from barnabas.server.produce.validation import FIRST_ZSTD_VERSION, check_codec, is_transactional
from barnabas.server.requests.context import RequestContext


async def produce_in_turns(
    request: ProduceRequest, context: RequestContext
) -> ProduceResponse | None:
    """
    Serve a request in turns.

    Raises:
        TransactionalIdAuthorizationFailed: the client may not use the transactional id, or a
            transactional batch comes without one.
        CorruptMessage, InvalidProducerIdMapping, UnknownServerError: nothing was appended.
        CloseConnection: the client wants no answer, but something has failed.
    """
    if await _has_transaction(request):
        if request.transactional_id is None:
            raise TransactionalIdAuthorizationFailed
        context.require(WRITE_TRANSACTIONAL_ID, request.transactional_id)
    topics: Sequence[TopicProduceData] = request.topic_data
    refused: Sequence[TopicProduceData] = ()
    if context.broker.authorizer is not None:
        topics, refused = await _sort_out(topics, context)
        refused = await _once_each(refused)
    if context.version < FIRST_ZSTD_VERSION:
        await _check_codecs(topics, context)
    topics = await _once_each(topics)
    participation: Participation | None = None
    if request.transactional_id is not None:
        participation = Participation(request.transactional_id, context.version)
        await participation.begin(topics, context)
        if participation.is_pending:
            await participation.finish(context)
    appends = ProduceAppends(request, context, participation)
    await _append_all(topics, refused, appends)
    return await appends.settled()


async def _has_transaction(request: ProduceRequest) -> bool:
    number = 0
    for topic in request.topic_data:
        for data in topic.partition_data:
            if is_transactional(data.records):
                return True
            number += 1
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
    return False


async def _append_all(
    topics: Sequence[TopicProduceData], refused: Sequence[TopicProduceData], appends: ProduceAppends
) -> None:
    """
    Append the records of each partition.

    Args:
        refused: topics that the client may not write to.
    """
    number = 0
    for topic in topics:
        appended = []
        for data in topic.partition_data:
            appended.append(appends.append(topic, data))
            number += 1
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
        appends.responses.append(topic_response(topic, appended))
    for topic in refused:
        appended = []
        for data in topic.partition_data:
            appended.append(appends.refuse(data))
            number += 1
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
        appends.responses.append(topic_response(topic, appended))


async def _once_each(topics: Sequence[TopicProduceData]) -> Sequence[TopicProduceData]:
    """
    Each partition once, with the last that the request has for it.

    Kafka goes by a map of partitions: a topic without any is not answered.
    """
    found: dict[tuple[str, UUID], dict[int, PartitionProduceData]] = {}
    asked = 0
    for topic in topics:
        if not topic.partition_data:
            continue
        partitions = found.setdefault((topic.name, topic.topic_id), {})
        for data in topic.partition_data:
            partitions[data.index] = data
            asked += 1
            if asked % ENTRIES_PER_STEP == 0:
                await checkpoint()
    if len(found) == len(topics) and sum(map(len, found.values())) == asked:
        return topics

    def once(item: tuple[tuple[str, UUID], dict[int, PartitionProduceData]]) -> TopicProduceData:
        (name, topic_id), data = item
        return TopicProduceData(name=name, topic_id=topic_id, partition_data=list(data.values()))

    return await map_in_turns(once, found.items())


def are_once_each(topics: Sequence[TopicProduceData]) -> bool:
    """
    Return True if no topic and no partition is there twice, and no topic is without partitions.
    """
    for topic in topics:
        data = topic.partition_data
        if len(data) != 1 and (not data or len({each.index for each in data}) != len(data)):
            return False
    return len(topics) == 1 or len({(topic.name, topic.topic_id) for topic in topics}) == len(
        topics
    )


async def _sort_out(
    topics: Sequence[TopicProduceData], context: RequestContext
) -> tuple[list[TopicProduceData], list[TopicProduceData]]:
    """
    The topics that the client may write to, and the others.
    """
    allowed: list[TopicProduceData] = []
    refused: list[TopicProduceData] = []
    for topic in topics:
        await checkpoint()
        if may_write(topic, context):
            allowed.append(topic)
        else:
            refused.append(topic)
    return allowed, refused


async def _check_codecs(topics: Sequence[TopicProduceData], context: RequestContext) -> None:
    """
    A codec that does not exist fails the whole request, before anything of it is appended.
    """
    for topic in topics:
        for data in topic.partition_data:
            await checkpoint()
            if context.broker.partitions.knows(topic.name, data.index):
                check_codec(data.records)
