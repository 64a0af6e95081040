"""
OffsetDelete (47): deletes offsets of a group (KIP-496).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import OFFSET_DELETE
from barnabas.protocol.codec.schema import Api, int16, int32, message


@message
class OffsetDeleteRequestPartition:
    partition_index: int32


@message
class OffsetDeleteRequestTopic:
    name: str
    partitions: list[OffsetDeleteRequestPartition]


@message
class OffsetDeleteRequest:
    api: ClassVar[Api] = OFFSET_DELETE

    group_id: str
    topics: list[OffsetDeleteRequestTopic]


@message
class OffsetDeleteResponsePartition:
    partition_index: int32
    error_code: int16


@message
class OffsetDeleteResponseTopic:
    name: str
    partitions: list[OffsetDeleteResponsePartition]


@message
class OffsetDeleteResponse:
    api: ClassVar[Api] = OFFSET_DELETE

    error_code: int16
    throttle_time_ms: int32 = 0
    topics: list[OffsetDeleteResponseTopic]
