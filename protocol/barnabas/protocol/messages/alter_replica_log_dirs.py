"""
AlterReplicaLogDirs (34): moves logs to other log directories of a broker (KIP-113).

* v1 is the oldest still understood.
* v2 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import ALTER_REPLICA_LOG_DIRS
from barnabas.protocol.codec.schema import Api, int16, int32, message


@message
class AlterReplicaLogDirTopic:
    name: str
    partitions: list[int32]


@message
class AlterReplicaLogDir:
    path: str
    topics: list[AlterReplicaLogDirTopic]


@message
class AlterReplicaLogDirsRequest:
    api: ClassVar[Api] = ALTER_REPLICA_LOG_DIRS

    dirs: list[AlterReplicaLogDir]


@message
class AlterReplicaLogDirPartitionResult:
    partition_index: int32
    error_code: int16


@message
class AlterReplicaLogDirTopicResult:
    topic_name: str
    partitions: list[AlterReplicaLogDirPartitionResult]


@message
class AlterReplicaLogDirsResponse:
    api: ClassVar[Api] = ALTER_REPLICA_LOG_DIRS

    throttle_time_ms: int32 = 0
    results: list[AlterReplicaLogDirTopicResult]
