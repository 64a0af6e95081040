"""
A version of an API as its requests need it.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol import apis
from barnabas.protocol.codec.codec import codec_of
from barnabas.server.metrics import Counter

if TYPE_CHECKING:
    from barnabas.server.requests.registry import Registration


class Route:
    """
    What requests of one version of one API share.
    """

    __slots__ = (
        "forget",
        "handler",
        "has_tags",
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
        self.has_tags = api.is_flexible(version) and api.key != apis.API_VERSIONS.key
