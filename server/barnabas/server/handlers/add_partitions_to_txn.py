"""
AddPartitionsToTxn: a transaction is going to write to these partitions.

A transaction gets all of the partitions or none: where one does not exist, the others are told that
nothing was attempted. Up to version 3 it is a client that asks, for one transaction; from version 4
on brokers ask, for many, and may only want to know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
    errors = dict.fromkeys(_partitions(transaction), code)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(transaction, errors))


@handles(AddPartitionsToTxnRequest, error_response=error_response)
async def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, context: Context
) -> AddPartitionsToTxnResponse:
    results = [
        AddPartitionsToTxnResult(
            transactional_id=transaction.transactional_id,
            topic_results=_results(transaction, await _add(transaction, context)),
        )
        for transaction in _transactions(request, context.version)
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


async def _add(transaction: AddPartitionsToTxnTransaction, context: Context) -> Errors:
    partitions = _partitions(transaction)
    unknown = {where for where in partitions if not context.partitions.knows(*where)}
    if unknown:
        return {
            where: (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if where in unknown
                else ErrorCode.OPERATION_NOT_ATTEMPTED
            )
            for where in partitions
        }
    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    coordinator = context.transactions
    try:
        if transaction.verify_only:
            return coordinator.verify_partitions(transaction.transactional_id, producer, partitions)
        await coordinator.add_partitions(
            transaction.transactional_id,
            producer,
            partitions,
            client_version=2 if context.version >= FIRST_BROKER_VERSION else 0,
        )
    except KafkaError as error:
        return dict.fromkeys(partitions, told(error, context.version))
    return dict.fromkeys(partitions, ErrorCode.NONE)


def _partitions(transaction: AddPartitionsToTxnTransaction) -> set[TopicPartition]:
    return {
        TopicPartition(topic.name, index)
        for topic in transaction.topics
        for index in topic.partitions
    }


def _results(
    transaction: AddPartitionsToTxnTransaction, errors: Errors
) -> list[AddPartitionsToTxnTopicResult]:
    def of_topic(topic: AddPartitionsToTxnTopic) -> list[AddPartitionsToTxnPartitionResult]:
        return [
            AddPartitionsToTxnPartitionResult(
                partition_index=index,
                partition_error_code=errors[TopicPartition(topic.name, index)],
            )
            for index in topic.partitions
        ]

    return [
        AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=of_topic(topic))
        for topic in transaction.topics
    ]
