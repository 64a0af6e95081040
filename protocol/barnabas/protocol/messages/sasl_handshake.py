"""
SaslHandshake (17): chooses a SASL mechanism.

* v0 is followed by bare SASL tokens.
* v1 is followed by SaslAuthenticate (KIP-152).
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import SASL_HANDSHAKE
from barnabas.protocol.codec.schema import Api, int16, message


@message
class SaslHandshakeRequest:
    api: ClassVar[Api] = SASL_HANDSHAKE

    mechanism: str


@message
class SaslHandshakeResponse:
    api: ClassVar[Api] = SASL_HANDSHAKE

    error_code: int16
    mechanisms: list[str]
