"""
What a client needs to be allowed to look at the configs of a resource, or to change them.

Topics and groups have permissions of their own; all other resources with configs go with the
cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.coordination.cluster.image import ConfigResourceType
from barnabas.coordination.security.acl.bindings import CLUSTER_NAME, ResourceType
from barnabas.coordination.security.acl.permissions import (
    ALTER_CONFIGS_CLUSTER,
    ALTER_CONFIGS_GROUP,
    ALTER_CONFIGS_TOPIC,
    DESCRIBE_CONFIGS_CLUSTER,
    DESCRIBE_CONFIGS_GROUP,
    DESCRIBE_CONFIGS_TOPIC,
    Permission,
)
from barnabas.server.requests.authorization import REFUSALS

if TYPE_CHECKING:
    from barnabas.server.requests.context import RequestContext

_ALTER: Final[dict[int, Permission]] = {
    ConfigResourceType.TOPIC: ALTER_CONFIGS_TOPIC,
    ConfigResourceType.GROUP: ALTER_CONFIGS_GROUP,
}
_DESCRIBE: Final[dict[int, Permission]] = {
    ConfigResourceType.TOPIC: DESCRIBE_CONFIGS_TOPIC,
    ConfigResourceType.GROUP: DESCRIBE_CONFIGS_GROUP,
}


def require_alter(context: RequestContext, resource_type: int, name: str) -> None:
    """
    Raises:
        KafkaError: the client may not change the configs of the resource.
    """
    _require(context, _ALTER.get(resource_type, ALTER_CONFIGS_CLUSTER), name)


def require_describe(context: RequestContext, resource_type: int, name: str) -> None:
    """
    Raises:
        KafkaError: the client may not see the configs of the resource.
    """
    _require(context, _DESCRIBE.get(resource_type, DESCRIBE_CONFIGS_CLUSTER), name)


def _require(context: RequestContext, permission: Permission, name: str) -> None:
    kind = permission.resource_type
    if not context.allows(permission, CLUSTER_NAME if kind == ResourceType.CLUSTER else name):
        raise REFUSALS[kind]
