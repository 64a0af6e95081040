"""
SaslHandshake (17): chooses a SASL mechanism.

* v0 is followed by bare SASL tokens.
* v1 is followed by SaslAuthenticate (KIP-152).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.schema import Api, int16, message

API = Api(17, versions=range(2))


@message
class SaslHandshakeRequest:
    api: ClassVar[Api] = API

    mechanism: str


@message
class SaslHandshakeResponse:
    api: ClassVar[Api] = API

    error_code: int16
    mechanisms: list[str]
