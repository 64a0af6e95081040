"""
What a request needs to be allowed, and what becomes of one that is not.

Each handler declares it (``registry.handles``). With a ``gate`` the broker asks before the handler
is called, and the answer to a refusal has the error wherever the API has a place for one. A handler
that ``asks`` does so itself, for each topic or group that it is about to look at or to change
(``authorized.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.coordination.security.acl.bindings import ResourceType
from barnabas.coordination.security.acl.permissions import Permission
from barnabas.protocol.errors import (
    ClusterAuthorizationFailed,
    DelegationTokenAuthorizationFailed,
    GroupAuthorizationFailed,
    KafkaError,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from barnabas.protocol.structs import NamedTuple

REFUSALS: Final[Mapping[ResourceType, type[KafkaError]]] = {
    ResourceType.TOPIC: TopicAuthorizationFailed,
    ResourceType.GROUP: GroupAuthorizationFailed,
    ResourceType.CLUSTER: ClusterAuthorizationFailed,
    ResourceType.TRANSACTIONAL_ID: TransactionalIdAuthorizationFailed,
    ResourceType.DELEGATION_TOKEN: DelegationTokenAuthorizationFailed,
}
"""
The error of a client that may not do something, by the type of the resource.
"""


class Needs(NamedTuple):
    """
    The permissions that requests of an API need or ask for.
    """

    permissions: tuple[Permission, ...]
    is_gate: bool


NOTHING: Final = Needs((), is_gate=False)
"""
Everyone may send the request, and all are answered alike.
"""


def gate(permission: Permission) -> Needs:
    """
    Only a client with this permission is served: for the cluster, or for the group or the
    transactional id that the request names.
    """
    return Needs((permission,), is_gate=True)


def asks(*permissions: Permission) -> Needs:
    """
    The handler asks for some of these permissions, by what the request is about.
    """
    return Needs(permissions, is_gate=False)
