"""
Metrics of the cluster that dashboards and alerts for Apache Kafka query: of its controller, its
metadata log, and the replicas of its one node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.server.http.metrics import families
from barnabas.server.http.metrics.exposition import Blocks

if TYPE_CHECKING:
    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.requests.broker_parts import BrokerParts

_LEADER: Final = '{current_state="leader"}'


def write_cluster(parts: BrokerParts, partitions: Partitions, blocks: Blocks) -> None:
    """
    Write the families without labels; those of topics are beside their logs.
    """
    for family, value in families.ONE_NODE.items():
        blocks.of(family.name).add("", value)
    count = len(partitions)
    blocks.of(families.LEADERS.name).add("", count)
    blocks.of(families.AT_MIN_ISR.name).add("", count)
    blocks.of(families.GLOBAL_TOPICS.name).add("", len(parts.topics))
    blocks.of(families.GLOBAL_PARTITIONS.name).add("", count + partitions.failed)
    blocks.of(families.GLOBAL_OFFLINE.name).add("", partitions.failed)
    log = parts.controller.log
    blocks.of(families.RAFT_LEADER.name).add("", parts.node_id)
    blocks.of(families.RAFT_VOTE.name).add("", parts.node_id)
    blocks.of(families.RAFT_EPOCH.name).add("", log.epoch)
    blocks.of(families.RAFT_HIGH_WATERMARK.name).add("", log.high_watermark)
    blocks.of(families.RAFT_END.name).add("", log.end_offset)
    blocks.of(families.RAFT_STATE.name).add(_LEADER, 1)
