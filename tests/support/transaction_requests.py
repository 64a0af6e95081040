"""
Requests of transactions, in few words.

A producer is an id and an epoch, as a ``ProducerIdAndEpoch`` of the server is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.protocol.messages.write_txn_markers import WritableTxnMarker
from tests.support.build import api_request, build

ProducerIds: TypeAlias = tuple[int, int]
Indexes: TypeAlias = Mapping[str, Sequence[int]]
"""
Partitions by the names of their topics.
"""


def _producer(producer: ProducerIds) -> dict[str, int]:
    producer_id, epoch = producer
    return {"producer_id": producer_id, "producer_epoch": epoch}


def _topics(partitions: Indexes, indexes: str = "partitions") -> list[dict[str, Any]]:
    return [{"name": name, indexes: listed} for name, listed in partitions.items()]


def add_partitions_request(
    transactional_id: str, producer: ProducerIds, partitions: Indexes
) -> Message:
    """
    Add partitions to a transaction, as clients do; up to v3.
    """
    producer_id, epoch = producer
    return api_request(
        "add_partitions_to_txn",
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=_topics(partitions),
    )


def add_as_broker_request(
    producers: Sequence[tuple[str, ProducerIds]], *partitions: Indexes, verify: bool = False
) -> Message:
    """
    Add partitions to transactions of several transactional ids, as brokers do; from v4 on.

    Args:
        partitions: those of each transaction, or once the same for all.
    """
    each = partitions * len(producers) if len(partitions) == 1 else partitions
    return api_request(
        "add_partitions_to_txn",
        transactions=[
            {
                "transactional_id": transactional_id,
                **_producer(producer),
                "verify_only": verify,
                "topics": _topics(indexes),
            }
            for (transactional_id, producer), indexes in zip(producers, each, strict=True)
        ],
    )


def add_offsets_request(transactional_id: str, producer: ProducerIds, group_id: str) -> Message:
    """
    Add the offsets of a group to a transaction.
    """
    return api_request(
        "add_offsets_to_txn",
        transactional_id=transactional_id,
        **_producer(producer),
        group_id=group_id,
    )


def end_request(transactional_id: str, producer: ProducerIds, *, commit: bool) -> Message:
    """
    End a transaction.
    """
    return api_request(
        "end_txn", transactional_id=transactional_id, **_producer(producer), committed=commit
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
    topics = [
        {
            "name": name,
            "partitions": [
                {"partition_index": index, "committed_offset": offset, "committed_metadata": None}
                for index, offset in partitions.items()
            ],
        }
        for name, partitions in offsets.items()
    ]
    return build(
        TxnOffsetCommitRequest,
        transactional_id=transactional_id,
        group_id=group_id,
        **_producer(producer),
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
    return build(
        WritableTxnMarker,
        **_producer(producer),
        transaction_result=commit,
        topics=_topics(partitions, "partition_indexes"),
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )


def markers_request(*markers: WritableTxnMarker) -> Message:
    """
    Write markers.
    """
    return api_request("write_txn_markers", markers=markers)
