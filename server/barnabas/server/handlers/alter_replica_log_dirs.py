"""
AlterReplicaLogDirs: has logs in other log directories (KIP-113; Kafka
``ReplicaManager.alterReplicaLogDirs``).

A log stays in the directory in which it was made: a wish to have it where it is is fulfilled, every
other one is refused as Kafka refuses it for a directory that takes no new replicas (KIP-1066).
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from barnabas.coordination.security.acl.permissions import ALTER_CLUSTER
from barnabas.coordination.steps import checkpoint, map_in_turns
from barnabas.protocol.errors import (
    ErrorCode,
    InvalidReplicaAssignment,
    InvalidTopicException,
    KafkaError,
    KafkaStorageError,
    LogDirNotFound,
    ReplicaNotAvailable,
    UnknownTopicOrPartition,
)
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from barnabas.server.requests.authorization import gate
from barnabas.server.requests.context import RequestContext
from barnabas.server.requests.registry import handles
from barnabas.storage.state_files.file_names import has_future_dir_name
from barnabas.storage.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

MOST_LOGGED: Final = 10
"""
Of so many partitions of a request it is logged why they are refused.
"""


async def _response(codes: dict[TopicPartition, ErrorCode]) -> AlterReplicaLogDirsResponse:
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (name, index), code in codes.items():
        await checkpoint()
        topics.setdefault(name, []).append(
            AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
        )
    results = await map_in_turns(
        lambda topic: AlterReplicaLogDirTopicResult(topic_name=topic[0], partitions=topic[1]),
        topics.items(),
    )
    return AlterReplicaLogDirsResponse(results=results)


async def _wanted(request: AlterReplicaLogDirsRequest) -> dict[TopicPartition, str]:
    """
    The directory for each partition; of one that is named twice the last one counts.
    """
    wanted = {}
    for directory in request.dirs:
        await checkpoint()
        for topic in directory.topics:
            await checkpoint()
            for index in topic.partitions:
                await checkpoint()
                wanted[TopicPartition(topic.name, index)] = directory.path
    return wanted


@handles(AlterReplicaLogDirsRequest, needs=gate(ALTER_CLUSTER))
async def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, context: RequestContext
) -> AlterReplicaLogDirsResponse:
    """
    Say of each partition whether it is where it is wanted.
    """
    codes = {}
    refused = 0
    wanted = await _wanted(request)
    for partition, path in wanted.items():
        await checkpoint()
        codes[partition] = ErrorCode.NONE
        try:
            _check(partition, path, context)
        except KafkaError as error:
            codes[partition] = error.code
            refused += 1
            if refused <= MOST_LOGGED:
                logger.warning("%s cannot be moved to %s: %s", partition, path, error)
    if refused > MOST_LOGGED:
        logger.warning("%d other partitions cannot be moved", refused - MOST_LOGGED)
    return await _response(codes)


def _check(partition: TopicPartition, path: str, context: RequestContext) -> None:
    """
    Raises:
        KafkaError: the log of *partition* is not in *path*.
    """
    log_manager = context.broker.log_manager
    if not has_future_dir_name(partition):
        raise InvalidTopicException("The topic name is too long.")
    if path not in map(str, log_manager.directories.all):
        raise LogDirNotFound(f"Log dir {path} is not found in the config.")
    if Path(path) not in log_manager.directories.live:
        raise KafkaStorageError(f"Log directory {path} is offline")
    topic = context.broker.topics.get(partition.topic)
    if topic is None or partition.partition not in topic.partitions:
        raise UnknownTopicOrPartition
    log = log_manager.get_log(partition)
    if log is None:
        raise ReplicaNotAvailable(f"There is no log of {partition} here")
    if str(log.parent_dir) != path:
        raise InvalidReplicaAssignment(f"Logs stay where they are; this one is in {log.parent_dir}")
