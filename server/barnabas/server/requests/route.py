"""
A version of an API as its requests need it.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol import apis
from barnabas.protocol.codec.codec import codec_of
from barnabas.protocol.codec.primitives import ENTRIES_AT_ONCE
from barnabas.protocol.errors import TooManyEntries
from barnabas.server.metrics import Counter

if TYPE_CHECKING:
    from barnabas.protocol.codec.codec import Codec
    from barnabas.protocol.codec.primitives import Buffer
    from barnabas.protocol.codec.schema import Message
    from barnabas.server.requests.registry import Registration


INTRODUCTORY: Final = frozenset(
    api.key
    for api in (
        apis.API_VERSIONS,
        apis.DESCRIBE_CLUSTER,
        apis.DESCRIBE_TOPIC_PARTITIONS,
        apis.FIND_COORDINATOR,
        apis.INIT_PRODUCER_ID,
        apis.METADATA,
        apis.SASL_AUTHENTICATE,
        apis.SASL_HANDSHAKE,
    )
)
"""
The requests that a client sends to an address which its user has given.
"""


class Route:
    """
    What requests of one version of one API share.
    """

    __slots__ = (
        "forget",
        "handler",
        "has_tags",
        "is_introductory",
        "name",
        "registration",
        "request_codec",
        "requests",
        "response",
        "response_codec",
        "version",
    )

    def __init__(self, registration: Registration, version: int, requests: Counter) -> None:
        """
        Args:
            requests: counts those of the API.
        """
        self.registration = registration
        self.name = registration.name
        self.request_codec = codec_of(registration.request, version)
        self.response_codec = codec_of(registration.response, version)
        self.response = registration.response
        self.handler = registration.handler
        self.forget = registration.forget
        self.version = version
        self.requests = requests
        # ApiVersions is answered with the classic header in every version: a client that reads it
        # does not know yet what the broker understands (KIP-511).
        api = registration.request.api
        self.is_introductory = api.key in INTRODUCTORY
        self.has_tags = api.is_flexible(version) and api.key != apis.API_VERSIONS.key


def written_at_once(codec: Codec, response: Message) -> list[Buffer] | None:
    """
    The buffers of an answer; None if it is so large that it is written in steps.

    Raises:
        ValueError: a value cannot be written.
    """
    try:
        return codec.write(response, ENTRIES_AT_ONCE)
    except TooManyEntries:
        return None
