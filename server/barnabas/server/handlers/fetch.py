"""
Fetch: read batches, or wait for them.

A fetch is answered at once when it has enough bytes, may not wait, or has to tell of an error;
otherwise it waits until enough bytes were appended, its time is up, or another request stands
behind it on its connection. The rules are those of Kafka's ``ReplicaManager.fetchMessages``.

The request's context (``fetch/contexts.py``), which may be a session, says which partitions the
request means, and which of them the response has.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.coordination.security.acl.bindings import CLUSTER_NAME
from barnabas.coordination.security.acl.permissions import CLUSTER_ACTION, READ_TOPIC
from barnabas.coordination.steps import ENTRIES_PER_STEP, checkpoint
from barnabas.protocol.hot_messages.fetch import fetch_response
from barnabas.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
)
from barnabas.server.fetch.cached_partition import (
    NOBODY,
    CachedPartition,
    by_topic,
    locate,
    put_erroneous_last,
    replica_id_of,
)
from barnabas.server.fetch.contexts import SESSION_ERRORS, FetchContext, context_of, refusal
from barnabas.server.fetch.delayed import DelayedFetch
from barnabas.server.fetch.reader import FetchPlan, LogReadResult, plan_of
from barnabas.server.partitions.partition import NO_EPOCH, NOT_LEADER
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.storage.fs.interface import WouldBlock

if TYPE_CHECKING:
    from barnabas.server.requests.meter import Meter

FIRST_LEADER_VERSION: Final = 16


@handles(FetchRequest, needs=asks(READ_TOPIC, CLUSTER_ACTION))
async def fetch(request: FetchRequest, context: RequestContext) -> FetchResponse:
    broker = context.broker
    replica_id = replica_id_of(request, context.version)
    try:
        asked = await context_of(
            request,
            context.version,
            broker.fetch_sessions,
            broker.clock,
            is_follower=replica_id > NOBODY,
        )
    except SESSION_ERRORS as error:
        broker.metrics.count_error("Fetch", error.code)
        return refusal(error.code)
    wanted = list(asked.partitions.values())
    is_open = broker.authorizer is None
    has_erroneous = await locate(wanted, broker.partitions, replica_id, are_allowed=is_open)
    if not is_open and await _forbid(wanted, context, replica_id):
        has_erroneous = True
    if has_erroneous:
        put_erroneous_last(wanted)
    plan = plan_of(
        request,
        wanted,
        broker.config.fetch_max_bytes,
        version=context.version,
        is_of_session=asked.is_of_session,
    )
    answer = _Answer(request, asked, plan, context)
    respond = answer.response
    meter = context.meter
    if meter is not None:
        if replica_id > NOBODY:
            meter.exempt()
        else:
            plan.limit(meter.most_fetched_bytes())
            respond = partial(answer.metered_response, meter)
    reading: LogReadResult | None
    try:
        reading = await plan.read(nowait=True)
    except WouldBlock:
        reading = None
    if reading is not None and plan.is_enough(reading):
        return await respond(reading)
    delayed = DelayedFetch(broker.fetches, plan)
    context.effects_done(delayed.hurry)
    return await respond(await delayed.reading(reading))


class _Answer:
    """
    The response of one request, made of what was read for it.
    """

    __slots__ = ("_asked", "_context", "_plan", "_request")

    def __init__(
        self, request: FetchRequest, asked: FetchContext, plan: FetchPlan, context: RequestContext
    ) -> None:
        self._request = request
        self._asked = asked
        self._plan = plan
        self._context = context

    async def response(self, reading: LogReadResult) -> FetchResponse:
        for code in reading.errors:
            self._context.broker.metrics.count_error("Fetch", code)
        for partition, size in reading.sources:
            partition.bytes_out += size
        response = await self._asked.response(self._plan.wanted, reading.partitions)
        if self._plan.version >= FIRST_LEADER_VERSION and any(
            code in NOT_LEADER for code in reading.errors
        ):
            self._name_leaders(reading)
            if replica_id_of(self._request, self._plan.version) == NOBODY:
                response.node_endpoints = [self._endpoint()]
        return response

    async def metered_response(self, meter: Meter, reading: LogReadResult) -> FetchResponse:
        """
        Likewise, unless the client has to wait: then it gets nothing, and nothing is remembered.
        """
        selected = await self._asked.selected(self._plan.wanted, reading.partitions)
        topics = await by_topic([each for each, _ in selected], [data for _, data in selected])
        throttle_ms = await meter.count_fetch(self._context, fetch_response(topics))
        if not throttle_ms:
            return await self.response(reading)
        nothing = self._asked.nothing()
        nothing.throttle_time_ms = throttle_ms
        return nothing

    def _name_leaders(self, reading: LogReadResult) -> None:
        """
        Name the leader to a client that asked the wrong broker or with an old epoch (KIP-951).
        """
        for wanted, data in zip(self._plan.wanted, reading.partitions, strict=True):
            if data.error_code in NOT_LEADER:
                found = self._context.broker.partitions.get(
                    wanted.topic or "", wanted.request.partition
                )
                data.current_leader = LeaderIdAndEpoch(
                    leader_id=self._context.broker.node_id,
                    leader_epoch=NO_EPOCH if found is None else found.leader_epoch,
                )

    def _endpoint(self) -> NodeEndpoint:
        listener = self._context.client.listener
        return NodeEndpoint(
            node_id=self._context.broker.node_id,
            host=listener.advertised_host,
            port=listener.advertised_port,
            rack=self._context.broker.config.broker_rack,
        )


async def _forbid(wanted: list[CachedPartition], context: RequestContext, replica_id: int) -> bool:
    """
    Forbid the partitions that the client may not read, and return whether there are any.
    """
    is_follower = replica_id > NOBODY
    if is_follower and context.allows(CLUSTER_ACTION, CLUSTER_NAME):
        return False
    has_forbidden = False
    may_read: dict[str, bool] = {}
    for number, each in enumerate(wanted, 1):
        if number % ENTRIES_PER_STEP == 0:
            await checkpoint()
        topic = each.topic
        if is_follower:
            is_allowed = False
        elif topic is None:  # no topic has that id
            is_allowed = True
        elif topic in may_read:
            is_allowed = may_read[topic]
        else:
            is_allowed = may_read[topic] = context.allows(READ_TOPIC, topic)
        if not is_allowed:
            each.forbid()
            has_forbidden = True
        elif each.partition is not None:
            each.partition.fetches += 1
    return has_forbidden
