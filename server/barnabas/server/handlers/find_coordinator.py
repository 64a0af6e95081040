"""
FindCoordinator: who coordinates a group, a transactional id, or the state of a share-partition. On
one node, always this one.

The first question for a group creates ``__consumer_offsets``, for a transactional id
``__transaction_state``, and for a share-partition ``__share_group_state``, as in Kafka, which
answers COORDINATOR_NOT_AVAILABLE until the topic is there. Here the answer waits for the topic, and
so do the answers to other clients: a coordinator that has not opened its partition yet would refuse
their requests, and some clients report that to their users.

Keys that the client may not describe, or that no share-partition has, are refused, and create no
topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Final

from barnabas.coordination.security.acl.bindings import CLUSTER_NAME
from barnabas.coordination.security.acl.permissions import (
    CLUSTER_ACTION,
    DESCRIBE_GROUP,
    DESCRIBE_TRANSACTIONAL_ID,
    Permission,
)
from barnabas.coordination.share.keys import parse_coordinator_key
from barnabas.coordination.steps import checkpoint, map_in_turns
from barnabas.protocol.errors import (
    ClusterAuthorizationFailed,
    CoordinatorNotAvailable,
    ErrorCode,
    InvalidRequest,
)
from barnabas.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.protocol.structs import NamedTuple
from barnabas.server.coordinators import COORDINATOR_TOPICS, CoordinatorType
from barnabas.server.requests.authorization import REFUSALS, asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles

NEEDED: Final[Mapping[int, Permission]] = {
    CoordinatorType.GROUP: DESCRIBE_GROUP,
    CoordinatorType.TRANSACTION: DESCRIBE_TRANSACTIONAL_ID,
}
"""What a client has to be allowed with keys of each type."""
FIRST_BATCHED_VERSION: Final = 4
FIRST_VERSION_OF_SHARES: Final = 6


class Found(NamedTuple):
    """
    Where the coordinator of a key is, or why there is none.
    """

    code: ErrorCode
    message: str | None = None
    node_id: int = -1
    host: str = ""
    port: int = -1


@handles(
    FindCoordinatorRequest, needs=asks(DESCRIBE_GROUP, DESCRIBE_TRANSACTIONAL_ID, CLUSTER_ACTION)
)
async def find_coordinator(
    request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse:
    if request.key_type == CoordinatorType.SHARE:
        if context.version < FIRST_VERSION_OF_SHARES:
            code = InvalidRequest.code
            invalid = Found(code, code.sentence if context.version < FIRST_BATCHED_VERSION else "")
            return await _response(request, context.version, lambda _: invalid)
        if request.coordinator_keys and not context.allows(CLUSTER_ACTION, CLUSTER_NAME):
            raise ClusterAuthorizationFailed
    if request.key_type not in COORDINATOR_TOPICS:
        raise InvalidRequest(f"Unknown coordinator type received: {request.key_type}")
    keys = [request.key] if context.version < FIRST_BATCHED_VERSION else request.coordinator_keys
    refused = await _refused(keys, request.key_type, context)
    all_refused = bool(refused) and refused.issuperset(keys)
    if not all_refused:
        await context.broker.coordinators.open_topic(request.key_type)
    return await _found(request, context, refused)


async def _refused(keys: Iterable[str], key_type: int, context: RequestContext) -> frozenset[str]:
    """
    The keys that the client may not describe, or that no share-partition has.
    """
    refused = set()
    if key_type == CoordinatorType.SHARE:
        for key in keys:
            await checkpoint()
            try:
                parse_coordinator_key(key)
            except InvalidRequest:
                refused.add(key)
        return frozenset(refused)
    if context.broker.authorizer is None:
        return frozenset()
    for key in keys:
        await checkpoint()
        if not context.allows(NEEDED[key_type], key):
            refused.add(key)
    return frozenset(refused)


async def _found(
    request: FindCoordinatorRequest, context: RequestContext, refused: Set[str]
) -> FindCoordinatorResponse:
    listener = context.client.listener
    is_old = context.version < FIRST_BATCHED_VERSION
    here = Found(
        ErrorCode.NONE,
        ErrorCode.NONE.name if is_old else "",
        context.broker.node_id,
        listener.advertised_host,
        listener.advertised_port,
    )
    nowhere = Found(
        CoordinatorNotAvailable.code, "The coordinator is not available." if is_old else ""
    )
    needed = NEEDED.get(request.key_type)
    error = InvalidRequest.code if needed is None else REFUSALS[needed.resource_type].code
    not_allowed = Found(error, error.sentence if is_old else "")
    partition_for = context.broker.coordinators.partitioner(request.key_type)
    topic = context.broker.topics.get(COORDINATOR_TOPICS[request.key_type])

    def find(key: str) -> Found:
        if key in refused:
            return not_allowed
        partition = None if topic is None else topic.partitions.get(partition_for(key))
        return here if partition is not None and partition.leader == here.node_id else nowhere

    return await _response(request, context.version, find)


async def _response(
    request: FindCoordinatorRequest, version: int, find: Callable[[str], Found]
) -> FindCoordinatorResponse:
    if version < FIRST_BATCHED_VERSION:
        found = find(request.key)
        return FindCoordinatorResponse(
            error_code=found.code,
            error_message=found.message,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )

    def coordinator(key: str) -> Coordinator:
        found = find(key)
        return Coordinator(
            key=key,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
            error_code=found.code,
            error_message=found.message,
        )

    coordinators = await map_in_turns(coordinator, request.coordinator_keys)
    return FindCoordinatorResponse(coordinators=coordinators)
