"""
DescribeTransactions: what is known of transactional ids (KIP-664).

Topics that the client may not describe are left out of the transactions that it may.
"""

from __future__ import annotations

from collections import defaultdict

from barnabas.coordination.security.acl.permissions import DESCRIBE_TOPIC, DESCRIBE_TRANSACTIONAL_ID
from barnabas.coordination.steps import checkpoint
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.requests.settled import reads, transactions


@handles(DescribeTransactionsRequest, needs=asks(DESCRIBE_TRANSACTIONAL_ID, DESCRIBE_TOPIC))
@reads(transactions, lambda request: request.transactional_ids)
async def describe_transactions(
    request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse:
    room = context.room()
    described = room.list()
    for transactional_id in request.transactional_ids:
        await checkpoint()
        found = await _describe(transactional_id, context)
        room.take(1 + sum(1 + len(topic.partitions) for topic in found.topics))
        described.append(found)
    return DescribeTransactionsResponse(transaction_states=described)


async def _describe(transactional_id: str, context: RequestContext) -> TransactionState:
    if not context.allows(DESCRIBE_TRANSACTIONAL_ID, transactional_id):
        return _unknown(transactional_id, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    try:
        transaction = context.broker.transactions.describe(transactional_id)
    except KafkaError as error:
        return _unknown(transactional_id, error.code)
    if transaction is None:
        return _unknown(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for topic, index in sorted(transaction.partitions):
        topics[topic].append(index)
    visible = []
    for topic, indexes in topics.items():
        await checkpoint()
        if context.sees(DESCRIBE_TOPIC, topic):
            visible.append(TopicData(topic=topic, partitions=indexes))
    return TransactionState(
        error_code=0,
        transactional_id=transactional_id,
        transaction_state=transaction.state.title,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=visible,
    )


def _unknown(transactional_id: str, code: ErrorCode) -> TransactionState:
    return TransactionState(
        error_code=code,
        transactional_id=transactional_id,
        transaction_state="",
        transaction_timeout_ms=0,
        transaction_start_time_ms=0,
        producer_id=0,
        producer_epoch=0,
        topics=[],
    )
