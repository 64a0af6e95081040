"""
Access control entries of a broker in a test, written as its controller writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias
from uuid import uuid4

from barnabas.coordination.cluster.image import acl_record
from barnabas.coordination.security.acl.bindings import (
    CLUSTER_NAME,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from barnabas.coordination.security.acl.permissions import CREATE_CLUSTER, Permission
from barnabas.protocol.internal_topics.metadata_records import RemoveAccessControlEntryRecord
from tests.support.server import TestBroker

AUTHORIZER = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}
"""
Options of a broker that allows nothing to ``User:ANONYMOUS`` until an entry does.
"""

Right: TypeAlias = tuple[Permission, str]
"""
What is allowed, and with which resource.
"""

Rights: TypeAlias = tuple[Right, ...]

EVERYTHING: Final[Rights] = (
    *(
        (Permission(AclOperation.ALL, kind), "*")
        for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    ),
    (Permission(AclOperation.ALL, ResourceType.CLUSTER), CLUSTER_NAME),
)


async def allow(
    broker: TestBroker,
    permission: Permission,
    name: str,
    *,
    deny: bool = False,
    prefixed: bool = False,
    principal: str = "User:ANONYMOUS",
    host: str = "*",
) -> None:
    """
    Add an entry about the resource *name*, or about resources whose names have that prefix.
    """
    entry = AclBinding(
        resource_type=permission.resource_type,
        resource_name=name,
        pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        principal=principal,
        host=host,
        operation=permission.operation,
        permission_type=AclPermissionType.DENY if deny else AclPermissionType.ALLOW,
    )
    controller = broker.inside.controller
    await controller.change(lambda: controller.write([acl_record(uuid4(), entry)]))


async def revoke_all(broker: TestBroker) -> None:
    controller = broker.inside.controller
    records = [
        (RemoveAccessControlEntryRecord(id=acl_id), 0)
        for acl_id, _ in controller.image.acls.items()
    ]
    await controller.change(lambda: controller.write(records))


async def allow_only(broker: TestBroker, rights: Iterable[Right]) -> None:
    await revoke_all(broker)
    for permission, name in rights:
        await allow(broker, permission, name)


async def create_topics(broker: TestBroker, topics: Mapping[str, int]) -> None:
    """
    Create topics, and allow nothing afterwards.
    """
    await allow(broker, CREATE_CLUSTER, CLUSTER_NAME)
    for name, partitions in topics.items():
        await broker.create(name, partitions)
    await revoke_all(broker)
