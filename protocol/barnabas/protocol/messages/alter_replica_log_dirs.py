"""
AlterReplicaLogDirs (34): moves logs to other log directories of a broker (KIP-113).

* v1 is the oldest still understood.
* v2 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.schema import Api, int16, int32, message

API = Api(34, versions=range(1, 3), flexible=2)


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
    api: ClassVar[Api] = API

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
    api: ClassVar[Api] = API

    throttle_time_ms: int32 = 0
    results: list[AlterReplicaLogDirTopicResult]
