"""
A public name of the product has one meaning.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support.compiled import FOLDERS, ROOT

CAMEL_CASE: Final = re.compile(r"[A-Z]+[a-z]\w*")
MESSAGES: Final = "protocol/barnabas/protocol/messages"
"""Kafka's names of what is in a message, which many messages have."""

OF_KAFKAS_RECORDS: Final = {
    "ClassicProtocol",
    "TopicConfig",
    "TopicInfo",
    "TopicPartition",
    "TopicPartitions",
}
"""Kafka's names of what is in records of groups; some are the best names elsewhere too."""
OF_GROUP_PROTOCOLS: Final = {
    "Answered",
    "Fencing",
    "Goal",
    "Heartbeats",
    "MemberState",
    "NewTarget",
    "Rebalancing",
    "Sessions",
    "TargetOfMember",
}
"""The same idea in the folders of consumer, share and streams groups."""
FOR_USERS: Final = {"ConfigSource", "Connection", "LogDirectory", "Work"}
"""
What users import from the client and the pipeline is named for them. Three of these are seen from
the other side in the server and the storage engine; ``Work`` is what a task reads.
"""


def test_public_types_have_names_of_their_own() -> None:
    meanings: dict[str, set[str]] = defaultdict(set)
    for package in FOLDERS:
        for source in (ROOT / package).rglob("*.py"):
            if not source.is_relative_to(ROOT / MESSAGES):
                for name, meaning in public_types(source):
                    meanings[name].add(meaning)
    assert len(meanings) > 1000

    twins = {name for name, found in meanings.items() if len(found) > 1}

    assert OF_KAFKAS_RECORDS | OF_GROUP_PROTOCOLS | FOR_USERS == twins


def public_types(source: Path) -> Iterator[tuple[str, str]]:
    """
    Yield the name and the meaning of each class and each type alias of a module. Two aliases of one
    type mean the same.
    """
    for statement in ast.parse(source.read_text()).body:
        match statement:
            case ast.ClassDef(name=name):
                meaning = str(source)
            case ast.AnnAssign(
                target=ast.Name(id=name),
                annotation=ast.Name(id="TypeAlias"),
                value=ast.expr() as type_,
            ):
                meaning = ast.unparse(type_)
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Name() | ast.Attribute() | ast.Subscript() | ast.BinOp() as type_,
            ) if CAMEL_CASE.fullmatch(name):
                meaning = ast.unparse(type_)
            case _:
                continue
        if not name.startswith("_"):
            yield name, meaning
