"""
``barnabas explain`` for a broker that runs.
"""

from __future__ import annotations

from functools import partial

from barnabas.protocol.errors import KafkaError
from barnabas.server.dynamic_config.known_cluster import KnownCluster, Suppositions
from barnabas.storage.explain.as_text import as_text
from barnabas.storage.explain.known import ExplainError
from barnabas.storage.explain.logs import ReadOnlyLogs
from barnabas.storage.explain.report import report_on
from barnabas.storage.topic_partition import TopicPartition
from barnabas.testing.errors import BrokerError, hides_frame
from barnabas.testing.hosts.embedded import Embedded
from barnabas.testing.operations.topics import partition_indexes

__tracebackhide__ = hides_frame


async def explain(broker: Embedded, name: str, partition: int) -> str:
    """
    The text of ``barnabas explain`` for a partition.

    Raises:
        UnknownTopic: the topic or the partition does not exist.
        BrokerError: its log cannot be read.
    """
    partition_indexes(broker, name, partition)
    return await broker.parts.workers.in_upkeep(partial(_explain, broker, name, partition))


def _explain(broker: Embedded, name: str, partition: int) -> str:
    cluster = KnownCluster(
        broker.settings,
        Suppositions.parse(()),
        broker.config.log_directories,
        files=broker.files,
        clock=broker.clock,
    )
    logs = ReadOnlyLogs(cluster, broker.files, broker.clock)
    try:
        opened = logs.open(TopicPartition(name, partition))
        return as_text(report_on(opened, cluster.times, broker.clock.now_ms()), all_segments=True)
    except (ExplainError, KafkaError) as error:
        raise BrokerError(f"{name}-{partition} cannot be explained: {error}") from error
