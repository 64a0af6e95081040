"""
Programs of streams groups (KIP-1071): topologies, in few words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)
from tests.support.build import build


def part(
    number: str,
    sources: Sequence[str] = (),
    *,
    changelogs: Sequence[TopicInfo] = (),
    sinks: Sequence[str] = (),
    repartition: Sequence[TopicInfo] = (),
    copartition: Sequence[tuple[Sequence[int], Sequence[int]]] = (),
    patterns: Sequence[str] = (),
) -> Subtopology:
    """
    A subtopology.

    Args:
        copartition: numbers of sources and of repartition topics, for each group.
    """
    return build(
        Subtopology,
        subtopology_id=number,
        source_topics=sources,
        source_topic_regex=patterns,
        state_changelog_topics=changelogs,
        repartition_sink_topics=sinks,
        repartition_source_topics=repartition,
        copartition_groups=[
            {
                "source_topics": of_sources,
                "source_topic_regex": [],
                "repartition_source_topics": of_repartition,
            }
            for of_sources, of_repartition in copartition
        ],
    )


def internal(
    name: str, partitions: int = 0, replication_factor: int = 0, **configs: str
) -> TopicInfo:
    """
    A topic that the broker creates; configs have ``_`` for ``.``.
    """
    return build(
        TopicInfo,
        name=name,
        partitions=partitions,
        replication_factor=replication_factor,
        topic_configs=[
            {"key": key.replace("_", "."), "value": value} for key, value in configs.items()
        ],
    )


def topology(*parts: Subtopology, epoch: int = 0) -> Topology:
    return Topology(epoch=epoch, subtopologies=[*parts])


READER = topology(part("0", ["t"]))
"""
A program that only reads.
"""
COUNTER = topology(part("0", ["t"], changelogs=[internal("t-changelog")]))
"""
A program with state.
"""


def first_heartbeat(
    group_id: str, program: Topology, /, **facts: Any
) -> StreamsGroupHeartbeatRequest:
    given: dict[str, Any] = {
        "group_id": group_id,
        "member_id": "m",
        "member_epoch": 0,
        "endpoint_information_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "process_id": "p",
        "client_tags": [],
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "topology": program,
    }
    return StreamsGroupHeartbeatRequest(**given | facts)
