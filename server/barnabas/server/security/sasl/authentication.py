"""
How far a client of a SASL listener has come (Kafka ``SaslServerAuthenticator``).

::

    start --ApiVersions--> versions told --SaslHandshake--> tokens --SaslAuthenticate--> done
      +--------------------SaslHandshake----------------------^                            |
                                                              +-------SaslHandshake--------+
                                                                authenticates again (KIP-368)

Nothing here reads or writes: ``Dispatcher`` asks whether a request may pass, and the handlers of
the two APIs pass on what is in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from barnabas.coordination.security.principal import USER, KafkaPrincipal
from barnabas.protocol import apis
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.structs import struct
from barnabas.server.security.errors import AuthenticationFailed
from barnabas.server.security.sasl.mechanism import SaslServer
from barnabas.storage.clock import Clock

LEAST_PAUSE_S: Final = 1.0
"""
A client that has begun to authenticate again may not begin once more sooner.
"""


class Verdict(Enum):
    """
    What happens to a request.
    """

    PASS = 1
    REFUSE = 2
    """It is answered with ILLEGAL_SASL_STATE, and the connection is closed."""
    CLOSE = 3
    """The connection is closed without an answer."""


class _State(Enum):
    START = 1
    VERSIONS_TOLD = 2
    TOKENS = 3
    RAW_TOKENS = 4
    WRONG_MECHANISM = 5
    DONE = 6


_IN_STATE: Final = {
    _State.START: (apis.API_VERSIONS.key, apis.SASL_HANDSHAKE.key),
    _State.VERSIONS_TOLD: (apis.SASL_HANDSHAKE.key,),
    _State.TOKENS: (apis.SASL_AUTHENTICATE.key,),
    _State.RAW_TOKENS: (),
    _State.WRONG_MECHANISM: (),
}


@struct(kw_only=True)
class Mechanism:
    """
    A mechanism of a listener.
    """

    name: str
    server: Callable[[], SaslServer]
    """Begins an exchange with a client."""
    max_reauth_ms: int = 0
    """``connections.max.reauth.ms``; 0 means no limit."""


class Authentication:
    """
    Invariants:

    1. Before the client is authenticated only ApiVersions, SaslHandshake and SaslAuthenticate pass,
       each at its place.
    2. After the session has ended only SaslHandshake passes.
    3. The principal of a connection never changes.
    """

    __slots__ = (
        "_began_s",
        "_clock",
        "_ends_s",
        "_mechanism",
        "_mechanisms",
        "_server",
        "_state",
        "is_by_token",
        "principal",
        "session_lifetime_ms",
    )

    def __init__(self, mechanisms: Mapping[str, Mechanism], clock: Clock) -> None:
        """
        Args:
            mechanisms: those of the listener, by name.
        """
        self._mechanisms = mechanisms
        self._clock = clock
        self._state = _State.START
        self._mechanism: Mechanism | None = None
        self._server: SaslServer | None = None
        self._began_s = -math.inf  # the last time that it authenticated again
        self._ends_s = math.inf
        self.principal: KafkaPrincipal | None = None
        """None before the client has authenticated."""
        self.is_by_token = False
        """Whether the client has shown a delegation token."""
        self.session_lifetime_ms = 0
        """How long the client may go on before it has to authenticate again; 0 for ever."""

    @property
    def mechanisms(self) -> list[str]:
        """
        The names of the mechanisms of the listener.
        """
        return list(self._mechanisms)

    @property
    def takes_raw_tokens(self) -> bool:
        """
        Whether the next frame is a token without a header (SaslHandshake v0).
        """
        return self._state is _State.RAW_TOKENS

    @property
    def is_in_exchange(self) -> bool:
        """
        Whether the next token is expected.
        """
        return self._server is not None

    @property
    def is_final(self) -> bool:
        """
        Whether the client is authenticated for ever.
        """
        return self._state is _State.DONE and self._ends_s == math.inf

    def verdict(self, key: int) -> Verdict:
        """
        What happens to a request of the API with this *key*.
        """
        state = self._state
        if state is _State.DONE:
            is_over = self._clock.monotonic() >= self._ends_s
            is_handshake = key == apis.SASL_HANDSHAKE.key
            return Verdict.CLOSE if is_over and not is_handshake else Verdict.PASS
        if key in _IN_STATE[state]:
            return Verdict.PASS
        return Verdict.REFUSE if state is _State.TOKENS else Verdict.CLOSE

    def note_versions_told(self) -> None:
        """
        The client has got the versions of the APIs.
        """
        if self._state is _State.START:
            self._state = _State.VERSIONS_TOLD

    def begin(self, mechanism: str, version: int) -> ErrorCode:
        """
        Begin the exchange of tokens.

        Args:
            version: of SaslHandshake.

        Returns:
            NONE; UNSUPPORTED_SASL_MECHANISM, after which the connection is closed;
            ILLEGAL_SASL_STATE, after which it goes on as it was.
        """
        now = self._clock.monotonic()
        if self._state is _State.DONE and (
            self._ends_s == math.inf or now - self._began_s < LEAST_PAUSE_S
        ):
            return ErrorCode.ILLEGAL_SASL_STATE
        found = self._mechanisms.get(mechanism)
        if found is None:
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM
        if self.principal is not None:
            self._began_s = now
        if self._mechanism is not None and self._mechanism.name != mechanism:
            self._state = _State.WRONG_MECHANISM
            return ErrorCode.NONE
        self._mechanism = found
        self._server = found.server()
        self._state = _State.TOKENS if version > 0 else _State.RAW_TOKENS
        return ErrorCode.NONE

    def evaluate(self, token: bytes) -> bytes:
        """
        Take the client's next token, and return the broker's.

        Raises:
            AuthenticationFailed: the client is not who it says it is; the connection has to be
                closed. The message is for the client.
            NeedsWork: the same token has to be evaluated once more, after some work.
        """
        server, mechanism = self._server, self._mechanism
        assert server is not None, "a mechanism was chosen"
        assert mechanism is not None, "a mechanism was chosen"
        try:
            answer = server.evaluate(token)
            if server.user is not None:
                self._finish(KafkaPrincipal(USER, server.user), server, mechanism)
        except AuthenticationFailed as error:
            if error.message is None:
                again = "re-authentication" if self.principal is not None else "authentication"
                error.message = (
                    f"Authentication failed during {again} due to invalid credentials with SASL"
                    f" mechanism {mechanism.name}"
                )
            raise
        return answer

    def _finish(self, principal: KafkaPrincipal, server: SaslServer, mechanism: Mechanism) -> None:
        before = self.principal
        if before is not None and before != principal:
            sentence = (
                "Cannot change principals during re-authentication from"
                f" {before.type}.{before.name}: {principal.type}.{principal.name}"
            )
            raise AuthenticationFailed(sentence, sentence)
        lifetimes = [mechanism.max_reauth_ms] if mechanism.max_reauth_ms else []
        if server.expires_ms is not None:
            lifetimes.append(max(0, server.expires_ms - self._clock.now_ms()))
        self.session_lifetime_ms = min(lifetimes, default=0)
        self._ends_s = (
            self._clock.monotonic() + self.session_lifetime_ms / 1000 if lifetimes else math.inf
        )
        self.principal = principal
        self.is_by_token = server.is_by_token
        self._server = None
        self._state = _State.DONE
