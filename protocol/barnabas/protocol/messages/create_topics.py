"""
CreateTopics (19): creates topics.

* v2 is the oldest still understood.
* v4 takes -1 for the broker's default number of partitions and replicas (KIP-464).
* v5 is flexible, and answers with the configs of the new topics (KIP-525).
* v6 may answer THROTTLING_QUOTA_EXCEEDED (KIP-599).
* v7 answers with topic ids (KIP-516).
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.apis import CREATE_TOPICS
from barnabas.protocol.codec.schema import ZERO_UUID, Api, int8, int16, int32, message, since


@message
class CreatableReplicaAssignment:
    partition_index: int32
    broker_ids: list[int32]


@message
class CreatableTopicConfig:
    name: str
    value: str | None


@message
class CreatableTopic:
    name: str
    num_partitions: int32
    replication_factor: int16
    assignments: list[CreatableReplicaAssignment]
    configs: list[CreatableTopicConfig]


@message
class CreateTopicsRequest:
    api: ClassVar[Api] = CREATE_TOPICS

    topics: list[CreatableTopic]
    timeout_ms: int32 = 60000
    validate_only: bool = False


@message
class CreatableTopicConfigs:
    name: str
    value: str | None
    read_only: bool
    config_source: int8 = -1
    is_sensitive: bool


@message
class CreatableTopicResult:
    name: str
    topic_id: UUID = since(7, default=ZERO_UUID)
    error_code: int16
    error_message: str | None = None
    topic_config_error_code: int16 = since(5, default=0, tag=0)
    num_partitions: int32 = since(5, default=-1)
    replication_factor: int16 = since(5, default=-1)
    configs: list[CreatableTopicConfigs] | None = since(5, default=None)


@message
class CreateTopicsResponse:
    api: ClassVar[Api] = CREATE_TOPICS

    throttle_time_ms: int32 = 0
    topics: list[CreatableTopicResult]
