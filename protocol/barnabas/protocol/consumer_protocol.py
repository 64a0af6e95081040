"""
What consumers of a classic group tell their leader, and what it tells them.

Both begin with an int16, the version, and go through the broker as bytes. A later version begins
like the ones before it, so that it can be read as the highest one known here (Kafka's
ConsumerProtocol).

* v1 tells what the member owns already, v2 in which generation, v3 where the member is.
"""

from __future__ import annotations

from struct import Struct
from typing import ClassVar, Final

from barnabas.protocol.codec.codec import decode, encode
from barnabas.protocol.codec.schema import Api, int32, message, since
from barnabas.protocol.errors import DecodeError

_VERSION: Final = Struct(">h")
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


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """
    Raises:
        DecodeError: *data* are no subscription.
    """
    version = _version(data)
    return decode(ConsumerProtocolSubscription, version, data[_VERSION.size :])


def decode_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """
    Raises:
        DecodeError: *data* are no assignment.
    """
    version = _version(data)
    return decode(ConsumerProtocolAssignment, version, data[_VERSION.size :])


def encode_with_version(
    what: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int
) -> bytes:
    """
    Raises:
        ValueError: there is no such version.
    """
    return _VERSION.pack(version) + encode(what, version)


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise DecodeError("what a consumer says has no version")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise DecodeError(f"what a consumer says has version {version}")
    return min(version, _VERSIONS.stop - 1)
