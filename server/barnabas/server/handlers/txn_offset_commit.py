"""
TxnOffsetCommit: how far a group has come, if the transaction is committed.

The coordinator of transactions has to know that the group is part of the transaction; from version
5 on it is told so here, where the producer has not done it (KIP-890).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from barnabas.coordination.cluster.topic_names import GROUP_METADATA_TOPIC
from barnabas.coordination.coordinator_runtime.errors import coordinator_error
from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.coordination.groups.offsets.answers import transactional_commit_error
from barnabas.coordination.security.acl.permissions import (
    READ_GROUP,
    READ_TOPIC,
    WRITE_TRANSACTIONAL_ID,
)
from barnabas.coordination.steps import checkpoint, map_in_turns
from barnabas.coordination.transactions.errors import TransactionProtocol
from barnabas.protocol.codec.schema import replace
from barnabas.protocol.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    InvalidGroupId,
    KafkaError,
    NotCoordinator,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.transactions.participation import join
from barnabas.storage.producers.entry import SENTINEL, VerificationGuard

ABORTABLE_SINCE: Final = 4
ADDING_SINCE: Final = 5
LOADING_SINCE: Final = 2
"""Producers of before cannot take COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""


@handles(TxnOffsetCommitRequest, needs=asks(WRITE_TRANSACTIONAL_ID, READ_GROUP, READ_TOPIC))
async def txn_offset_commit(
    request: TxnOffsetCommitRequest, context: RequestContext
) -> TxnOffsetCommitResponse:
    context.require(WRITE_TRANSACTIONAL_ID, request.transactional_id)
    context.require(READ_GROUP, request.group_id)
    topics, refused = await _known_part(request.topics, context)
    if not topics:
        return TxnOffsetCommitResponse(topics=await _merged([], refused))
    known = replace(request, topics=topics)
    try:
        joined = await _join(known, context)
    except KafkaError as error:
        code = coordinator_error(error.code)
        told = _told(code, context.version)
        answer = await transactional_commit_error(known, told)
    else:
        made = await context.broker.groups.commit_offsets_in_transaction(
            known, joined, context.version
        )
        answer = await made if isinstance(made, asyncio.Future) else made
    merged = await _merged(answer.topics, refused)
    return TxnOffsetCommitResponse(topics=merged)


async def _join(request: TxnOffsetCommitRequest, context: RequestContext) -> VerificationGuard:
    """
    See to it that the group's partition is part of the transaction.

    Returns:
        What the offsets are appended with.

    Raises:
        KafkaError: it is not, and cannot be.
    """
    protocol = TransactionProtocol(
        adds=context.version >= ADDING_SINCE, knows_abortable=context.version >= ABORTABLE_SINCE
    )
    if not (protocol.adds or context.broker.config.transaction_partition_verification_enable):
        return SENTINEL
    index = context.broker.groups.partition_for(request.group_id)
    if not request.group_id:
        raise InvalidGroupId
    partition = context.broker.partitions.get(GROUP_METADATA_TOPIC, index)
    if partition is None:
        raise NotCoordinator
    return await join(
        lambda: context.broker.transactions,
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        partition,
        protocol,
        clock=context.broker.clock,
    )


async def _known_part(
    topics: Iterable[TxnOffsetCommitRequestTopic], context: RequestContext
) -> tuple[list[TxnOffsetCommitRequestTopic], list[TxnOffsetCommitResponseTopic]]:
    """
    The partitions that exist, and the answers for those that do not, or whose topic the client may
    not read.
    """
    known, refused = [], []
    for topic in topics:
        await checkpoint()
        there, missing = [], []
        is_allowed = context.allows(READ_TOPIC, topic.name)
        error = (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if is_allowed
            else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        )
        for partition in topic.partitions:
            await checkpoint()
            index = partition.partition_index
            if is_allowed and context.broker.partitions.knows(topic.name, index):
                there.append(partition)
            else:
                missing.append(
                    TxnOffsetCommitResponsePartition(partition_index=index, error_code=error)
                )
        if there:
            known.append(TxnOffsetCommitRequestTopic(name=topic.name, partitions=there))
        if missing or not is_allowed or topic.name not in context.broker.topics:
            refused.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=missing))
    return known, refused


async def _merged(
    answered: Iterable[TxnOffsetCommitResponseTopic],
    refused: Iterable[TxnOffsetCommitResponseTopic],
) -> list[TxnOffsetCommitResponseTopic]:
    """
    All answers, each topic once.
    """
    topics: dict[str, list[TxnOffsetCommitResponsePartition]] = {}
    for topic in (*refused, *answered):
        await checkpoint()
        topics.setdefault(topic.name, []).extend(topic.partitions)
    return await map_in_turns(
        lambda item: TxnOffsetCommitResponseTopic(name=item[0], partitions=item[1]),
        topics.items(),
    )


def _told(code: ErrorCode, version: int) -> ErrorCode:
    if code is CoordinatorLoadInProgress.code and version < LOADING_SINCE:
        return CoordinatorNotAvailable.code
    return code
