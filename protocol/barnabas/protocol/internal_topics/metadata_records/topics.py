"""
Topics, their partitions, and the configs of topics and brokers.

* ``PartitionRecord`` and ``PartitionChangeRecord`` name the log directories of the replicas from v1
  on (KIP-858), and the replicas that may become leader from v2 on (KIP-966).
* ``ClearElrRecord`` forgets the latter: of one topic, or of all if it has no name.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID

from barnabas.protocol.codec.schema import Api, int8, int32, message, since


@message
class TopicRecord:
    api: ClassVar[Api] = Api(2, versions=range(1), flexible=0)

    name: str
    topic_id: UUID


@message
class RemoveTopicRecord:
    api: ClassVar[Api] = Api(9, versions=range(1), flexible=0)

    topic_id: UUID


@message
class PartitionRecord:
    api: ClassVar[Api] = Api(3, versions=range(3), flexible=0)

    partition_id: int32 = -1
    topic_id: UUID
    replicas: list[int32]
    isr: list[int32]
    removing_replicas: list[int32]
    adding_replicas: list[int32]
    leader: int32 = -1
    leader_recovery_state: int8 = since(0, default=0, tag=0)
    leader_epoch: int32 = -1
    partition_epoch: int32 = -1
    directories: list[UUID] = since(1, default=[])
    eligible_leader_replicas: list[int32] | None = since(2, default=None, tag=1)
    last_known_elr: list[int32] | None = since(2, default=None, tag=2)


@message
class PartitionChangeRecord:
    api: ClassVar[Api] = Api(5, versions=range(3), flexible=0)

    partition_id: int32 = -1
    topic_id: UUID
    isr: list[int32] | None = since(0, default=None, tag=0)
    leader: int32 = since(0, default=-2, tag=1)
    replicas: list[int32] | None = since(0, default=None, tag=2)
    removing_replicas: list[int32] | None = since(0, default=None, tag=3)
    adding_replicas: list[int32] | None = since(0, default=None, tag=4)
    leader_recovery_state: int8 = since(0, default=-1, tag=5)
    directories: list[UUID] | None = since(1, default=None, tag=8)
    eligible_leader_replicas: list[int32] | None = since(2, default=None, tag=6)
    last_known_elr: list[int32] | None = since(2, default=None, tag=7)


@message
class ClearElrRecord:
    api: ClassVar[Api] = Api(28, versions=range(1), flexible=0)

    topic_name: str


@message
class ConfigRecord:
    api: ClassVar[Api] = Api(4, versions=range(1), flexible=0)

    resource_type: int8
    resource_name: str
    name: str
    value: str | None
