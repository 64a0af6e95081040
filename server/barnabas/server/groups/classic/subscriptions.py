"""
The subscriptions in the metadata of consumers.

The metadata of a consumer begin with its topics (``ConsumerProtocol`` of the Java client). Those of
Connect, Schema Registry and others are opaque to the coordinator.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from barnabas.protocol.codec.codec import decode
from barnabas.protocol.consumer_protocol import ConsumerProtocolSubscription
from barnabas.protocol.errors import DecodeError

CONSUMER: Final = "consumer"
"""
The protocol type of consumers.
"""

_VERSION: Final = Struct(">h")


def subscribed_topics(metadata: bytes) -> list[str]:
    """
    The topics that a consumer subscribes to, from the metadata of its protocol.

    Every version begins like version 0, and is decoded as that.

    Raises:
        DecodeError: these are not the metadata of a consumer.
    """
    if len(metadata) < _VERSION.size or _VERSION.unpack_from(metadata)[0] < 0:
        raise DecodeError("the subscription of a consumer has no version")
    return decode(ConsumerProtocolSubscription, 0, metadata[_VERSION.size :]).topics
