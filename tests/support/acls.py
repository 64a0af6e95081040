"""
Access control entries of a broker in a test, written as its controller writes them.
"""

from __future__ import annotations

from uuid import uuid4

from barnabas.protocol.internal_topics.metadata_records import RemoveAccessControlEntryRecord
from barnabas.server.cluster.image import acl_record
from barnabas.server.security.acl.bindings import AclBinding, AclPermissionType, PatternType
from barnabas.server.security.acl.permissions import Permission
from tests.support.server import TestBroker

AUTHORIZER = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}
"""
Options of a broker that allows nothing to ``User:ANONYMOUS`` until an entry does.
"""


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
    Add an entry about the resource *name*, or about those whose names begin so.
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
    assert broker.parts is not None
    controller = broker.parts.controller
    await controller.change(lambda: controller.write([acl_record(uuid4(), entry)]))


async def revoke_all(broker: TestBroker) -> None:
    """
    Remove all entries.
    """
    assert broker.parts is not None
    controller = broker.parts.controller
    records = [
        (RemoveAccessControlEntryRecord(id=acl_id), 0)
        for acl_id, _ in controller.image.acls.items()
    ]
    await controller.change(lambda: controller.write(records))
