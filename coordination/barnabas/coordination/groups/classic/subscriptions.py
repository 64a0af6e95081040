"""
The metadata and assignments of consumers, which the classic protocol carries as bytes.

They begin with a version and the topics (``ConsumerProtocol`` of the Java client). Those of Kafka
Connect, Schema Registry and others are opaque to the coordinator.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final, TypeVar

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from barnabas.protocol.errors import DecodeError

CONSUMER: Final = "consumer"
"""
The protocol type of consumers.
"""

_VERSION: Final = Struct(">h")
M = TypeVar("M", bound=Message)


def subscribed_topics(metadata: bytes) -> list[str]:
    """
    The topics that a consumer subscribes to, from the metadata of its protocol.

    Every version begins like version 0, and is decoded as that.

    Raises:
        DecodeError: these are not the metadata of a consumer.
    """
    version_of(metadata)
    return decode(ConsumerProtocolSubscription, 0, metadata[_VERSION.size :]).topics


def subscription_of(metadata: bytes) -> ConsumerProtocolSubscription:
    """
    The metadata of a consumer's protocol.

    Raises:
        DecodeError: these are not the metadata of a consumer.
    """
    return _decoded(ConsumerProtocolSubscription, metadata)


def assignment_of(assignment: bytes) -> ConsumerProtocolAssignment:
    """
    The assignment of a consumer.

    Raises:
        DecodeError: this is not the assignment of a consumer.
    """
    return _decoded(ConsumerProtocolAssignment, assignment)


def assignment_bytes(partitions: Iterable[tuple[str, Iterable[int]]], version: int) -> bytes:
    """
    An assignment of *partitions*, by topic, for a consumer.

    Args:
        version: that of the consumer's metadata.
    """
    version = min(version, ConsumerProtocolAssignment.api.versions[-1])
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=topic, partitions=list(indexes)) for topic, indexes in partitions
        ]
    )
    return _VERSION.pack(version) + encode(message, version)


def version_of(data: bytes) -> int:
    """
    The version at the start of metadata or of an assignment.

    Raises:
        DecodeError: there is none.
    """
    version: int = _VERSION.unpack_from(data)[0] if len(data) >= _VERSION.size else -1
    if version < 0:
        raise DecodeError("the subscription of a consumer has no version")
    return version


def _decoded(cls: type[M], data: bytes) -> M:
    # Later versions begin like the last one that is known.
    version = min(version_of(data), cls.api.versions[-1])
    return decode(cls, version, data[_VERSION.size :])
