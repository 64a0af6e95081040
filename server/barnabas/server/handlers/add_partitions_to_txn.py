"""
AddPartitionsToTxn: a transaction is going to write to these partitions.

A transaction gets all of the partitions or none: where one does not exist, the others are told that
nothing was attempted. Up to version 3 it is a client that asks, for one transaction; from version 4
on brokers ask, for many, and may only want to know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final

from barnabas.coordination.cluster.topic_names import is_internal
from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.coordination.security.acl.permissions import (
    CLUSTER_ACTION,
    WRITE_TOPIC,
    WRITE_TRANSACTIONAL_ID,
)
from barnabas.coordination.steps import await_each, checkpoint, map_in_turns
from barnabas.coordination.transactions.errors import told
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.storage.topic_partition import TopicPartition

FIRST_BROKER_VERSION: Final = 4

PartitionErrors = Mapping[TopicPartition, ErrorCode]


@handles(AddPartitionsToTxnRequest, needs=asks(WRITE_TRANSACTIONAL_ID, WRITE_TOPIC, CLUSTER_ACTION))
async def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> AddPartitionsToTxnResponse:
    if context.version >= FIRST_BROKER_VERSION:
        context.require(CLUSTER_ACTION)
    else:
        context.require(WRITE_TRANSACTIONAL_ID, request.v3_and_below_transactional_id)
    transactions = _transactions(request, context.version)
    # An id that is named twice gets what was named last, and is answered as if it was the first.
    listed = await await_each(_partitions, transactions)
    partitions = {
        each.transactional_id: found for each, found in zip(transactions, listed, strict=True)
    }
    asked = {each.transactional_id: each for each in reversed(transactions)}
    results = []
    async for each in context.broker.turns.between(transactions):
        name = each.transactional_id
        added = await _add(each, partitions[name], asked[name], context)
        results.append(AddPartitionsToTxnResult(transactional_id=name, topic_results=added))
    if context.version >= FIRST_BROKER_VERSION:
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)


def _transactions(
    request: AddPartitionsToTxnRequest, version: int
) -> list[AddPartitionsToTxnTransaction]:
    if version >= FIRST_BROKER_VERSION:
        return request.transactions
    return [
        AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
    ]


async def _add(
    transaction: AddPartitionsToTxnTransaction,
    partitions: Set[TopicPartition],
    asked: AddPartitionsToTxnTransaction,
    context: RequestContext,
) -> list[AddPartitionsToTxnTopicResult]:
    refused = await _refused(partitions, context)
    if refused:
        untried = ErrorCode.OPERATION_NOT_ATTEMPTED
        codes = ((where, refused.get(where, untried)) for where in partitions)
        return await _grouped(codes)
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    if transaction.verify_only:
        errors = _verify(transaction.transactional_id, producer, partitions, context)
        return await _grouped(errors.items())
    code = ErrorCode.NONE
    try:
        await context.broker.transactions.add_partitions(
            transaction.transactional_id,
            producer,
            partitions,
            client_version=2 if context.version >= FIRST_BROKER_VERSION else 0,
        )
    except KafkaError as error:
        code = told(error, context.version)
    return await _as_asked(asked, code)


async def _refused(
    partitions: Iterable[TopicPartition], context: RequestContext
) -> PartitionErrors:
    """
    The partitions that cannot be part of the transaction: those that do not exist, and of a client
    those of topics that it may not write to. Internal topics no client may.
    """
    from_client = context.version < FIRST_BROKER_VERSION
    may_write: dict[str, bool] = {}
    refused: dict[TopicPartition, ErrorCode] = {}
    for where in partitions:
        await checkpoint()
        topic = where.topic
        if from_client and topic not in may_write:
            may_write[topic] = not is_internal(topic) and context.allows(WRITE_TOPIC, topic)
        if from_client and not may_write[topic]:
            refused[where] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif not context.broker.partitions.knows(*where):
            refused[where] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused


def _verify(
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: Set[TopicPartition],
    context: RequestContext,
) -> PartitionErrors:
    try:
        return context.broker.transactions.verify_partitions(transactional_id, producer, partitions)
    except KafkaError as error:
        return dict.fromkeys(partitions, told(error, context.version))


async def _partitions(transaction: AddPartitionsToTxnTransaction) -> Set[TopicPartition]:
    """
    Each partition once, in the order of the request.
    """
    partitions: dict[TopicPartition, None] = {}
    for topic in transaction.topics:
        await checkpoint()
        for index in topic.partitions:
            await checkpoint()
            partitions[TopicPartition(topic.name, index)] = None
    return partitions.keys()


async def _as_asked(
    transaction: AddPartitionsToTxnTransaction, code: ErrorCode
) -> list[AddPartitionsToTxnTopicResult]:
    """
    One error for all: topic by topic as in the request, be they named twice or without partitions.
    """

    async def answer(topic: AddPartitionsToTxnTopic) -> AddPartitionsToTxnTopicResult:
        results = await map_in_turns(
            lambda index: AddPartitionsToTxnPartitionResult(
                partition_index=index, partition_error_code=code
            ),
            topic.partitions,
        )
        return AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=results)

    return await await_each(answer, transaction.topics)


async def _grouped(
    codes: Iterable[tuple[TopicPartition, ErrorCode]],
) -> list[AddPartitionsToTxnTopicResult]:
    """
    Of each partition its own error.
    """
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (topic, index), code in codes:
        await checkpoint()
        topics.setdefault(topic, []).append(
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        )
    return await map_in_turns(
        lambda item: AddPartitionsToTxnTopicResult(name=item[0], results_by_partition=item[1]),
        topics.items(),
    )
