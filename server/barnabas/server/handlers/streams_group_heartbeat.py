"""
StreamsGroupHeartbeat: a member of a streams group joins, stays or leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.groups.streams.statuses import with_detail
from barnabas.coordination.groups.streams.topology import check_names, topics_of
from barnabas.coordination.security.acl.bindings import CLUSTER_NAME
from barnabas.coordination.security.acl.permissions import (
    CREATE_CLUSTER,
    CREATE_TOPIC,
    DESCRIBE_TOPIC,
    READ_GROUP,
)
from barnabas.coordination.steps import map_in_turns
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics import CreatableTopic
from barnabas.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from barnabas.server.handlers.group_protocols import caller_of, check_protocol
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

ALWAYS_STRICT: Final = 0
HEARTBEATS_WITH_FAILURES: Final = 2
"""
How many heartbeats of a member are told why a topic could not be created.
"""
MOST_FAILURES_TOLD: Final = 3


@handles(
    StreamsGroupHeartbeatRequest,
    needs=asks(READ_GROUP, DESCRIBE_TOPIC, CREATE_CLUSTER, CREATE_TOPIC),
)
async def streams_group_heartbeat(
    request: StreamsGroupHeartbeatRequest, context: RequestContext
) -> StreamsGroupHeartbeatResponse:
    """
    Hand the heartbeat to the coordinator, and create the internal topics that it finds missing. A
    program may use only topics that its client may describe; those that are created are the
    client's.
    """
    check_protocol(context, GroupType.STREAMS)
    context.require(READ_GROUP, request.group_id)
    if request.topology is not None:
        names = await topics_of(request.topology)
        await check_names(names)
        is_allowed = await map_in_turns(partial(context.allows, DESCRIBE_TOPIC), names)
        if not all(is_allowed):
            return StreamsGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    def create_topics(
        missing: Mapping[str, CreatableTopic], response: StreamsGroupHeartbeatResponse
    ) -> StreamsGroupHeartbeatResponse:
        return _create_topics(missing, response, context)

    answer = context.broker.groups.streams_heartbeat(request, caller_of(context), create_topics)
    return await context.committed(answer)


def _create_topics(
    missing: Mapping[str, CreatableTopic],
    response: StreamsGroupHeartbeatResponse,
    context: RequestContext,
) -> StreamsGroupHeartbeatResponse:
    """
    The answer, after the creation of the missing topics has begun.
    """
    if not context.sees(CREATE_CLUSTER, CLUSTER_NAME):
        refused = [name for name in missing if not context.allows(CREATE_TOPIC, name)]
        if refused:
            names = ", ".join(refused)
            return with_detail(response, f"Unauthorized to CREATE on topics {names}.")
    creation = context.broker.streams_topics
    creation.begin(
        missing,
        context.charge(ALWAYS_STRICT, is_told=False),
        HEARTBEATS_WITH_FAILURES * response.heartbeat_interval_ms,
    )
    failures = [f"{name} ({why})" for name, why in creation.failures(missing).items()]
    if not failures:
        return response
    told = ", ".join(failures[:MOST_FAILURES_TOLD])
    more = len(failures) - MOST_FAILURES_TOLD
    return with_detail(
        response, f"Creation failed: {told}{f' and {more} more' if more > 0 else ''}."
    )
