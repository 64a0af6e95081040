"""
Tokens with a signature, verified by the keys of their issuer (KIP-768; Kafka
``OAuthBearerValidatorCallbackHandler``).
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.error import URLError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from barnabas.protocol.structs import struct
from barnabas.server.security.files import read_file
from barnabas.server.security.sasl.oauthbearer import BearerToken, InvalidToken, time_in
from barnabas.storage.clock import Clock
from barnabas.storage.config.option_values import ConfigError

if TYPE_CHECKING:
    from http.client import HTTPMessage, HTTPResponse

    from joserfc.jwk import KeySet

logger = logging.getLogger(__name__)

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""
The signatures that are accepted: those whose keys the broker need not keep secret.
"""
MOST_BYTES: Final = 1024 * 1024
TIMEOUT_S: Final = 10.0
"""
Of each step: connecting, and reading.
"""
MOST_S: Final = 30.0
"""
Of the answer.
"""
LEAST_PAUSE_S: Final = 10.0
"""
A token with an unknown key makes the broker ask for the keys again, no sooner than this.
"""


@struct(kw_only=True)
class TokenRules:
    """
    What a token has to say.
    """

    audience: Sequence[str]
    issuer: str | None
    skew_s: int
    user_claim: str


class JsonWebKeys:
    """
    The keys of an issuer, fetched again by a thread when they are old or one is missing.
    """

    def __init__(self, url: str, refresh_s: float, clock: Clock) -> None:
        """
        Fetch the keys; it blocks.

        Raises:
            ConfigError: they cannot be had, or the library for them is not installed.
        """
        self._url = url
        self._refresh_s = refresh_s
        self._clock = clock
        try:
            self.current = _fetch(url, clock)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"sasl.oauthbearer.jwks.endpoint.url: {url} has no keys: {error}"
            ) from None
        self._asked_s = clock.monotonic()
        self._is_fetching = False

    def look(self, *, is_missing: bool) -> None:
        """
        Fetch the keys again, if they are old or one *is_missing*.
        """
        age = self._clock.monotonic() - self._asked_s
        if age < (LEAST_PAUSE_S if is_missing else self._refresh_s) or self._is_fetching:
            return
        self._is_fetching = True
        threading.Thread(target=self._fetch_again, name="jwks", daemon=True).start()

    def _fetch_again(self) -> None:
        try:
            self.current = _fetch(self._url, self._clock)
        except (OSError, ValueError) as error:
            logger.warning("%s has no keys now, the old ones stay: %s", self._url, error)
        finally:
            self._asked_s = self._clock.monotonic()
            self._is_fetching = False


class SignedValidator:
    """
    Verifies tokens.
    """

    def __init__(self, keys: JsonWebKeys, rules: TokenRules, clock: Clock) -> None:
        self._keys = keys
        self._rules = rules
        self._clock = clock

    def __call__(self, text: str) -> BearerToken:
        """
        Raises:
            InvalidToken: the signature is wrong, its key is unknown, or a claim is missing.
        """
        from joserfc import jwt

        self._keys.look(is_missing=False)
        try:
            token = jwt.decode(text, self._keys.current, algorithms=ALGORITHMS)
        except Exception as error:
            # Clients choose the fields of a header; the library raises errors of every class.
            self._keys.look(is_missing=True)
            raise InvalidToken(str(error) or type(error).__name__) from None
        return self._checked(token.claims)

    def _checked(self, claims: dict[str, Any]) -> BearerToken:
        rules, now_s = self._rules, self._clock.now_ms() / 1000
        user = claims.get(rules.user_claim)
        if not isinstance(user, str) or not user.strip():
            raise InvalidToken(f"it has no {rules.user_claim}")
        ends, begins, since = (time_in(claims, name) for name in ("exp", "iat", "nbf"))
        if ends is None or begins is None:
            raise InvalidToken("it has no exp or no iat")
        if now_s - rules.skew_s >= ends:
            raise InvalidToken("it has ended")
        if since is not None and now_s + rules.skew_s < since:
            raise InvalidToken("it begins later")
        if rules.issuer and claims.get("iss") != rules.issuer:
            raise InvalidToken("it is of another issuer")
        audience = claims.get("aud")
        named = audience if isinstance(audience, list) else [audience]
        if rules.audience and not set(rules.audience) & set(map(str, named)):
            raise InvalidToken("it is for another audience")
        return BearerToken(user, round(1000 * ends))


def _read(answer: HTTPResponse, clock: Clock) -> bytes:
    """
    The body of an answer, or as much of it as is too much.

    Raises:
        OSError: it takes longer than ``MOST_S``.
    """
    began, data = clock.monotonic(), b""
    while len(data) <= MOST_BYTES and (more := answer.read1(MOST_BYTES)):
        data += more
        if clock.monotonic() - began > MOST_S:
            raise OSError(f"it took longer than {MOST_S:.0f} s")
    return data


class _Redirects(HTTPRedirectHandler):
    """
    Follows redirects, but none from https to anything else: keys that came over a connection
    without a certificate would be anybody's.
    """

    def redirect_request(  # noqa: PLR0917  # as in the standard library
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        schemes = {"https"} if req.type == "https" else {"http", "https"}
        if urlsplit(newurl).scheme not in schemes:
            raise URLError(f"it redirects from {req.type} to {newurl}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def open_url(url: str) -> HTTPResponse:
    """
    The answer to a request for *url*.

    Raises:
        OSError: there is none.
    """
    answer: HTTPResponse = build_opener(_Redirects).open(url, timeout=TIMEOUT_S)
    return answer


def _fetch(url: str, clock: Clock) -> KeySet:
    """
    Raises:
        OSError: the keys cannot be read.
        ValueError: what is there is no set of keys, or the library for them is not installed.
    """
    try:
        from joserfc.jwk import KeySet
    except ImportError:
        raise ValueError(
            "keys need the library joserfc: pip install 'barnabas[security]'"
        ) from None
    parts = urlsplit(url)
    if parts.scheme == "file":
        data = read_file(unquote(parts.path))
    elif parts.scheme in ("http", "https"):
        try:
            with open_url(url) as answer:
                data = _read(answer, clock)
        except URLError as error:
            raise OSError(str(error.reason)) from None
    else:
        raise ValueError("the URL begins with https:// or file://")
    if len(data) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES} bytes")
    try:
        return KeySet.import_key_set(json.loads(data))
    except Exception as error:
        raise ValueError(f"it is no set of keys: {error}") from None
