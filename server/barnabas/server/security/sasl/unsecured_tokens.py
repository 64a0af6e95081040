"""
Tokens without a signature, for development (Kafka
``OAuthBearerUnsecuredValidatorCallbackHandler``).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, Final

from barnabas.server.security.sasl.oauthbearer import BearerToken, InvalidToken, time_in
from barnabas.storage.clock import Clock

_PREFIX: Final = "unsecuredValidator"


class UnsecuredValidator:
    """
    Believes everybody who says when his token ends.
    """

    def __init__(self, options: Mapping[str, str], clock: Clock) -> None:
        """
        Args:
            options: of the login module.

        Raises:
            ValueError: an option is not acceptable.
        """
        self._clock = clock
        self._principal = options.get(f"{_PREFIX}PrincipalClaimName", "").strip() or "sub"
        self._scope = options.get(f"{_PREFIX}ScopeClaimName", "").strip() or "scope"
        self._required = options.get(f"{_PREFIX}RequiredScope", "").split()
        skew = options.get(f"{_PREFIX}AllowableClockSkewMs", "").strip() or "0"
        if not skew.isdigit():
            raise ValueError(f"{_PREFIX}AllowableClockSkewMs has to be a number of milliseconds")
        self._skew_ms = int(skew)

    def __call__(self, text: str) -> BearerToken:
        """
        Raises:
            InvalidToken: the token is malformed, has a signature, has ended, or lacks a scope.
        """
        header, claims = _parts(text)
        if header.get("alg") != "none":
            raise InvalidToken("it has a signature, and those without are expected")
        user, now_ms = claims.get(self._principal), self._clock.now_ms()
        if not isinstance(user, str) or not user.strip():
            raise InvalidToken(f"it has no {self._principal}")
        ends, begins = time_in(claims, "exp"), time_in(claims, "iat")
        if ends is None:
            raise InvalidToken("it has no exp")
        if begins is not None and 1000 * begins > now_ms + self._skew_ms:
            raise InvalidToken("it begins later")
        if now_ms - self._skew_ms >= 1000 * ends or (begins is not None and ends <= begins):
            raise InvalidToken("it has ended")
        scopes = _scopes(claims.get(self._scope))
        if not set(self._required) <= scopes:
            raise InvalidToken("it lacks a scope", f"[{', '.join(self._required)}]")
        return BearerToken(user, round(1000 * ends))


def _parts(text: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    parts = text.split(".")
    if len(parts) != 3 or parts[2]:
        raise InvalidToken("it is no token without a signature")
    return _decoded(parts[0]), _decoded(parts[1])


def _decoded(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise InvalidToken("a part of it is no JSON in base64") from None
    if not isinstance(found, dict):
        raise InvalidToken("a part of it is no object of JSON")
    return found


def _scopes(value: object) -> set[str]:
    if isinstance(value, str):
        return {value.strip(), *value.split()}
    if isinstance(value, list):
        return {str(scope).strip() for scope in value}
    return set()
