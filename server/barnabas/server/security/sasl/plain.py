"""
PLAIN: a name and a password (RFC 4616; Kafka ``PlainSaslServer``).
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final

from barnabas.server.security.errors import OTHER_USER, AuthenticationFailed

PLAIN: Final = "PLAIN"
USER_PREFIX: Final = "user_"
"""
The option of a login module that has the password of a user begins so.
"""
_MOST_TOKENS: Final = 4


class PlainSaslServer:
    """
    Takes one token: ``[authzid] NUL user NUL password``.
    """

    expires_ms = None
    is_by_token = False

    def __init__(self, passwords: Mapping[str, str]) -> None:
        """
        Args:
            passwords: by user.
        """
        self._passwords = passwords
        self.user: str | None = None

    def evaluate(self, token: bytes) -> bytes:
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError:
            raise AuthenticationFailed("its token is no UTF-8") from None
        if len(parts) != 3:
            raise _refused(
                "Invalid SASL/PLAIN response: expected 3 tokens, got"
                f" {min(len(parts), _MOST_TOKENS)}"
            )
        authorization_id, user, password = parts
        if not user:
            raise _refused("Authentication failed: username not specified")
        if not password:
            raise _refused("Authentication failed: password not specified")
        expected = self._passwords.get(user)
        # An unknown user takes as long as a wrong password.
        is_right = hmac.compare_digest(
            password.encode(), (password if expected is None else expected).encode()
        )
        if expected is None or not is_right:
            raise _refused("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != user:
            raise _refused(OTHER_USER)
        self.user = user
        return b""


def _refused(message: str) -> AuthenticationFailed:
    return AuthenticationFailed(message, message)
