"""
ShareFetch: a member of a share group acquires records, and says what it did with others before.

The acknowledgements are done first. Then the fetch is answered as soon as it has acquired enough,
when its time is up, or when another request stands behind it on its connection. Its session says
which partitions it is about, and which of them the answer has.
"""

from __future__ import annotations

import asyncio
from functools import cache, partial
from typing import Any, Final, cast

from barnabas.coordination.security.acl.permissions import READ_GROUP, READ_TOPIC
from barnabas.coordination.share.sessions import TopicIdPartition
from barnabas.coordination.steps import ENTRIES_PER_STEP, checkpoint
from barnabas.protocol.codec.schema import Records
from barnabas.protocol.errors import ErrorCode, KafkaError, ShareSessionLimitReached
from barnabas.protocol.messages.share_fetch import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from barnabas.server.fetch.stored_records import StoredRecords
from barnabas.server.handlers.share_requests import (
    FIRST_RENEW_VERSION,
    by_topic,
    session_key,
)
from barnabas.server.partitions.partition import NO_EPOCH, NOT_LEADER
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import settle
from barnabas.server.share.contexts import ShareFetchContext, check_renewal, context_of
from barnabas.server.share.fetching import DelayedShareFetch, ShareFetched
from barnabas.server.share.request_acknowledgements import PendingAcknowledgements, acknowledge
from barnabas.server.share.served import ServedSharePartition

NO_RECORDS: Final = b""


@handles(ShareFetchRequest, needs=asks(READ_GROUP, READ_TOPIC))
async def share_fetch(request: ShareFetchRequest, context: RequestContext) -> ShareFetchResponse:
    key = session_key(request, context)
    if request.is_renew_ack:
        check_renewal(request)
    broker = context.broker
    try:
        asked = await context_of(
            request, key, broker.share_partitions.sessions, broker.partitions, context.client
        )
    except ShareSessionLimitReached as error:
        late: KafkaError = error.with_traceback(None)
    else:
        return await _fetch(asked, request, context)
    # A client that was answered at once would ask again at once.
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    end = partial(settle, future, None)
    timer = broker.clock.call_later(max(0, request.max_wait_ms) / 1000, end)
    context.effects_done(end)
    try:
        await future
    finally:
        timer.cancel()
    raise late


async def _fetch(
    asked: ShareFetchContext, request: ShareFetchRequest, context: RequestContext
) -> ShareFetchResponse:
    broker = context.broker
    may_read = cache(partial(context.allows, READ_TOPIC))
    pending = PendingAcknowledgements()
    if asked.has_acknowledgements:
        await acknowledge(
            request,
            pending,
            broker.share_partitions,
            broker.partitions,
            may_read,
            has_renew=context.version >= FIRST_RENEW_VERSION,
        )
    partitions: list[ServedSharePartition] = []
    if asked.acquires:
        partitions = await asked.locate(broker.share_partitions, broker.partitions, may_read)
    max_bytes = min(request.max_bytes, broker.config.fetch_max_bytes)
    meter = context.meter
    most = None if meter is None else meter.most_fetched_bytes()
    if most is not None:
        max_bytes = int(min(max_bytes, most))
    assert request.group_id is not None
    isolation = broker.share_partitions.settings(request.group_id).isolation
    answer = _Answer(request, context, asked, pending)
    fetch = DelayedShareFetch(
        broker.share_partitions.fetches, asked.plan(partitions, isolation, max_bytes)
    )
    context.effects_done(fetch.hurry)
    await pending.settled()
    return await fetch.response(answer.response)


class _Answer:
    """
    The response of one request, made of what was found for it.
    """

    __slots__ = ("_asked", "_context", "_pending", "_request")

    def __init__(
        self,
        request: ShareFetchRequest,
        context: RequestContext,
        asked: ShareFetchContext,
        pending: PendingAcknowledgements,
    ) -> None:
        self._request = request
        self._context = context
        self._asked = asked
        self._pending = pending

    async def response(self, found: list[ShareFetched]) -> ShareFetchResponse:
        asked, broker = self._asked, self._context.broker
        asked.check_epoch()
        results = await self._results(found)
        for number, (where, (code, message)) in enumerate(self._pending.results.items(), 1):
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
            data = results.get(where)
            if data is None:
                data = results[where] = _nothing(where)
            data.acknowledge_error_code = code
            data.acknowledge_error_message = message
            if code:
                broker.metrics.count_error("ShareFetch", ErrorCode(code))
        if asked.is_final:
            broker.share_partitions.end_session(asked.session.key)
        assert self._request.group_id is not None
        settings = broker.share_partitions.settings(self._request.group_id)
        response = ShareFetchResponse(
            acquisition_lock_timeout_ms=settings.record_lock_duration_ms,
            responses=await by_topic(results, ShareFetchableTopicResponse),
            node_endpoints=await self._endpoints(results),
        )
        meter = self._context.meter
        if meter is not None:
            response.throttle_time_ms = await meter.count_fetch(self._context, response)
        return response

    async def _results(self, found: list[ShareFetched]) -> dict[TopicIdPartition, PartitionData]:
        """
        What the answer has of each partition; of most, an incremental one has nothing.
        """
        count_error = self._context.broker.metrics.count_error
        results: dict[TopicIdPartition, PartitionData] = {}
        for number, (where, code) in enumerate(self._asked.errors.items(), 1):
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
            data = _nothing(where)
            data.error_code = code
            self._add(results, where, data)
        for number, each in enumerate(found, 1):
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
            key = each.share_partition.key
            where = (key.topic_id, key.partition)
            data = _nothing(where)
            if each.error is not None:
                code = each.error.code
                data.error_code = code
                data.error_message = str(each.error) or code.sentence
            elif each.records is not None:
                stored = StoredRecords(each.records, each.share_partition.partition)
                # The encoder asks for no more than the length, and passes on what it was given.
                data.records = cast(Records, stored)
                each.share_partition.partition.bytes_out += len(stored)
                each.share_partition.partition.fetches += 1
                data.acquired_records = list(each.acquired)
            self._add(results, where, data)
        for number, data in enumerate(results.values(), 1):
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
            if data.error_code:
                count_error("ShareFetch", ErrorCode(data.error_code))
        return results

    def _add(
        self,
        results: dict[TopicIdPartition, PartitionData],
        where: TopicIdPartition,
        data: PartitionData,
    ) -> None:
        has_records = len(cast("Any", data.records)) > 0
        if self._asked.must_respond(
            where, has_records=has_records, has_error=bool(data.error_code)
        ):
            results[where] = data

    async def _endpoints(
        self, results: dict[TopicIdPartition, PartitionData]
    ) -> list[NodeEndpoint]:
        """
        Name the leader to a client that was told to look for it (KIP-951).
        """
        broker = self._context.broker
        is_lost = False
        for number, data in enumerate(results.values(), 1):
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
            if data.error_code in NOT_LEADER:
                is_lost = True
                data.current_leader = LeaderIdAndEpoch(
                    leader_id=broker.node_id, leader_epoch=NO_EPOCH
                )
        listener = self._context.client.listener
        endpoint = NodeEndpoint(
            node_id=broker.node_id,
            host=listener.advertised_host,
            port=listener.advertised_port,
            rack=broker.config.broker_rack,
        )
        return [endpoint] if is_lost else []


def _nothing(where: TopicIdPartition) -> PartitionData:
    return PartitionData(partition_index=where[1], records=NO_RECORDS, acquired_records=[])
