"""
The APIs of the share coordinator: InitializeShareGroupState, ReadShareGroupState,
WriteShareGroupState, DeleteShareGroupState and ReadShareGroupStateSummary.

Brokers send them to each other. This one asks its own coordinator without them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID

from barnabas.protocol.errors import KafkaError
from barnabas.protocol.internal_topics.share_state_records import StateBatch
from barnabas.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from barnabas.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
)
from barnabas.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
)
from barnabas.protocol.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
)
from barnabas.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)
from barnabas.protocol.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.security.acl.permissions import CLUSTER_ACTION
from barnabas.server.share.coordinator.state import StateToWrite
from barnabas.server.share.keys import SharePartitionKey

P = TypeVar("P")

_NEVER_INITIALIZED: Final = {"start_offset": -1, "delivery_complete_count": -1}


@handles(InitializeShareGroupStateRequest, needs=gate(CLUSTER_ACTION))
async def initialize_state(
    request: InitializeShareGroupStateRequest, context: RequestContext
) -> InitializeShareGroupStateResponse:
    async def initialize(
        key: SharePartitionKey, data: initialize_share_group_state.PartitionData
    ) -> dict[str, Any]:
        await context.broker.shares.initialize(key, data.state_epoch, data.start_offset)
        return {}

    # Kafka looks at the partitions of a topic here only for what is in them.
    result = initialize_share_group_state.PartitionResult
    results = await _each(request, context, initialize, result, may_be_empty=True)
    return InitializeShareGroupStateResponse(
        results=[InitializeStateResult(topic_id=each, partitions=those) for each, those in results]
    )


@handles(ReadShareGroupStateRequest, needs=gate(CLUSTER_ACTION))
async def read_state(
    request: ReadShareGroupStateRequest, context: RequestContext
) -> ReadShareGroupStateResponse:
    async def read(
        key: SharePartitionKey, data: read_share_group_state.PartitionData
    ) -> dict[str, Any]:
        state = await context.broker.shares.read(key, data.leader_epoch)
        return {
            "state_epoch": state.state_epoch,
            "start_offset": state.start_offset,
            "state_batches": [
                read_share_group_state.StateBatch(
                    first_offset=each.first_offset,
                    last_offset=each.last_offset,
                    delivery_state=each.delivery_state,
                    delivery_count=each.delivery_count,
                )
                for each in state.state_batches
            ],
        }

    def result(**values: Any) -> read_share_group_state.PartitionResult:
        return read_share_group_state.PartitionResult(**{"state_batches": [], **values})

    results = await _each(request, context, read, result)
    return ReadShareGroupStateResponse(
        results=[ReadStateResult(topic_id=each, partitions=those) for each, those in results]
    )


@handles(WriteShareGroupStateRequest, needs=gate(CLUSTER_ACTION))
async def write_state(
    request: WriteShareGroupStateRequest, context: RequestContext
) -> WriteShareGroupStateResponse:
    async def write(
        key: SharePartitionKey, data: write_share_group_state.PartitionData
    ) -> dict[str, Any]:
        state = StateToWrite(
            state_epoch=data.state_epoch,
            leader_epoch=data.leader_epoch,
            start_offset=data.start_offset,
            delivery_complete_count=data.delivery_complete_count,
            batches=[
                StateBatch(
                    first_offset=each.first_offset,
                    last_offset=each.last_offset,
                    delivery_state=each.delivery_state,
                    delivery_count=each.delivery_count,
                )
                for each in data.state_batches
            ],
        )
        await context.broker.shares.write(key, state)
        return {}

    results = await _each(request, context, write, write_share_group_state.PartitionResult)
    return WriteShareGroupStateResponse(
        results=[WriteStateResult(topic_id=each, partitions=those) for each, those in results]
    )


@handles(DeleteShareGroupStateRequest, needs=gate(CLUSTER_ACTION))
async def delete_state(
    request: DeleteShareGroupStateRequest, context: RequestContext
) -> DeleteShareGroupStateResponse:
    async def delete(
        key: SharePartitionKey, _: delete_share_group_state.PartitionData
    ) -> dict[str, Any]:
        await context.broker.shares.delete(key)
        return {}

    results = await _each(request, context, delete, delete_share_group_state.PartitionResult)
    return DeleteShareGroupStateResponse(
        results=[DeleteStateResult(topic_id=each, partitions=those) for each, those in results]
    )


@handles(ReadShareGroupStateSummaryRequest, needs=gate(CLUSTER_ACTION))
async def read_state_summary(
    request: ReadShareGroupStateSummaryRequest, context: RequestContext
) -> ReadShareGroupStateSummaryResponse:
    async def summary(
        key: SharePartitionKey, _: read_share_group_state_summary.PartitionData
    ) -> dict[str, Any]:
        state = await context.broker.shares.summary(key)
        if state is None:
            return _NEVER_INITIALIZED
        return {
            "state_epoch": state.state_epoch,
            "leader_epoch": state.leader_epoch,
            "start_offset": state.start_offset,
            "delivery_complete_count": state.delivery_complete_count,
        }

    result = read_share_group_state_summary.PartitionResult
    results = await _each(request, context, summary, result)
    return ReadShareGroupStateSummaryResponse(
        results=[ReadStateSummaryResult(topic_id=each, partitions=those) for each, those in results]
    )


async def _each(
    request: Any,
    context: RequestContext,
    ask: Callable[[SharePartitionKey, Any], Awaitable[dict[str, Any]]],
    result: Callable[..., P],
    *,
    may_be_empty: bool = False,
) -> Sequence[tuple[UUID, list[P]]]:
    """
    The results of *ask* for each partition of a request, by topics. A request without a group, or
    with a topic without partitions, has none.
    """
    if not request.group_id:
        return []
    if not may_be_empty and not all(topic.partitions for topic in request.topics):
        return []
    topics: dict[UUID, list[P]] = {}
    async for topic in context.broker.turns.between(request.topics):
        results = topics.setdefault(topic.topic_id, [])
        async for data in context.broker.turns.between(topic.partitions):
            key = SharePartitionKey(request.group_id, topic.topic_id, data.partition)
            try:
                values = await ask(key, data)
            except KafkaError as error:
                text = str(error) or error.code.sentence
                values = {"error_code": error.code, "error_message": text}
            results.append(result(partition=data.partition, **values))
    return list(topics.items())
