"""
What the client of a request may do, asked by handlers:

=======================  ========================================================================
``context.allows``       a client wants to do something with the resource, and is told if it may
                         not; refusals are logged
``context.sees``         the resource is left out for a client that may not
``context.require``      as ``allows``, and raises the error of its type
``partition_by_...``     as ``allows``, of many resources
=======================  ========================================================================
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.coordination.security.acl.bindings import CLUSTER_NAME, ResourceType
from barnabas.coordination.security.acl.permissions import DESCRIBE_CLUSTER, SUPPORTED, Permission
from barnabas.coordination.steps import checkpoint

if TYPE_CHECKING:
    from barnabas.server.requests.context import RequestContext
    from barnabas.server.requests.registry import Handler

T = TypeVar("T")

NOT_REQUESTED: Final = -(2**31)
"""
In place of what a client may do, if it has not asked.
"""


def gated(handler: Handler, permission: Permission) -> Handler:
    """
    *handler*, called for a client that has the permission only.
    """
    kind = permission.resource_type

    async def guarded(request: Any, context: RequestContext) -> Any:
        if kind == ResourceType.CLUSTER:
            name = CLUSTER_NAME
        elif kind == ResourceType.GROUP:
            name = request.group_id
        else:
            assert kind == ResourceType.TRANSACTIONAL_ID, f"no request names one {kind.name}"
            name = request.transactional_id
        context.require(permission, name)
        return await handler(request, context)

    return guarded


async def partition_by_authorized(
    context: RequestContext, permission: Permission, items: Iterable[T], name_of: Callable[[T], str]
) -> tuple[list[T], list[T]]:
    """
    The *items* with whose resources the client may do this, and the others; refusals are logged.
    """
    allowed: list[T] = []
    refused: list[T] = []
    if context.broker.authorizer is None:
        allowed.extend(items)
        return allowed, refused
    forbidden: set[str] = set()
    for item in items:
        await checkpoint()
        name = name_of(item)
        if name not in forbidden and context.allows(permission, name):
            allowed.append(item)
        else:
            forbidden.add(name)
            refused.append(item)
    return allowed, refused


def authorized_operations(context: RequestContext, resource_type: ResourceType, name: str) -> int:
    """
    What the client may do with a resource (KIP-430): bit *n* stands for the operation with that
    number.
    """
    if context.broker.authorizer is None:
        return _ALL[resource_type]
    return _bits(each for each in SUPPORTED[resource_type] if context.sees(each, name))


def authorized_cluster_operations(context: RequestContext) -> int:
    """
    What the client may do with the cluster; nothing, unless it may describe it.
    """
    if not context.allows(DESCRIBE_CLUSTER, CLUSTER_NAME):
        return 0
    return authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)


def _bits(permissions: Iterable[Permission]) -> int:
    return sum(1 << permission.operation for permission in permissions)


_ALL: Final = {kind: _bits(permissions) for kind, permissions in SUPPORTED.items()}
"""
The operations that a client may do where everything is allowed.
"""
