"""
Answers to requests about offsets that have one error for all partitions.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from barnabas.coordination.steps import await_each, map_in_turns
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

GROUP_ERROR_SINCE: Final = 2
NO_OFFSET: Final = -1
NO_EPOCH: Final = -1
NO_METADATA: Final = ""


async def commit_error(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """
    The answer to an OffsetCommit that is refused as a whole.
    """

    async def refuse(topic: OffsetCommitRequestTopic) -> OffsetCommitResponseTopic:
        partitions = await map_in_turns(
            lambda each: OffsetCommitResponsePartition(
                partition_index=each.partition_index, error_code=error
            ),
            topic.partitions,
        )
        return OffsetCommitResponseTopic(
            name=topic.name, topic_id=topic.topic_id, partitions=partitions
        )

    return OffsetCommitResponse(topics=await await_each(refuse, request.topics))


async def transactional_commit_error(
    request: TxnOffsetCommitRequest, error: ErrorCode
) -> TxnOffsetCommitResponse:
    """
    The answer to a TxnOffsetCommit that is refused as a whole.
    """

    async def refuse(topic: TxnOffsetCommitRequestTopic) -> TxnOffsetCommitResponseTopic:
        partitions = await map_in_turns(
            lambda each: TxnOffsetCommitResponsePartition(
                partition_index=each.partition_index, error_code=error
            ),
            topic.partitions,
        )
        return TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions)

    return TxnOffsetCommitResponse(topics=await await_each(refuse, request.topics))


async def fetch_error(
    request: OffsetFetchRequestGroup, error: ErrorCode, version: int
) -> OffsetFetchResponseGroup:
    """
    The answer to an OffsetFetch that is refused as a whole; before v2 only partitions have errors.
    """
    if version >= GROUP_ERROR_SINCE:
        return OffsetFetchResponseGroup(group_id=request.group_id, topics=[], error_code=error)

    async def refuse(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
        partitions = await map_in_turns(partial(no_offset, error=error), topic.partition_indexes)
        return OffsetFetchResponseTopics(
            name=topic.name, topic_id=topic.topic_id, partitions=partitions
        )

    topics = await await_each(refuse, request.topics or ())
    return OffsetFetchResponseGroup(group_id=request.group_id, topics=topics, error_code=error)


def no_offset(
    partition: int, error: ErrorCode = ErrorCode.NONE, metadata: str | None = NO_METADATA
) -> OffsetFetchResponsePartitions:
    """
    A partition without a committed offset, or with an error.
    """
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=NO_EPOCH,
        metadata=metadata,
        error_code=error,
    )
