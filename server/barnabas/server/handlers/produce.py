"""
Produce: append batches.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any
from uuid import UUID

from barnabas.protocol.errors import TransactionalIdAuthorizationFailed
from barnabas.protocol.hot_messages.produce import topic_response
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.server.produce.append import ProduceAppends, Produced, may_write
from barnabas.server.produce.delayed import DelayedProduce
from barnabas.server.produce.transactions import Participation
from barnabas.server.produce.validation import FIRST_ZSTD_VERSION, check_codec, is_transactional
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import ENTRIES_PER_STEP, Steps, map_in_steps
from barnabas.server.security.acl.permissions import WRITE_TOPIC, WRITE_TRANSACTIONAL_ID


def forget_records(request: ProduceRequest) -> None:
    """
    Let go of the records, which are in the logs now.
    """
    for topic in request.topic_data:
        for data in topic.partition_data:
            data.records = None


@handles(ProduceRequest, needs=asks(WRITE_TOPIC, WRITE_TRANSACTIONAL_ID), forget=forget_records)
def produce(request: ProduceRequest, context: RequestContext) -> Any:
    """
    Returns:
        ``Produced``, a coroutine that returns it, or steps to either.
    """
    topics = request.topic_data
    partitions = 0
    has_transaction = request.transactional_id is not None
    for topic in topics:
        partitions += len(topic.partition_data)
        if partitions > ENTRIES_PER_STEP:
            return _produce_in_steps(request, context)
        for data in topic.partition_data:
            # A batch whose framing is broken fails the whole request, if it comes before the first
            # transactional one (Kafka ``RequestUtils.hasTransactionalRecords``).
            has_transaction = has_transaction or is_transactional(data.records)
    if has_transaction or context.version < FIRST_ZSTD_VERSION or not _are_once_each(topics):
        return _produce_in_steps(request, context)
    appends = ProduceAppends(request, context, None)
    is_open = context.broker.authorizer is None
    responses: list[TopicProduceResponse] = []
    for topic in topics:
        if is_open or may_write(topic, context):
            appended = [appends.append(topic, data) for data in topic.partition_data]
        else:
            appended = [appends.refuse(data) for data in topic.partition_data]
        responses.append(topic_response(topic, appended))
    return _finish(appends, responses) if appends.has_long else appends.answer(responses)


def _produce_in_steps(
    request: ProduceRequest, context: RequestContext
) -> Steps[Produced | Coroutine[Any, Any, ProduceResponse | None]]:
    """
    Serve a request that has many partitions, a transaction, or needs a closer look.
    """
    has_transaction = False
    number = 0
    for topic in request.topic_data:
        for data in topic.partition_data:
            has_transaction = has_transaction or is_transactional(data.records)
            number += 1
            if number % ENTRIES_PER_STEP == 0:
                yield
    if has_transaction:
        if request.transactional_id is None:
            raise TransactionalIdAuthorizationFailed
        context.require(WRITE_TRANSACTIONAL_ID, request.transactional_id)
    topics: Sequence[TopicProduceData] = request.topic_data
    refused: Sequence[TopicProduceData] = ()
    if context.broker.authorizer is not None:
        topics, refused = yield from _sort_out(topics, context)
        refused = yield from _once_each(refused)
    if context.version < FIRST_ZSTD_VERSION:
        yield from _check_codecs(topics, context)
    topics = yield from _once_each(topics)
    participation: Participation | None = None
    if request.transactional_id is not None:
        participation = Participation(request.transactional_id, context.version)
        yield from participation.begin(topics, context)
    appending = _append(topics, refused, ProduceAppends(request, context, participation))
    if participation is not None and participation.is_pending:
        return _join_and_append(participation, appending, context)
    return (yield from appending)


async def _join_and_append(
    participation: Participation, appending: Steps[Any], context: RequestContext
) -> ProduceResponse | None:
    await participation.finish(context)
    produced: Any = await context.broker.turns.finish(appending)
    if isinstance(produced, Coroutine):
        produced = await produced
    if isinstance(produced, DelayedProduce):
        produced = await produced.outcome()
    return produced  # type: ignore[no-any-return]  # a response, or none for acks=0


def _append(
    topics: Sequence[TopicProduceData], refused: Sequence[TopicProduceData], appends: ProduceAppends
) -> Steps[Produced | Coroutine[Any, Any, ProduceResponse | None]]:
    """
    Append the records of each partition.

    Args:
        refused: topics that the client may not write to.
    """
    responses: list[TopicProduceResponse] = []
    number = 0
    for topic in topics:
        partition_responses = []
        for data in topic.partition_data:
            partition_responses.append(appends.append(topic, data))
            number += 1
            if number % ENTRIES_PER_STEP == 0:
                yield
        responses.append(topic_response(topic, partition_responses))
    for topic in refused:
        partition_responses = []
        for data in topic.partition_data:
            partition_responses.append(appends.refuse(data))
            number += 1
            if number % ENTRIES_PER_STEP == 0:
                yield
        responses.append(topic_response(topic, partition_responses))
    if appends.has_long:
        return _finish(appends, responses)
    return appends.answer(responses)


async def _finish(
    appends: ProduceAppends, responses: list[TopicProduceResponse]
) -> Any:  # a response, now or later, or none for acks=0
    await appends.append_long(responses)
    produced: Any = appends.answer(responses)
    if isinstance(produced, Coroutine):
        produced = await produced
    return produced


def _once_each(topics: Sequence[TopicProduceData]) -> Steps[Sequence[TopicProduceData]]:
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
                yield
    if len(found) == len(topics) and sum(map(len, found.values())) == asked:
        return topics

    def once(item: tuple[tuple[str, UUID], dict[int, PartitionProduceData]]) -> TopicProduceData:
        (name, topic_id), data = item
        return TopicProduceData(name=name, topic_id=topic_id, partition_data=list(data.values()))

    return (yield from map_in_steps(once, found.items()))


def _are_once_each(topics: Sequence[TopicProduceData]) -> bool:
    """
    Whether no topic and no partition is there twice, nor a topic without partitions.
    """
    for topic in topics:
        data = topic.partition_data
        if len(data) != 1 and (not data or len({each.index for each in data}) != len(data)):
            return False
    return len(topics) == 1 or len({(topic.name, topic.topic_id) for topic in topics}) == len(
        topics
    )


def _sort_out(
    topics: Sequence[TopicProduceData], context: RequestContext
) -> Steps[tuple[list[TopicProduceData], list[TopicProduceData]]]:
    """
    The topics that the client may write to, and the others.
    """
    allowed: list[TopicProduceData] = []
    refused: list[TopicProduceData] = []
    for topic in topics:
        yield
        if may_write(topic, context):
            allowed.append(topic)
        else:
            refused.append(topic)
    return allowed, refused


def _check_codecs(topics: Sequence[TopicProduceData], context: RequestContext) -> Steps[None]:
    """
    A codec that does not exist fails the whole request, before anything of it is appended.
    """
    for topic in topics:
        for data in topic.partition_data:
            yield
            if context.broker.partitions.knows(topic.name, data.index):
                check_codec(data.records)
