"""
SaslAuthenticate (36): one step of the SASL exchange.

* v1 answers with the lifetime of the session (KIP-368).
* v2 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from barnabas.protocol.apis import SASL_AUTHENTICATE
from barnabas.protocol.codec.schema import Api, int16, int64, message, since


@message
class SaslAuthenticateRequest:
    api: ClassVar[Api] = SASL_AUTHENTICATE

    auth_bytes: bytes

    def __repr__(self) -> str:
        # A password in plain text may be among them, which has no business in a log.
        return f"SaslAuthenticateRequest(auth_bytes=<{len(self.auth_bytes)} bytes>)"


@message
class SaslAuthenticateResponse:
    api: ClassVar[Api] = SASL_AUTHENTICATE

    error_code: int16
    error_message: str | None = None
    auth_bytes: bytes
    session_lifetime_ms: int64 = since(1, default=0)
