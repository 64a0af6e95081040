"""
What a client may be allowed to do: an operation on a type of resource.

``SUPPORTED`` are the operations that Kafka knows for each type, in the order of their numbers; a
client may ask which of them it is allowed (KIP-430).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.coordination.security.acl.bindings import AclOperation, ResourceType
from barnabas.protocol.structs import NamedTuple


class Permission(NamedTuple):
    """
    An operation on a type of resource.
    """

    operation: AclOperation
    resource_type: ResourceType

    def __str__(self) -> str:
        return f"{self.operation.name} on {self.resource_type.name}"


READ_TOPIC: Final = Permission(AclOperation.READ, ResourceType.TOPIC)
WRITE_TOPIC: Final = Permission(AclOperation.WRITE, ResourceType.TOPIC)
CREATE_TOPIC: Final = Permission(AclOperation.CREATE, ResourceType.TOPIC)
DELETE_TOPIC: Final = Permission(AclOperation.DELETE, ResourceType.TOPIC)
ALTER_TOPIC: Final = Permission(AclOperation.ALTER, ResourceType.TOPIC)
DESCRIBE_TOPIC: Final = Permission(AclOperation.DESCRIBE, ResourceType.TOPIC)
DESCRIBE_CONFIGS_TOPIC: Final = Permission(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC)
ALTER_CONFIGS_TOPIC: Final = Permission(AclOperation.ALTER_CONFIGS, ResourceType.TOPIC)

READ_GROUP: Final = Permission(AclOperation.READ, ResourceType.GROUP)
DELETE_GROUP: Final = Permission(AclOperation.DELETE, ResourceType.GROUP)
DESCRIBE_GROUP: Final = Permission(AclOperation.DESCRIBE, ResourceType.GROUP)
DESCRIBE_CONFIGS_GROUP: Final = Permission(AclOperation.DESCRIBE_CONFIGS, ResourceType.GROUP)
ALTER_CONFIGS_GROUP: Final = Permission(AclOperation.ALTER_CONFIGS, ResourceType.GROUP)

CREATE_CLUSTER: Final = Permission(AclOperation.CREATE, ResourceType.CLUSTER)
DELETE_CLUSTER: Final = Permission(AclOperation.DELETE, ResourceType.CLUSTER)
ALTER_CLUSTER: Final = Permission(AclOperation.ALTER, ResourceType.CLUSTER)
DESCRIBE_CLUSTER: Final = Permission(AclOperation.DESCRIBE, ResourceType.CLUSTER)
CLUSTER_ACTION: Final = Permission(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)
DESCRIBE_CONFIGS_CLUSTER: Final = Permission(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
ALTER_CONFIGS_CLUSTER: Final = Permission(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER)
IDEMPOTENT_WRITE: Final = Permission(AclOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)

WRITE_TRANSACTIONAL_ID: Final = Permission(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID)
DESCRIBE_TRANSACTIONAL_ID: Final = Permission(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)
TWO_PHASE_COMMIT: Final = Permission(AclOperation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID)

DESCRIBE_DELEGATION_TOKEN: Final = Permission(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN)
CREATE_TOKENS: Final = Permission(AclOperation.CREATE_TOKENS, ResourceType.USER)
DESCRIBE_TOKENS: Final = Permission(AclOperation.DESCRIBE_TOKENS, ResourceType.USER)

SUPPORTED: Final[Mapping[ResourceType, tuple[Permission, ...]]] = {
    ResourceType.TOPIC: (
        READ_TOPIC,
        WRITE_TOPIC,
        CREATE_TOPIC,
        DELETE_TOPIC,
        ALTER_TOPIC,
        DESCRIBE_TOPIC,
        DESCRIBE_CONFIGS_TOPIC,
        ALTER_CONFIGS_TOPIC,
    ),
    ResourceType.GROUP: (
        READ_GROUP,
        DELETE_GROUP,
        DESCRIBE_GROUP,
        DESCRIBE_CONFIGS_GROUP,
        ALTER_CONFIGS_GROUP,
    ),
    ResourceType.CLUSTER: (
        CREATE_CLUSTER,
        ALTER_CLUSTER,
        DESCRIBE_CLUSTER,
        CLUSTER_ACTION,
        DESCRIBE_CONFIGS_CLUSTER,
        ALTER_CONFIGS_CLUSTER,
        IDEMPOTENT_WRITE,
    ),
}
