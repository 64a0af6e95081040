"""
What clients are told who may not do everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType
from typing import Any, TypeAlias
from uuid import UUID

from barnabas.protocol.codec.schema import fields
from barnabas.server.security.acl.bindings import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.server.security.acl.permissions import Permission
from tests.support.acls import allow, revoke_all
from tests.support.server import TestBroker

Right: TypeAlias = tuple[Permission, str]
"""
What is allowed, and with which resource.
"""

EVERYTHING: tuple[Right, ...] = (
    *(
        (Permission(AclOperation.ALL, kind), "*")
        for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    ),
    (Permission(AclOperation.ALL, ResourceType.CLUSTER), CLUSTER_NAME),
)


async def allow_only(broker: TestBroker, rights: Iterable[Right]) -> None:
    """
    Take back what clients are allowed, and allow them this.
    """
    await revoke_all(broker)
    for permission, name in rights:
        await allow(broker, permission, name)


def codes(answer: Any, version: int) -> list[int]:
    """
    All error codes that a response of that *version* has, in the order of its fields.
    """
    if isinstance(answer, list):
        return [code for each in answer for code in codes(each, version)]
    if isinstance(answer, int | str | bytes | memoryview | UUID | NoneType):
        return []
    found: list[int] = []
    for field in fields(type(answer)):
        if field.is_in(version):
            value = getattr(answer, field.name)
            is_code = field.name.endswith("error_code")
            found += [value] if is_code else codes(value, version)
    return found
