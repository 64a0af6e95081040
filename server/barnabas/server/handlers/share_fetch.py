"""
ShareFetch: a member of a share group acquires records, and says what it did with others before.

The acknowledgements are done first. Then the fetch is answered as soon as it has acquired enough,
when its time is up, or when another request stands behind it on its connection. Its session says
which partitions it is about, and which of them the answer has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final, cast

from barnabas.protocol.codec.schema import Records
from barnabas.protocol.errors import (
    ErrorCode,
    InvalidRequest,
    InvalidShareSessionEpoch,
    KafkaError,
    ShareSessionLimitReached,
    UnknownServerError,
)
from barnabas.protocol.messages.share_fetch import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from barnabas.server.fetch.stored_records import StoredRecords
from barnabas.server.handlers.share_acknowledging import (
    PendingAcknowledgements,
    acknowledge,
    by_topic,
    session_key,
)
from barnabas.server.partitions.partition import NO_EPOCH
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import ENTRIES_PER_STEP, checkpoint, settle
from barnabas.server.security.acl.permissions import READ_GROUP, READ_TOPIC
from barnabas.server.share.acquiring import BATCH_OPTIMIZED, RECORD_LIMIT
from barnabas.server.share.fetching import DelayedShareFetch, ShareFetched, ShareFetchPlan
from barnabas.server.share.partition import SharePartition
from barnabas.server.share.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    CachedSharePartition,
    ShareSession,
    ShareSessionKey,
    TopicIdPartition,
    next_epoch,
)

NO_RECORDS: Final = b""
NOT_LEADER: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)

MayRead = Callable[[str], bool]


@handles(ShareFetchRequest, needs=asks(READ_GROUP, READ_TOPIC))
async def share_fetch(request: ShareFetchRequest, context: RequestContext) -> ShareFetchResponse:
    key = session_key(request, context)
    if request.is_renew_ack:
        _check_renewal(request)
    try:
        session = await _session(key, request, context)
    except ShareSessionLimitReached as error:
        late: KafkaError = error.with_traceback(None)
    else:
        return await _fetch(session, request, context)
    # A client that was answered at once would ask again at once.
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    end = partial(settle, future, None)
    timer = context.broker.clock.call_later(max(0, request.max_wait_ms) / 1000, end)
    context.effects_done(end)
    try:
        await future
    finally:
        timer.cancel()
    raise late


async def _fetch(
    session: ShareSession, request: ShareFetchRequest, context: RequestContext
) -> ShareFetchResponse:
    may_read = cache(partial(context.allows, READ_TOPIC))
    pending = PendingAcknowledgements()
    if request.share_session_epoch != INITIAL_EPOCH and _acknowledges(request):
        await acknowledge(request, context, may_read, pending)
    errors: dict[TopicIdPartition, ErrorCode] = {}
    partitions: list[SharePartition] = []
    if request.share_session_epoch != FINAL_EPOCH and not request.is_renew_ack:
        partitions = await _locate(session, request, context, may_read, errors)
    answer = _Answer(request, context, session, pending, errors)
    fetches = context.broker.share_partitions.fetches
    fetch = DelayedShareFetch(fetches, _plan(request, context, partitions))
    context.effects_done(fetch.hurry)
    await pending.settled()
    return await fetch.response(answer.response)


def _check_renewal(request: ShareFetchRequest) -> None:
    """
    A request that renews acquisitions waits for nothing and fetches nothing (KIP-1222).
    """
    wrong = [
        name
        for name in ("max_bytes", "min_bytes", "max_records", "max_wait_ms")
        if getattr(request, name)
    ]
    if wrong:
        raise InvalidRequest(f"{', '.join(wrong)} must be 0 in a request that renews")


def _acknowledges(request: ShareFetchRequest) -> bool:
    return any(
        partition.acknowledgement_batches
        for topic in request.topics
        for partition in topic.partitions
    )


async def _session(
    key: ShareSessionKey, request: ShareFetchRequest, context: RequestContext
) -> ShareSession:
    """
    The session of a request, begun or updated by it.

    Raises:
        InvalidRequest, ShareSessionLimitReached: no session can be begun so.
        ShareSessionNotFound, InvalidShareSessionEpoch: it is not what the client thinks.
    """
    sessions = context.broker.share_partitions.sessions
    epoch = request.share_session_epoch
    if epoch == FINAL_EPOCH:
        return sessions.use(key, epoch)
    asked: dict[TopicIdPartition, CachedSharePartition] = {}
    is_first = epoch == INITIAL_EPOCH
    for topic in request.topics:
        await checkpoint()
        name = context.broker.partitions.name_of(topic.topic_id)
        for number, partition in enumerate(topic.partitions, 1):
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
            where = (topic.topic_id, partition.partition_index)
            asked[where] = CachedSharePartition(name, is_news=not is_first)
    if is_first:
        return sessions.begin(
            key, asked, context.client, has_acknowledgements=_acknowledges(request)
        )
    session = sessions.use(key, epoch)
    forgotten = [
        (topic.topic_id, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    sessions.update(session, asked, forgotten)
    return session


async def _locate(
    session: ShareSession,
    request: ShareFetchRequest,
    context: RequestContext,
    may_read: MayRead,
    errors: dict[TopicIdPartition, ErrorCode],
) -> list[SharePartition]:
    """
    The share-partitions of a session, in the order in which they are read; the others go to
    *errors*.
    """
    assert request.group_id is not None
    manager, partitions = context.broker.share_partitions, context.broker.partitions
    found: list[SharePartition] = []
    for number, (where, cached) in enumerate(tuple(session.partitions.items()), 1):
        if number % ENTRIES_PER_STEP == 0:
            await checkpoint()
        name, index = cached.name(where[0], partitions.name_of), where[1]
        if name is None:
            errors[where] = ErrorCode.UNKNOWN_TOPIC_ID
        elif not may_read(name):
            errors[where] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif not partitions.knows(name, index):
            errors[where] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            try:
                partition = partitions.expect_by_id(*where)
            except KafkaError as error:
                errors[where] = error.code
            else:
                found.append(manager.get_or_load(request.group_id, partition))
    # Each of them is the first one now and then.
    at = max(0, request.share_session_epoch) % len(found) if found else 0
    return found[at:] + found[:at]


def _plan(
    request: ShareFetchRequest, context: RequestContext, partitions: list[SharePartition]
) -> ShareFetchPlan:
    """
    Raises:
        UnknownServerError: the mode of acquisition is unknown, and something is to be acquired.
    """
    assert request.group_id is not None
    assert request.member_id is not None
    if partitions and request.share_acquire_mode not in (BATCH_OPTIMIZED, RECORD_LIMIT):
        raise UnknownServerError(f"acquire mode {request.share_acquire_mode} is unknown")
    max_bytes = min(request.max_bytes, context.broker.config.fetch_max_bytes)
    meter = context.meter
    most = None if meter is None else meter.most_fetched_bytes()
    if most is not None:
        max_bytes = int(min(max_bytes, most))
    return ShareFetchPlan(
        partitions,
        request.member_id,
        isolation=context.broker.share_partitions.settings(request.group_id).isolation,
        max_wait_ms=request.max_wait_ms,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        max_records=request.max_records,
        batch_size=request.batch_size,
        is_record_limit=request.share_acquire_mode == RECORD_LIMIT,
    )


class _Answer:
    """
    The response of one request, made of what was found for it.
    """

    __slots__ = ("_context", "_errors", "_pending", "_request", "_session")

    def __init__(
        self,
        request: ShareFetchRequest,
        context: RequestContext,
        session: ShareSession,
        pending: PendingAcknowledgements,
        errors: dict[TopicIdPartition, ErrorCode],
    ) -> None:
        self._request = request
        self._context = context
        self._session = session
        self._pending = pending
        self._errors = errors

    async def response(self, found: list[ShareFetched]) -> ShareFetchResponse:
        epoch, session = self._request.share_session_epoch, self._session
        broker = self._context.broker
        if epoch not in (INITIAL_EPOCH, FINAL_EPOCH) and session.epoch != next_epoch(epoch):
            raise InvalidShareSessionEpoch
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
        if epoch == FINAL_EPOCH:
            broker.share_partitions.end_session(session.key)
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
        for number, (where, code) in enumerate(self._errors.items(), 1):
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
        session = self._session
        if self._request.share_session_epoch > INITIAL_EPOCH:
            cached = session.partitions.get(where)
            has_records = len(cast("Any", data.records)) > 0
            if cached is not None and not cached.must_respond(
                has_records=has_records, has_error=bool(data.error_code)
            ):
                return
            if has_records:
                session.put_last(where)
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
