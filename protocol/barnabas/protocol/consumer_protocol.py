"""
Subscriptions and assignments of the consumers of a classic group (Kafka's ``ConsumerProtocol``).

The broker stores them as bytes: an int16, which is the version, and a message. A later version
begins with the fields of the earlier ones.

* v1 adds the partitions that the member owns, v2 its generation, v3 its rack.
"""

from __future__ import annotations

from typing import ClassVar, Final

from barnabas.protocol.codec.schema import Api, int32, message, since

_VERSIONS: Final = range(4)
_NO_API: Final = -1


@message
class TopicPartition:
    topic: str
    partitions: list[int32]


@message
class ConsumerProtocolSubscription:
    api: ClassVar[Api] = Api(_NO_API, versions=_VERSIONS)

    topics: list[str]
    user_data: bytes | None = None
    owned_partitions: list[TopicPartition] = since(1, default=[])
    generation_id: int32 = since(2, default=-1)
    rack_id: str | None = since(3, default=None)


@message
class ConsumerProtocolAssignment:
    api: ClassVar[Api] = Api(_NO_API, versions=_VERSIONS)

    assigned_partitions: list[TopicPartition]
    user_data: bytes | None = None
