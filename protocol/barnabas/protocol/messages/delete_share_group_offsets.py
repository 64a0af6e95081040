"""
DeleteShareGroupOffsets (92): a share group without members forgets topics (KIP-932).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import DELETE_SHARE_GROUP_OFFSETS
from barnabas.protocol.codec.schema import ZERO_UUID, Api, int16, int32, message


@message
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: str


@message
class DeleteShareGroupOffsetsRequest:
    api: ClassVar[Api] = DELETE_SHARE_GROUP_OFFSETS

    group_id: str
    topics: list[DeleteShareGroupOffsetsRequestTopic]


@message
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: str
    topic_id: UUID = ZERO_UUID
    error_code: int16 = 0
    error_message: str | None = None


@message
class DeleteShareGroupOffsetsResponse:
    api: ClassVar[Api] = DELETE_SHARE_GROUP_OFFSETS

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic]
