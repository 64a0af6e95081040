"""
The authorizer decides as Apache Kafka's, on random entries and questions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest

from barnabas.coordination.security.acl.acls import Acls
from barnabas.coordination.security.acl.authorizer import StandardAuthorizer
from barnabas.coordination.security.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from barnabas.coordination.security.acl.permissions import Permission
from barnabas.coordination.security.principal import KafkaPrincipal
from barnabas.server.security.host_address import host_address
from tests.support.java_programs import run_program

pytestmark = pytest.mark.prove

PROGRAM: Final = Path(__file__).parent / "java" / "Authorizes.java"
WORLDS: Final = 300
QUESTIONS: Final = 60
SEED: Final = 20_261_125

NAMES: Final = (
    *("a", "ab", "abc", "abd", "b", "ba", "*", "*a", "!", "a*", "A", "z", "~", "kafka-cluster"),
    *("hardcode", "hard", "h", "é", "éa", "日本", "日", "a" * 249, "a" * 300, " "),
)
PRINCIPALS: Final = ("User:a", "User:b", "User:*", "Group:a", "User:", "User:a:b", "User:CN=x,O=y")
HOSTS: Final = ("*", "127.0.0.1", "10.0.0.1", "0:0:0:0:0:0:0:1", "::1")
ADDRESSES: Final = ("127.0.0.1", "10.0.0.1", "::1", "::ffff:10.0.0.1")
TYPES: Final = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER)
OPERATIONS: Final = tuple(AclOperation)[2:]


def random_entry(chance: random.Random) -> AclBinding:
    return AclBinding(
        resource_type=chance.choice(TYPES),
        resource_name=chance.choice(NAMES),
        pattern_type=chance.choice((PatternType.LITERAL, PatternType.PREFIXED)),
        principal=chance.choice(PRINCIPALS),
        host=chance.choice(("*", *HOSTS)),
        operation=chance.choice(OPERATIONS[:7] * 2 + OPERATIONS),
        permission_type=chance.choice(
            (AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.DENY)
        ),
    )


def world(chance: random.Random, lines: list[str]) -> Iterator[bool]:
    """
    What our authorizer says to the questions that *lines* get, with entries that come and go.
    """
    super_users = chance.choice(("", "", "User:b", "User:a:b;Group:a", " User:CN=x,O=y ;"))
    allow_everyone = chance.random() < 0.3
    lines.append(f"new\t{super_users}\t{str(allow_everyone).lower()}\n")
    acls = Acls()
    principals = frozenset(filter(None, map(str.strip, super_users.split(";"))))
    authorizer = StandardAuthorizer(acls, principals, allow_everyone=allow_everyone)
    there: set[int] = set()
    for number in range(chance.choice((0, 1, 2, 5, 20, 60))):
        entry = random_entry(chance)
        acls.add(UUID(int=number), entry)
        there.add(number)
        lines.append("\t".join(("acl", str(number), *map(_text, entry))) + "\n")
    for number in range(QUESTIONS):
        if there and number % 7 == 6:
            gone = chance.choice(sorted(there))
            there.remove(gone)
            acls.remove(UUID(int=gone))
            lines.append(f"remove\t{gone}\n")
        # A client that is called * ends in an IllegalArgumentException there.
        asking = chance.choice([each for each in PRINCIPALS if each != "User:*"])
        kind, _, name = asking.partition(":")
        principal = KafkaPrincipal(kind, name)
        address = chance.choice(ADDRESSES)
        permission = Permission(chance.choice(OPERATIONS[1:]), chance.choice(TYPES))
        asked = (str(principal), address, *map(_text, permission))
        if number % 5 == 4:
            lines.append("\t".join(("any", *asked)) + "\n")
            yield authorizer.allows_any(principal, host_address(address), permission)
        else:
            # Kafka forgets the entries for * where a name begins with it.
            resource = chance.choice([name for name in NAMES if name != "*a"])
            lines.append("\t".join(("ask", *asked, resource)) + "\n")
            yield authorizer.allows(principal, host_address(address), permission, resource)


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, int) else str(value)


def test_random_authorization_requests_are_decided_as_in_kafka() -> None:
    chance = random.Random(SEED)
    lines: list[str] = []
    ours: list[bool] = []
    places: list[int] = []
    for _ in range(WORLDS):
        for decision in world(chance, lines):
            ours.append(decision)
            places.append(len(lines))

    theirs = run_program(PROGRAM, lines=lines).split()

    assert len(ours) == len(theirs) == WORLDS * QUESTIONS
    assert 0.1 < sum(ours) / len(ours) < 0.9, "both answers are tried"
    wrong = [
        lines[place - 1]
        for one, other, place in zip(ours, theirs, places, strict=True)
        if one != (other == "1")
    ]
    assert wrong == []
