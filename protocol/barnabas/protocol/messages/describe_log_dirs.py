"""
DescribeLogDirs (35): the log directories of the broker and the sizes of the logs in them.

* v1 is the oldest still understood.
* v2 is flexible.
* v3 adds an error code for the whole answer.
* v4 adds the size of the volume (KIP-827).
* v5 marks directories that get no new logs (KIP-1066).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import DESCRIBE_LOG_DIRS
from barnabas.protocol.codec.schema import Api, int16, int32, int64, message, since


@message
class DescribableLogDirTopic:
    topic: str
    partitions: list[int32]


@message
class DescribeLogDirsRequest:
    api: ClassVar[Api] = DESCRIBE_LOG_DIRS

    topics: list[DescribableLogDirTopic] | None


@message
class DescribeLogDirsPartition:
    partition_index: int32
    partition_size: int64
    offset_lag: int64
    is_future_key: bool


@message
class DescribeLogDirsTopic:
    name: str
    partitions: list[DescribeLogDirsPartition]


@message
class DescribeLogDirsResult:
    error_code: int16
    log_dir: str
    topics: list[DescribeLogDirsTopic]
    total_bytes: int64 = since(4, default=-1)
    usable_bytes: int64 = since(4, default=-1)
    is_cordoned: bool = since(5, default=False)


@message
class DescribeLogDirsResponse:
    api: ClassVar[Api] = DESCRIBE_LOG_DIRS

    throttle_time_ms: int32 = 0
    error_code: int16 = since(3, default=0)
    results: list[DescribeLogDirsResult]
