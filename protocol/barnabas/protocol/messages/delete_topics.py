"""
DeleteTopics (20): deletes topics.

* v1 is the oldest still understood.
* v3 may answer TOPIC_DELETION_DISABLED (KIP-322).
* v4 is flexible.
* v5 adds error messages (KIP-599).
* v6 can name topics by id (KIP-516).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import DELETE_TOPICS
from barnabas.protocol.codec.schema import ZERO_UUID, Api, int16, int32, message, since


@message
class DeleteTopicState:
    name: str | None = None
    topic_id: UUID


@message
class DeleteTopicsRequest:
    api: ClassVar[Api] = DELETE_TOPICS

    topics: list[DeleteTopicState] = since(6, default=[])
    topic_names: list[str] = since(0, until=5, default=[])
    timeout_ms: int32


@message
class DeletableTopicResult:
    name: str | None = since(0, nullable=6)
    topic_id: UUID = since(6, default=ZERO_UUID)
    error_code: int16
    error_message: str | None = since(5, default=None)


@message
class DeleteTopicsResponse:
    api: ClassVar[Api] = DELETE_TOPICS

    throttle_time_ms: int32 = 0
    responses: list[DeletableTopicResult]
