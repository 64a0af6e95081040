"""
The APIs of the share coordinator: InitializeShareGroupState, ReadShareGroupState,
WriteShareGroupState, DeleteShareGroupState and ReadShareGroupStateSummary.

Brokers send them to each other. This one asks its own coordinator without them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

from barnabas.coordination.security.acl.permissions import CLUSTER_ACTION
from barnabas.coordination.share.coordinator.state import StateToWrite
from barnabas.coordination.share.keys import SharePartitionKey
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

T = TypeVar("T")
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

    # Kafka looks at the partitions of a topic here only for what is in them: a topic without any is
    # not answered.
    result = initialize_share_group_state.PartitionResult
    outcome = _Outcome(InitializeStateResult, result)
    await _each(request, context, initialize, outcome, may_be_empty=True)
    return InitializeShareGroupStateResponse(results=outcome.topics)


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

    outcome = _Outcome(ReadStateResult, result)
    await _each(request, context, read, outcome)
    return ReadShareGroupStateResponse(results=outcome.topics)


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
                async for each in context.broker.turns.between(data.state_batches)
            ],
        )
        await context.broker.shares.write(key, state)
        return {}

    outcome = _Outcome(WriteStateResult, write_share_group_state.PartitionResult)
    await _each(request, context, write, outcome)
    return WriteShareGroupStateResponse(results=outcome.topics)


@handles(DeleteShareGroupStateRequest, needs=gate(CLUSTER_ACTION))
async def delete_state(
    request: DeleteShareGroupStateRequest, context: RequestContext
) -> DeleteShareGroupStateResponse:
    async def delete(
        key: SharePartitionKey, _: delete_share_group_state.PartitionData
    ) -> dict[str, Any]:
        await context.broker.shares.delete(key)
        return {}

    outcome = _Outcome(DeleteStateResult, delete_share_group_state.PartitionResult)
    await _each(request, context, delete, outcome)
    return DeleteShareGroupStateResponse(results=outcome.topics)


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
    outcome = _Outcome(ReadStateSummaryResult, result)
    await _each(request, context, summary, outcome)
    return ReadShareGroupStateSummaryResponse(results=outcome.topics)


class _Outcome(Generic[T, P]):
    """
    The results of a request by topics, in the order in which it names them first.
    """

    def __init__(self, topic_result: Callable[..., T], result: Callable[..., P]) -> None:
        self.topics: list[T] = []
        self._topic_result = topic_result
        self._result = result
        self._partitions: dict[UUID, list[P]] = {}

    def of_topic(self, topic_id: UUID) -> list[P]:
        """
        Where the results of the partitions of a topic belong.
        """
        found = self._partitions.get(topic_id)
        if found is None:
            found = self._partitions[topic_id] = []
            self.topics.append(self._topic_result(topic_id=topic_id, partitions=found))
        return found

    def result(self, partition: int, values: dict[str, Any]) -> P:
        """
        The result of a partition.
        """
        return self._result(partition=partition, **values)


async def _each(
    request: Any,
    context: RequestContext,
    ask: Callable[[SharePartitionKey, Any], Awaitable[dict[str, Any]]],
    outcome: _Outcome[Any, Any],
    *,
    may_be_empty: bool = False,
) -> None:
    """
    Add the results of *ask* for each partition of a request to *outcome*. A request without a
    group, or with a topic without partitions, has none.
    """
    if not request.group_id:
        return
    if not may_be_empty and not all(topic.partitions for topic in request.topics):
        return
    async for topic in context.broker.turns.between(request.topics):
        async for data in context.broker.turns.between(topic.partitions):
            key = SharePartitionKey(request.group_id, topic.topic_id, data.partition)
            try:
                values = await ask(key, data)
            except KafkaError as error:
                text = str(error) or error.code.sentence
                values = {"error_code": error.code, "error_message": text}
            outcome.of_topic(topic.topic_id).append(outcome.result(data.partition, values))
