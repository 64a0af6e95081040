"""
ShareAcknowledge: what a member did with records that it has acquired.
"""

from __future__ import annotations

from functools import cache, partial

from barnabas.coordination.security.acl.permissions import READ_GROUP, READ_TOPIC
from barnabas.coordination.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, TopicIdPartition
from barnabas.coordination.steps import ENTRIES_PER_STEP, checkpoint
from barnabas.protocol.errors import ErrorCode, InvalidShareSessionEpoch
from barnabas.protocol.messages.share_acknowledge import (
    NO_LEADER,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from barnabas.server.handlers.share_requests import (
    FIRST_RENEW_VERSION,
    by_topic,
    session_key,
)
from barnabas.server.partitions.partition import NO_EPOCH, NOT_LEADER
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.server.share.request_acknowledgements import PendingAcknowledgements, acknowledge


@handles(ShareAcknowledgeRequest, needs=asks(READ_GROUP, READ_TOPIC))
async def share_acknowledge(
    request: ShareAcknowledgeRequest, context: RequestContext
) -> ShareAcknowledgeResponse:
    broker, key = context.broker, session_key(request, context)
    if request.share_session_epoch == INITIAL_EPOCH:
        raise InvalidShareSessionEpoch
    broker.share_partitions.sessions.use(key, request.share_session_epoch)

    may_read = cache(partial(context.allows, READ_TOPIC))
    pending = PendingAcknowledgements()
    await acknowledge(
        request,
        pending,
        broker.share_partitions,
        broker.partitions,
        may_read,
        has_renew=context.version >= FIRST_RENEW_VERSION,
    )
    if request.share_session_epoch != FINAL_EPOCH:
        context.effects_done()
    await pending.settled()
    if request.share_session_epoch == FINAL_EPOCH:
        broker.share_partitions.end_session(key)
    return await _response(request, context, pending)


async def _response(
    request: ShareAcknowledgeRequest, context: RequestContext, pending: PendingAcknowledgements
) -> ShareAcknowledgeResponse:
    broker = context.broker
    assert request.group_id is not None
    is_not_leader = False
    results: dict[TopicIdPartition, PartitionData] = {}
    for number, (where, (code, message)) in enumerate(pending.results.items(), 1):
        if number % ENTRIES_PER_STEP == 0:
            await checkpoint()
        leader = NO_LEADER
        if code:
            broker.metrics.count_error("ShareAcknowledge", ErrorCode(code))
        if code in NOT_LEADER:
            is_not_leader = True
            leader = LeaderIdAndEpoch(leader_id=broker.node_id, leader_epoch=NO_EPOCH)
        results[where] = PartitionData(
            partition_index=where[1],
            error_code=code,
            error_message=message,
            current_leader=leader,
        )
    listener = context.client.listener
    endpoint = NodeEndpoint(
        node_id=broker.node_id,
        host=listener.advertised_host,
        port=listener.advertised_port,
        rack=broker.config.broker_rack,
    )
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=broker.share_partitions.settings(
            request.group_id
        ).record_lock_duration_ms,
        responses=await by_topic(results, ShareAcknowledgeTopicResponse),
        node_endpoints=[endpoint] if is_not_leader else [],
    )
