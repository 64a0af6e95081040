"""
A public name of the product has one meaning.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support.compiled import ROOT

PACKAGES: Final = ("protocol", "storage", "client", "server")
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
OF_CLIENTS: Final = {"ConfigSource", "Connection"}
"""Names of ``barnabas.client``, which users import, for what the server sees from the other end."""


def test_public_classes_have_names_of_their_own() -> None:
    counts = Counter(
        name
        for package in PACKAGES
        for source in (ROOT / package).rglob("*.py")
        if not source.is_relative_to(ROOT / MESSAGES)
        for name in public_types(source)
    )
    assert len(counts) > 1000

    assert {name for name, count in counts.items() if count > 1} == (
        OF_KAFKAS_RECORDS | OF_GROUP_PROTOCOLS | OF_CLIENTS
    )


def public_types(source: Path) -> Iterator[str]:
    """
    The classes and the type aliases of a module.
    """
    for statement in ast.parse(source.read_text()).body:
        match statement:
            case (
                ast.ClassDef(name=name)
                | ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias"))
            ) if not name.startswith("_"):
                yield name
