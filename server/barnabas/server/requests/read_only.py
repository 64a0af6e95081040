"""
What a read-only broker answers: requests that read, and those of members of groups, whose changes
stay in memory. Every other request is refused, also one of an API that is added later.

Clients take the codes of authorization as final, and show the sentence where the API has a place
for one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.coordination.cluster.topic_names import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC
from barnabas.protocol import apis
from barnabas.protocol.errors import (
    ClusterAuthorizationFailed,
    DelegationTokenAuthorizationFailed,
    GroupAuthorizationFailed,
    KafkaError,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from barnabas.protocol.structs import replace
from barnabas.server.requests.authorization import NOTHING
from barnabas.server.requests.registry import Registration

if TYPE_CHECKING:
    from barnabas.server.partitions.partition import Partition
    from barnabas.server.requests.context import RequestContext
    from barnabas.server.requests.registry import Handler

logger = logging.getLogger(__name__)

READS: Final = frozenset(
    api.key
    for api in (
        apis.API_VERSIONS,
        apis.GET_TELEMETRY_SUBSCRIPTIONS,
        apis.PUSH_TELEMETRY,
        apis.SASL_HANDSHAKE,
        apis.SASL_AUTHENTICATE,
        apis.METADATA,
        apis.FIND_COORDINATOR,
        apis.FETCH,
        apis.LIST_OFFSETS,
        apis.OFFSET_FOR_LEADER_EPOCH,
        apis.OFFSET_FETCH,
        apis.LIST_GROUPS,
        apis.LIST_TRANSACTIONS,
        apis.LIST_CONFIG_RESOURCES,
        apis.LIST_PARTITION_REASSIGNMENTS,
        apis.DESCRIBE_ACLS,
        apis.DESCRIBE_CLIENT_QUOTAS,
        apis.DESCRIBE_CLUSTER,
        apis.DESCRIBE_CONFIGS,
        apis.DESCRIBE_DELEGATION_TOKEN,
        apis.DESCRIBE_GROUPS,
        apis.CONSUMER_GROUP_DESCRIBE,
        apis.SHARE_GROUP_DESCRIBE,
        apis.STREAMS_GROUP_DESCRIBE,
        apis.DESCRIBE_SHARE_GROUP_OFFSETS,
        apis.DESCRIBE_LOG_DIRS,
        apis.DESCRIBE_PRODUCERS,
        apis.DESCRIBE_QUORUM,
        apis.DESCRIBE_TOPIC_PARTITIONS,
        apis.DESCRIBE_TRANSACTIONS,
        apis.DESCRIBE_USER_SCRAM_CREDENTIALS,
    )
)
OF_MEMBERS: Final = frozenset(
    api.key
    for api in (
        apis.JOIN_GROUP,
        apis.SYNC_GROUP,
        apis.HEARTBEAT,
        apis.LEAVE_GROUP,
        apis.OFFSET_COMMIT,
        apis.CONSUMER_GROUP_HEARTBEAT,
        apis.SHARE_GROUP_HEARTBEAT,
        apis.SHARE_FETCH,
        apis.SHARE_ACKNOWLEDGE,
    )
)
"""
Without these most consumers cannot read. What they change is in memory.
"""

_TOPICS: Final = (GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC)
_ERRORS: Final[Mapping[int, type[KafkaError]]] = {
    api.key: error
    for error, those in (
        (TopicAuthorizationFailed, (apis.PRODUCE, apis.DELETE_RECORDS, apis.CREATE_PARTITIONS)),
        (
            TransactionalIdAuthorizationFailed,
            (
                apis.ADD_PARTITIONS_TO_TXN,
                apis.ADD_OFFSETS_TO_TXN,
                apis.TXN_OFFSET_COMMIT,
                apis.END_TXN,
            ),
        ),
        (
            GroupAuthorizationFailed,
            (
                apis.DELETE_GROUPS,
                apis.OFFSET_DELETE,
                apis.ALTER_SHARE_GROUP_OFFSETS,
                apis.DELETE_SHARE_GROUP_OFFSETS,
                apis.STREAMS_GROUP_HEARTBEAT,
            ),
        ),
        (
            DelegationTokenAuthorizationFailed,
            (
                apis.CREATE_DELEGATION_TOKEN,
                apis.RENEW_DELEGATION_TOKEN,
                apis.EXPIRE_DELEGATION_TOKEN,
            ),
        ),
    )
    for api in those
}


class ReadOnlyHandlers(Mapping[int, Registration]):
    """
    The handlers of a read-only broker: others refuse in the place of those that would change the
    cluster.
    """

    def __init__(self, handlers: Mapping[int, Registration]) -> None:
        self._handlers = handlers

    def __getitem__(self, key: int) -> Registration:
        registration = self._handlers[key]
        if key in READS:
            return registration
        if key in OF_MEMBERS:
            return replace(registration, handler=_bounded(registration.handler))
        return replace(registration, handler=_refuse, needs=NOTHING)

    def __iter__(self) -> Iterator[int]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)

    def __contains__(self, key: object) -> bool:
        return key in self._handlers


def _bounded(handler: Handler) -> Handler:
    """
    *handler*, as long as there is room for what members change: no cleaner takes old records away.
    """

    async def bounded(request: Any, context: RequestContext) -> Any:
        broker = context.broker
        most = broker.config.barnabas_max_coordinator_bytes
        if sum(map(_written, map(broker.partitions.of_topic, _TOPICS))) > most:
            raise GroupAuthorizationFailed(
                f"The broker is read-only, and has {most} bytes of changes of groups in memory, the"
                " most that barnabas.max.coordinator.bytes allows: start it again."
            )
        return await handler(request, context)

    return bounded


def _written(partitions: Sequence[Partition]) -> int:
    return sum(partition.bytes_in for partition in partitions)


async def _refuse(request: Any, context: RequestContext) -> Any:
    registration = context.route.registration
    error = _ERRORS.get(registration.key, ClusterAuthorizationFailed)
    if registration.key == apis.INIT_PRODUCER_ID.key and request.transactional_id is not None:
        error = TransactionalIdAuthorizationFailed
    name = registration.name
    logger.info("%s of %s is refused: the broker is read-only", name, context.client)
    raise error(f"The broker is read-only (barnabas serve --read-only), and refuses {name}.")
