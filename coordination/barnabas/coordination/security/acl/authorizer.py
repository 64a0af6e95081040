"""
Decides who may do what, as Apache Kafka's ``StandardAuthorizer``.

In the order of the rules:

=================================================  ===========================
the principal is one of ``super.users``            allowed
an entry denies the operation                      denied
an entry allows it, or one that implies it         allowed
entries are about the resource, whatever they say  denied
none is                                            ``allow.everyone.if.no.acl.found``
=================================================  ===========================
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from barnabas.coordination.security.acl.acls import Acls, Entries
from barnabas.coordination.security.acl.bindings import (
    ANY_PRINCIPAL,
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
)
from barnabas.coordination.security.acl.permissions import Permission
from barnabas.coordination.security.principal import KafkaPrincipal

ALLOW: Final = int(AclPermissionType.ALLOW)
DENY: Final = int(AclPermissionType.DENY)

IMPLIED_BY: Final[dict[int, frozenset[int]]] = {
    AclOperation.DESCRIBE: frozenset(
        (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER)
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset((AclOperation.ALTER_CONFIGS,)),
}
"""
The operations that imply another one where an entry allows them. One that denies implies nothing.
"""
_NONE: Final[frozenset[int]] = frozenset()

MOST_DECISIONS: Final = 1 << 16
LONGEST_NAME: Final = 249
"""
Decisions about longer names are made again each time; no topic has one.
"""

AuthorizationQuestion: TypeAlias = tuple[KafkaPrincipal, str, Permission, str]
"""
Who asks, from which address, to do what, with the resource of which name.
"""


class StandardAuthorizer:
    """
    Answers whether a client may do something, from the entries as they are now.

    Decisions are kept until an entry is added or removed.
    """

    __slots__ = ("_acls", "_allow_everyone", "_super_users", "decisions")

    def __init__(self, acls: Acls, super_users: frozenset[str], *, allow_everyone: bool) -> None:
        """
        Args:
            super_users: principals that may do everything, each as ``type:name``.
            allow_everyone: whether what no entry is about is allowed.
        """
        self._acls = acls
        self._super_users = super_users
        self._allow_everyone = allow_everyone
        self.decisions: dict[AuthorizationQuestion, bool] = {}
        """What was asked since the last change, with the answers."""
        acls.on_change.append(self.decisions.clear)

    def allows(
        self, principal: KafkaPrincipal, host: str, permission: Permission, name: str
    ) -> bool:
        """
        Whether *principal* may do this with the resource *name*.

        Args:
            host: the address that the client has connected from.
        """
        key = (principal, host, permission, name)
        decisions = self.decisions
        known = decisions.get(key)
        if known is not None:
            return known
        decision = self._decide(principal, host, permission, name)
        if len(name) <= LONGEST_NAME:
            if len(decisions) >= MOST_DECISIONS:
                decisions.clear()
            decisions[key] = decision
        return decision

    def _decide(
        self, principal: KafkaPrincipal, host: str, permission: Permission, name: str
    ) -> bool:
        text = str(principal)
        if text in self._super_users:
            return True
        operation = int(permission.operation)
        implying = IMPLIED_BY.get(operation, _NONE)
        is_named = is_allowed = False
        for entries in self._acls.about(int(permission.resource_type), name):
            is_named = True
            for entry in _of(entries, text, host):
                is_same = entry.operation in (operation, AclOperation.ALL)
                if entry.permission_type == ALLOW:
                    is_allowed = is_allowed or is_same or entry.operation in implying
                elif is_same:
                    return False
        return is_allowed if is_named else self._allow_everyone

    def allows_any(self, principal: KafkaPrincipal, host: str, permission: Permission) -> bool:
        """
        Whether *principal* may do this with some resource of the type (KIP-679): an entry allows
        it, and none takes back all that the entry allows.
        """
        if self.allows(principal, host, permission, _NO_RESOURCE):
            return True
        text = str(principal)
        allowed: set[tuple[int, str]] = set()
        denied: set[tuple[int, str]] = set()
        operations = (int(permission.operation), int(AclOperation.ALL))
        for named in (text, ANY_PRINCIPAL):
            for entry in self._acls.of_principal(int(permission.resource_type), named):
                if entry.host in (host, WILDCARD) and entry.operation in operations:
                    chosen = allowed if entry.permission_type == ALLOW else denied
                    chosen.add((entry.pattern_type, entry.resource_name))
        everything = (int(PatternType.LITERAL), WILDCARD)
        if everything in denied:
            return False
        return everything in allowed or any(
            not _is_taken_back(pattern, name, denied) for pattern, name in allowed
        )


_NO_RESOURCE: Final = "hardcode"
"""
The name that Kafka asks about to find out whether everything is allowed.
"""


def _of(entries: Entries, principal: str, host: str) -> Iterator[AclBinding]:
    """
    The entries that are about a client.
    """
    for named in (principal, ANY_PRINCIPAL):
        found = entries.get(named)
        if found is not None:
            for entry in found.values():
                if entry.host in (WILDCARD, host):
                    yield entry


def _is_taken_back(pattern: int, name: str, denied: set[tuple[int, str]]) -> bool:
    if pattern == PatternType.LITERAL and (pattern, name) in denied:
        return True
    prefixed = int(PatternType.PREFIXED)
    return any((prefixed, name[:length]) in denied for length in range(1, len(name) + 1))
