"""
Who a producer is for a broker, and the partitions of its transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.client.cluster import TRANSACTION, Cluster
from barnabas.pipeline.errors import BrokerError
from barnabas.pipeline.writing.options import WriteOptions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.storage.topic_partition import TopicPartition


class Identity(NamedTuple):
    """
    What a broker knows a producer by.
    """

    producer_id: int = -1
    epoch: int = -1
    transactional_id: str | None = None


NOBODY: Final = Identity()


def idempotent(cluster: Cluster, options: WriteOptions) -> Identity:
    """
    A producer id of its own, unless the options want none.
    """
    return initialized(cluster, None, options) if options.idempotent else NOBODY


def initialized(cluster: Cluster, transactional_id: str | None, options: WriteOptions) -> Identity:
    """
    The identity that a producer has from now on. What an earlier one with the same transactional
    id has left open is aborted, and it can do nothing any more.

    Raises:
        BrokerError, Disconnected: the cluster does not give one.
    """
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=options.transaction_timeout_ms
    )

    def attempt() -> Identity:
        if transactional_id is None:
            connection = cluster.any()
        else:
            connection = cluster.coordinator(TRANSACTION, transactional_id)
        answer = connection.ask(request)
        if answer.error_code:
            raise BrokerError.of(answer.error_code, f"No producer id for {transactional_id}")
        return Identity(answer.producer_id, answer.producer_epoch, transactional_id)

    return cluster.retried(attempt)


def join_transaction(
    cluster: Cluster, identity: Identity, partitions: Iterable[TopicPartition]
) -> None:
    """
    Have the coordinator know that the transaction has records in these partitions.

    Raises:
        BrokerError, Disconnected: it does not.
    """
    assert identity.transactional_id is not None
    name = identity.transactional_id
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=numbers)
            for topic, numbers in topics.items()
        ],
    )

    def attempt() -> None:
        answer = cluster.coordinator(TRANSACTION, name).ask(request)
        codes = [
            each.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for each in topic.results_by_partition
        ]
        for code in codes:
            if code not in (ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED):
                raise BrokerError.of(code, f"The transaction {name} cannot go on")

    cluster.retried(attempt)
