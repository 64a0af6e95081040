"""
AddPartitionsToTxn: a transaction is going to write to these partitions.

A transaction gets all of the partitions or none: where one does not exist, the others are told that
nothing was attempted. Up to version 3 it is a client that asks, for one transaction; from version 4
on brokers ask, for many, and may only want to know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from barnabas.server.cluster.topic_names import is_internal
from barnabas.server.context import Context
from barnabas.server.coordinators.changes import Producer
from barnabas.server.handlers import handles
from barnabas.server.handlers.transactional_errors import told
from barnabas.storage.log_files import TopicPartition

FIRST_BROKER_VERSION: Final = 4

Errors = Mapping[TopicPartition, ErrorCode]


def error_response(
    request: AddPartitionsToTxnRequest, version: int, code: ErrorCode, _message: str | None
) -> AddPartitionsToTxnResponse:
    """
    The same error for every partition, or for all of the request where there is room for that.
    """
    if version >= FIRST_BROKER_VERSION:
        return AddPartitionsToTxnResponse(error_code=code)
    [transaction] = _transactions(request, version)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_as_asked(transaction, code))


@handles(AddPartitionsToTxnRequest, error_response=error_response)
async def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, context: Context
) -> AddPartitionsToTxnResponse:
    transactions = _transactions(request, context.version)
    # An id that is named twice gets what was named last, and is answered as if it was the first.
    partitions = {each.transactional_id: _partitions(each) for each in transactions}
    asked = {each.transactional_id: each for each in reversed(transactions)}
    results = [
        AddPartitionsToTxnResult(
            transactional_id=each.transactional_id,
            topic_results=await _add(
                each, partitions[each.transactional_id], asked[each.transactional_id], context
            ),
        )
        for each in transactions
    ]
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
    partitions: set[TopicPartition],
    asked: AddPartitionsToTxnTransaction,
    context: Context,
) -> list[AddPartitionsToTxnTopicResult]:
    refused = _refused(partitions, context)
    if refused:
        untried = dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
        return _grouped({**untried, **refused})
    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    if transaction.verify_only:
        return _grouped(_verify(transaction.transactional_id, producer, partitions, context))
    code = ErrorCode.NONE
    try:
        await context.transactions.add_partitions(
            transaction.transactional_id,
            producer,
            partitions,
            client_version=2 if context.version >= FIRST_BROKER_VERSION else 0,
        )
    except KafkaError as error:
        code = told(error, context.version)
    return _as_asked(asked, code)


def _refused(partitions: Iterable[TopicPartition], context: Context) -> Errors:
    """
    The partitions that cannot be part of any transaction; clients may not write to internal topics.
    """
    from_client = context.version < FIRST_BROKER_VERSION
    refused: dict[TopicPartition, ErrorCode] = {}
    for where in partitions:
        if from_client and is_internal(where.topic):
            refused[where] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif not context.partitions.knows(*where):
            refused[where] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused


def _verify(
    transactional_id: str, producer: Producer, partitions: set[TopicPartition], context: Context
) -> Errors:
    try:
        return context.transactions.verify_partitions(transactional_id, producer, partitions)
    except KafkaError as error:
        return dict.fromkeys(partitions, told(error, context.version))


def _partitions(transaction: AddPartitionsToTxnTransaction) -> set[TopicPartition]:
    return {
        TopicPartition(topic.name, index)
        for topic in transaction.topics
        for index in topic.partitions
    }


def _as_asked(
    transaction: AddPartitionsToTxnTransaction, code: ErrorCode
) -> list[AddPartitionsToTxnTopicResult]:
    """
    One error for all: topic by topic as in the request, be they named twice or without partitions.
    """
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                for index in topic.partitions
            ],
        )
        for topic in transaction.topics
    ]


def _grouped(errors: Errors) -> list[AddPartitionsToTxnTopicResult]:
    """
    Of each partition its own error.
    """
    topics: defaultdict[str, list[AddPartitionsToTxnPartitionResult]] = defaultdict(list)
    for (topic, index), code in sorted(errors.items()):
        topics[topic].append(
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        )
    return [
        AddPartitionsToTxnTopicResult(name=name, results_by_partition=results)
        for name, results in topics.items()
    ]
