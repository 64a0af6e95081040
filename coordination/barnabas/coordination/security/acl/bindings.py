"""
Access control entries: what they say, and filters that find them (Kafka ``AclBinding``,
``AclBindingFilter``).

An entry may come from a client or from the metadata log, and its numbers may be any.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from enum import IntEnum
from typing import Final

from barnabas.protocol.structs import NamedTuple


class ResourceType(IntEnum):
    """
    What something is that is allowed or denied (Kafka ``ResourceType``).
    """

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """
    How the name of an entry stands for names of resources (KIP-290). A filter may also ask for ANY
    of them, or MATCH those that stand for a name.
    """

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """
    What is done with a resource (Kafka ``AclOperation``).
    """

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermissionType(IntEnum):
    """
    Whether an entry allows or denies.
    """

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


WILDCARD: Final = "*"
"""
The name of all resources of a type, and all hosts.
"""
ANY_PRINCIPAL: Final = "User:*"
"""
Stands for all clients, whatever the type of their principal.
"""
CLUSTER_NAME: Final = "kafka-cluster"
"""
The name of the only resource of the type CLUSTER.
"""


_TYPES: Final = frozenset(map(int, ResourceType)) - {ResourceType.UNKNOWN}
_PATTERNS: Final = frozenset(map(int, PatternType)) - {PatternType.UNKNOWN}
_OPERATIONS: Final = frozenset(map(int, AclOperation)) - {AclOperation.UNKNOWN}
_PERMISSIONS: Final = frozenset(map(int, AclPermissionType)) - {AclPermissionType.UNKNOWN}


class AclBinding(NamedTuple):
    """
    One entry.
    """

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def reason_invalid(self) -> str | None:
        """
        Why there can be no such entry, None if there can (Kafka
        ``AclControlManager.validateNewAcl``).
        """
        for what, number, concrete in (
            ("resourceType", self.resource_type, _TYPES - {ResourceType.ANY}),
            ("patternType", self.pattern_type, _PATTERNS - {PatternType.ANY, PatternType.MATCH}),
            ("operation", self.operation, _OPERATIONS - {AclOperation.ANY}),
            ("permissionType", self.permission_type, _PERMISSIONS - {AclPermissionType.ANY}),
        ):
            if number not in concrete:
                return f"Invalid {what} {number}"
        if not self.resource_name:
            return "Resource name should not be empty"
        if ":" not in self.principal:
            return (
                f"Could not parse principal from `{self.principal}` (no colon is present"
                " separating the principal type from the principal name)"
            )
        return None

    def stands_for(self, name: str) -> bool:
        """
        Whether the entry is about the resource *name* of its type.
        """
        if self.pattern_type == PatternType.LITERAL:
            return self.resource_name in (name, WILDCARD)
        return self.pattern_type == PatternType.PREFIXED and name.startswith(self.resource_name)


class AclBindingFilter(NamedTuple):
    """
    Which entries are meant. None and ANY leave a field open.
    """

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def reason_invalid(self) -> str | None:
        """
        Why the filter means nothing, None if it does.
        """
        if self.resource_type not in _TYPES or self.pattern_type not in _PATTERNS:
            return "Unknown patternFilter."
        if self.operation not in _OPERATIONS or self.permission_type not in _PERMISSIONS:
            return "Unknown entryFilter."
        return None

    def matches(self, entry: AclBinding) -> bool:
        """
        Whether the filter means *entry*.
        """
        return (
            self.resource_type in (ResourceType.ANY, entry.resource_type)
            and self._matches_name(entry)
            and (self.principal is None or self.principal == entry.principal)
            and (self.host is None or self.host == entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission_type in (AclPermissionType.ANY, entry.permission_type)
        )

    def _matches_name(self, entry: AclBinding) -> bool:
        wanted = self.pattern_type
        if wanted not in (PatternType.ANY, PatternType.MATCH, entry.pattern_type):
            return False
        name = self.resource_name
        if name is None:
            return True
        return (
            entry.stands_for(name) if wanted == PatternType.MATCH else name == entry.resource_name
        )
