"""
DescribeLogDirs: the log directories and the sizes of the logs in them (KIP-113, KIP-827; Kafka
``ReplicaManager.describeLogDirs``).

The log of the cluster's metadata is not among them, in Kafka neither.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Set
from pathlib import Path
from typing import TypeAlias

from barnabas.coordination.security.acl.bindings import CLUSTER_NAME
from barnabas.coordination.security.acl.permissions import DESCRIBE_CLUSTER
from barnabas.coordination.steps import checkpoint
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from barnabas.server.requests.authorization import asks
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.storage.manager.manager import LogManager
from barnabas.storage.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

IsWanted: TypeAlias = Callable[[TopicPartition], bool]


@handles(DescribeLogDirsRequest, needs=asks(DESCRIBE_CLUSTER))
async def describe_log_dirs(
    request: DescribeLogDirsRequest, context: RequestContext
) -> DescribeLogDirsResponse:
    """
    Each directory, with those of the partitions in it that are asked for; with all by default.
    """
    if not context.allows(DESCRIBE_CLUSTER, CLUSTER_NAME):
        # Also in versions that have no place for the error: clients take no directory for it.
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return DescribeLogDirsResponse(error_code=code, results=[])
    is_wanted: IsWanted = lambda _: True  # noqa: E731  # one of two, both as short
    if request.topics is not None:
        wanted = await _wanted(request.topics)
        is_wanted = wanted.__contains__
    log_manager = context.broker.log_manager

    logs = log_manager.logs()
    context.room().take(len(logs), sum(len(each.topic) for each in logs))

    def describe_all() -> list[DescribeLogDirsResult]:
        return [_describe(path, log_manager, is_wanted) for path in log_manager.directories.all]

    # The file systems are asked for their sizes, which may take its time.
    results = await context.broker.workers.in_upkeep(describe_all)
    return DescribeLogDirsResponse(error_code=ErrorCode.NONE, results=results)


async def _wanted(topics: Iterable[DescribableLogDirTopic]) -> Set[TopicPartition]:
    wanted = set()
    for topic in topics:
        await checkpoint()
        for index in topic.partitions:
            await checkpoint()
            wanted.add(TopicPartition(topic.topic, index))
    return wanted


def _describe(path: Path, log_manager: LogManager, is_wanted: IsWanted) -> DescribeLogDirsResult:
    try:
        total, usable = log_manager.directories.volume_bytes(path)
    except KafkaError as error:
        logger.warning("%s cannot be described: %s", path, error)
        return DescribeLogDirsResult(error_code=error.code, log_dir=str(path), topics=[])
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition, log in log_manager.logs().items():
        if log.parent_dir == path and is_wanted(partition):
            topics.setdefault(partition.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=partition.partition,
                    partition_size=log.size,
                    offset_lag=max(log.high_watermark - log.log_end_offset, 0),
                    is_future_key=False,
                )
            )
    return DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=str(path),
        topics=[DescribeLogDirsTopic(name=name, partitions=p) for name, p in topics.items()],
        total_bytes=total,
        usable_bytes=usable,
    )
