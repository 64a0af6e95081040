"""
OAUTHBEARER: a token that somebody else has issued (RFC 7628; Kafka ``OAuthBearerSaslServer``).

::

    client: n,,^Aauth=Bearer TOKEN^A^A
    server: nothing, or why not as JSON
    client: ^A, and the exchange has failed
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from barnabas.server.security.errors import AuthenticationFailed

OAUTHBEARER: Final = "OAUTHBEARER"
MOST_S: Final = 1e15
"""
A later time in a token is none: in milliseconds it has to fit into 64 bits.
"""
_SEPARATOR: Final = "\x01"
_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_FIRST: Final = re.compile(
    f"n,(?:a=(?P<authzid>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_.a-zA-Z0-9]+)", re.ASCII)


class BearerToken(NamedTuple):
    """
    A token that is valid.
    """

    user: str
    expires_ms: int
    """In ms since 1970 UTC."""


class InvalidToken(Exception):
    """
    A token is not accepted. The text is for the log.

    Args:
        scope: the scope that it lacks, if that is the reason.
    """

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.scope = scope


def time_in(claims: Mapping[str, Any], name: str) -> float | None:
    """
    A time among the *claims* of a token, in seconds since 1970 UTC; None if it is not there.

    Raises:
        InvalidToken: it is no time.
    """
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MOST_S:
        raise InvalidToken(f"its {name} is no time")
    return float(value)


Validate = Callable[[str], BearerToken]
"""
Raises ``InvalidToken``.
"""


class OAuthBearerSaslServer:
    """
    Takes a token, and a second message if that is not valid.
    """

    is_by_token = False

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self._refusal: tuple[str, str] | None = None  # for the log, for the client
        self.user: str | None = None
        self.expires_ms: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        if self._refusal is not None and token == _SEPARATOR.encode():
            raise AuthenticationFailed(*self._refusal)
        self._refusal = None
        authorization_id, bearer = _parse(token)
        try:
            valid = self._validate(bearer)
        except InvalidToken as error:
            challenge = _challenge(error.scope)
            self._refusal = (f"its token is not valid: {error}", challenge)
            return challenge.encode()
        if authorization_id and authorization_id != valid.user:
            sentence = (
                f"Authentication failed: Client requested an authorization id ({authorization_id})"
                f" that is different from the token's principal name ({valid.user})"
            )
            raise AuthenticationFailed(sentence, sentence)
        self.user, self.expires_ms = valid
        return b""


def _parse(token: bytes) -> tuple[str, str]:
    """
    The authorization id and the token in the client's first message.

    Raises:
        AuthenticationFailed: it is malformed.
    """
    match = _FIRST.fullmatch(token.decode("utf-8", "replace"))
    if match is None:
        raise AuthenticationFailed("its first message is no OAUTHBEARER")
    pairs = dict(
        pair.split("=", 1) for pair in match["pairs"].rstrip(_SEPARATOR).split(_SEPARATOR) if pair
    )
    auth = _AUTH.fullmatch(pairs.get("auth", ""))
    if auth is None or auth["scheme"].lower() != "bearer":
        raise AuthenticationFailed("its first message has no bearer token")
    return match["authzid"] or "", auth["token"]


def _challenge(scope: str | None) -> str:
    if scope is None:
        return '{"status":"invalid_token"}'
    return f'{{"status":"insufficient_scope", "scope":"{scope}"}}'
