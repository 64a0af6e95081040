"""
Differences that are known and stay, by the name that they have in ``docs/tools.md``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from tests.interop.tools.tour import Difference

_OF_ANOTHER_NODE: Final = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "controller.listener.names",
        "controller.quorum.voters",
        "group.initial.rebalance.delay.ms",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.max.idle.interval.ms",
        "node.id",
        "offsets.topic.replication.factor",
        "process.roles",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
    }
)
"""
Options that both have, and that are given or chosen otherwise for a node with two listeners.
"""


def _both(command: str, kafka: str, barnabas: str) -> Callable[[Difference], bool]:
    """
    A class whose differences have these patterns in the command and on the two sides.
    """
    patterns = [re.compile(pattern, re.MULTILINE) for pattern in (command, kafka, barnabas)]

    def holds(difference: Difference) -> bool:
        texts = (
            " ".join(difference.command),
            "\n".join(difference.kafka),
            "\n".join(difference.barnabas),
        )
        return all(p.search(text) for p, text in zip(patterns, texts, strict=True))

    return holds


def _are_options_of_the_broker(difference: Difference) -> bool:
    command = " ".join(difference.command)
    if re.search(r"--entity-type brokers .*--describe --all", command) is None:
        return False
    kafka, ours = (
        {line.strip().partition("=")[0] for line in lines}
        for lines in (difference.kafka, difference.barnabas)
    )
    own = {name for name in ours - kafka if name.startswith("barnabas.")}
    return (kafka & ours) <= _OF_ANOTHER_NODE and ours - kafka == own


def _cannot_change_voters(difference: Difference) -> bool:
    command = " ".join(difference.command)
    if "remove-controller" in command:
        return "REMOVE_RAFT_VOTER" in "".join(difference.barnabas)
    # The first feature of a release that cannot be had is told of for all of them.
    return (
        re.search("kafka-features upgrade .*(release-version 4|kraft.version)", command) is not None
    )


KNOWN: Final[Mapping[str, Callable[[Difference], bool]]] = {
    "broker-options": _are_options_of_the_broker,
    "loggers": _both("--entity-type broker-loggers --entity-name 1 --describe", "", ""),
    "fixed-options": _both(
        "--add-config listeners=",
        "controller.listener.names must|at default cluster level",
        "Cannot update these configs dynamically",
    ),
    "nested-messages": _both(
        "kafka-configs",
        "ConfigException: (.*) for configuration Invalid dynamic configuration",
        "InvalidRequestException: Log cleaner threads",
    ),
    "apis": _both("kafka-broker-api-versions", "usable", "UNSUPPORTED"),
    "voters": _cannot_change_voters,
    "features": _both(
        "kafka-features describe", "Feature: (group|kraft|share|streams).version", "^$"
    ),
    "controller-listener": _both(
        "kafka-metadata-quorum", "CurrentVoters: .*CONTROLLER://", r'CurrentVoters: +\[{"id": 1}\]'
    ),
}


def class_of(difference: Difference) -> str | None:
    """
    The known class to which a difference belongs.
    """
    return next((name for name, holds in KNOWN.items() if holds(difference)), None)
