"""
The one thing that the coordinator understands of what members tell their leader.

Consumers put the topics they subscribe to first (``ConsumerProtocol`` of the Java client). Connect,
Schema Registry and others put there what they like, and nobody but they can read it.
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
    The topics that a consumer subscribes to, by the metadata of its protocol.

    Every version begins like version 0, so that is what it is read as.

    Raises:
        DecodeError: the metadata are something else.
    """
    if len(metadata) < _VERSION.size or _VERSION.unpack_from(metadata)[0] < 0:
        raise DecodeError("the subscription of a consumer has no version")
    return decode(ConsumerProtocolSubscription, 0, metadata[_VERSION.size :]).topics
