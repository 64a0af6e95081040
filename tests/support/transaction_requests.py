"""
Requests of transactions, in few words.

A producer is an id and an epoch, as ``barnabas.server.coordinator_runtime.producer.Producer`` is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

ProducerIds: TypeAlias = tuple[int, int]
Indexes: TypeAlias = Mapping[str, Sequence[int]]
"""
Partitions by the names of their topics.
"""


def _topics(partitions: Indexes) -> list[AddPartitionsToTxnTopic]:
    return [
        AddPartitionsToTxnTopic(name=name, partitions=[*indexes])
        for name, indexes in partitions.items()
    ]


def add_partitions_request(
    transactional_id: str, producer: ProducerIds, partitions: Indexes
) -> AddPartitionsToTxnRequest:
    """
    Add partitions to a transaction, as clients do; up to v3.
    """
    producer_id, epoch = producer
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=_topics(partitions),
    )


def add_as_broker_request(
    producers: Sequence[tuple[str, ProducerIds]],
    *partitions: Indexes,
    verify: bool = False,
) -> AddPartitionsToTxnRequest:
    """
    Add partitions to transactions of several transactional ids, as brokers do; from v4 on.

    Args:
        partitions: those of each transaction, or once the same for all.
    """
    each = partitions * len(producers) if len(partitions) == 1 else partitions
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                verify_only=verify,
                topics=_topics(indexes),
            )
            for (transactional_id, (producer_id, epoch)), indexes in zip(
                producers, each, strict=True
            )
        ]
    )


def add_offsets_request(
    transactional_id: str, producer: ProducerIds, group_id: str
) -> AddOffsetsToTxnRequest:
    """
    Add the offsets of a group to a transaction.
    """
    producer_id, epoch = producer
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        group_id=group_id,
    )


def end_request(transactional_id: str, producer: ProducerIds, *, commit: bool) -> EndTxnRequest:
    """
    End a transaction.
    """
    producer_id, epoch = producer
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=commit,
    )


def commit_in_transaction_request(
    transactional_id: str,
    producer: ProducerIds,
    group_id: str,
    offsets: Mapping[str, Mapping[int, int]],
    **facts: Any,
) -> TxnOffsetCommitRequest:
    """
    Commit offsets in a transaction.

    Args:
        offsets: by topic and partition.
        facts: other fields, such as those of a member.
    """
    producer_id, epoch = producer
    topics = [
        TxnOffsetCommitRequestTopic(
            name=name,
            partitions=[
                TxnOffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offset, committed_metadata=None
                )
                for index, offset in partitions.items()
            ],
        )
        for name, partitions in offsets.items()
    ]
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=topics,
        **facts,
    )


def marker(
    producer: ProducerIds,
    partitions: Indexes,
    *,
    commit: bool,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> WritableTxnMarker:
    """
    The end of a producer's transaction in some partitions.
    """
    producer_id, epoch = producer
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=commit,
        topics=[
            WritableTxnMarkerTopic(name=name, partition_indexes=[*indexes])
            for name, indexes in partitions.items()
        ],
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )


def markers_request(*markers: WritableTxnMarker) -> WriteTxnMarkersRequest:
    """
    Write markers.
    """
    return WriteTxnMarkersRequest(markers=[*markers])
