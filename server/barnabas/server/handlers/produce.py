"""
Produce: append batches.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from barnabas.coordination.security.acl.permissions import WRITE_TOPIC, WRITE_TRANSACTIONAL_ID
from barnabas.coordination.steps import ENTRIES_PER_STEP
from barnabas.protocol.hot_messages.produce import topic_response
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.server.produce.append import ProduceAppends, may_write
from barnabas.server.produce.in_turns import are_once_each, produce_in_turns
from barnabas.server.produce.validation import FIRST_ZSTD_VERSION, is_transactional
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


def forget_records(request: ProduceRequest) -> None:
    """
    Let go of the records, which are in the logs now.
    """
    for topic in request.topic_data:
        for data in topic.partition_data:
            data.records = None


@handles(ProduceRequest, needs=asks(WRITE_TOPIC, WRITE_TRANSACTIONAL_ID), forget=forget_records)
def produce(
    request: ProduceRequest, context: RequestContext
) -> ProduceResponse | Coroutine[Any, Any, ProduceResponse | None] | None:
    """
    Plain, unlike all other handlers: a coroutine would add a tenth to the time of a small batch.
    """
    topics = request.topic_data
    partitions = 0
    has_transaction = request.transactional_id is not None
    for topic in topics:
        partitions += len(topic.partition_data)
        if partitions > ENTRIES_PER_STEP:
            return produce_in_turns(request, context)
        for data in topic.partition_data:
            # A batch whose framing is broken fails the whole request, if it comes before the first
            # transactional one (Kafka ``RequestUtils.hasTransactionalRecords``).
            has_transaction = has_transaction or is_transactional(data.records)
    if has_transaction or context.version < FIRST_ZSTD_VERSION or not are_once_each(topics):
        return produce_in_turns(request, context)
    appends = ProduceAppends(request, context, None)
    is_open = context.broker.authorizer is None
    for topic in topics:
        if is_open or may_write(topic, context):
            appended = [appends.append(topic, data) for data in topic.partition_data]
        else:
            appended = [appends.refuse(data) for data in topic.partition_data]
        appends.responses.append(topic_response(topic, appended))
    return appends.response() if appends.is_settled else appends.settled()
