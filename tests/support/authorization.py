"""
A broker with an authorizer, and what its only client is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from barnabas.server.security.acl.bindings import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.server.security.acl.permissions import CREATE_CLUSTER, Permission
from tests.support.acls import allow, revoke_all
from tests.support.server import TestBroker

Acls: TypeAlias = tuple[tuple[Permission, str], ...]


async def create_topics(broker: TestBroker, topics: Mapping[str, int]) -> None:
    """
    Create topics with that many partitions. After that nothing is allowed.
    """
    await allow(broker, CREATE_CLUSTER, CLUSTER_NAME)
    for name, partitions in topics.items():
        await broker.create(name, partitions)
    await revoke_all(broker)


async def allow_only(broker: TestBroker, acls: Acls) -> None:
    """
    Allow this and nothing else.
    """
    await revoke_all(broker)
    for permission, name in acls:
        await allow(broker, permission, name)


async def allow_everything(broker: TestBroker) -> None:
    """
    Allow all operations on all resources.
    """
    for kind, name in (
        (ResourceType.TOPIC, "*"),
        (ResourceType.GROUP, "*"),
        (ResourceType.TRANSACTIONAL_ID, "*"),
        (ResourceType.CLUSTER, CLUSTER_NAME),
    ):
        await allow(broker, Permission(AclOperation.ALL, kind), name)
