"""
ListConfigResources: what has configs (KIP-1142; Kafka ``KafkaApis.handleListConfigResources``).

Topics and brokers have them always, groups and subscriptions to client metrics only while one is
set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from barnabas.coordination.cluster.image import ConfigResourceType
from barnabas.coordination.security.acl.permissions import DESCRIBE_CONFIGS_CLUSTER
from barnabas.coordination.steps import checkpoint
from barnabas.coordination.text_memory import text_bytes
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles


def _configured(kind: ConfigResourceType) -> Callable[[RequestContext], Iterable[str]]:
    return lambda context: [name for type_, name in context.broker.image.configs if type_ == kind]


def _this_broker(context: RequestContext) -> Iterable[str]:
    return [str(context.broker.node_id)]


NAMES: Final[Mapping[ConfigResourceType, Callable[[RequestContext], Iterable[str]]]] = {
    ConfigResourceType.GROUP: _configured(ConfigResourceType.GROUP),
    ConfigResourceType.CLIENT_METRICS: _configured(ConfigResourceType.CLIENT_METRICS),
    ConfigResourceType.BROKER_LOGGER: _this_broker,
    ConfigResourceType.BROKER: _this_broker,
    ConfigResourceType.TOPIC: lambda context: [topic.name for topic in context.broker.topics],
}
"""
The names of the resources of each type, in the order of the answer.
"""


@handles(ListConfigResourcesRequest, needs=gate(DESCRIBE_CONFIGS_CLUSTER))
async def list_config_resources(
    request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    """
    The resources of the types that are asked for, or of all that the version knows.
    """
    known = [ConfigResourceType.CLIENT_METRICS] if context.version == 0 else list(NAMES)
    wanted = set(request.resource_types) or set(known)
    if not wanted.issubset(known):
        return ListConfigResourcesResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=[]
        )
    room = context.room()
    resources = room.list()
    for kind, names in NAMES.items():
        for name in names(context) if kind in wanted else ():
            await checkpoint()
            room.take(1, text_bytes(name))
            resources.append(ConfigResource(resource_name=name, resource_type=kind))
    return ListConfigResourcesResponse(error_code=ErrorCode.NONE, config_resources=resources)
