"""
The security of a broker, as it is now.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.server.config.security import LISTENER_PREFIX, SecurityOptions
from barnabas.storage.config.option_values import ConfigError

if TYPE_CHECKING:
    from barnabas.coordination.security.sasl.credentials import TokenLogin
    from barnabas.coordination.security.sasl.decoys import Decoys, ScramCredential
    from barnabas.server.config import Listener
    from barnabas.server.security.listener import ListenerSecurity
    from barnabas.server.security.sasl.signed_tokens import JsonWebKeys
    from barnabas.storage.clock import Clock

logger = logging.getLogger(__name__)


def _fresh_decoys() -> Decoys:
    from barnabas.coordination.security.sasl.decoys import fresh_decoys

    return fresh_decoys()


class Security:
    """
    Has the ``ListenerSecurity`` of each listener that has any.

    A broker whose listeners are all PLAINTEXT loads nothing of TLS and SASL.
    """

    def __init__(
        self,
        listeners: Iterable[Listener],
        credential_of: Callable[[str, str], ScramCredential | None],
        clock: Clock,
        token_of: Callable[[str, str], TokenLogin | None] = lambda _mechanism, _token_id: None,
        decoys: Callable[[], Decoys] = _fresh_decoys,
    ) -> None:
        """
        Args:
            credential_of: the SCRAM credential of a mechanism and a user.
            token_of: the delegation token of a mechanism and an id.
            decoys: the credentials of users and tokens that do not exist; called for each client.
        """
        self._listeners = tuple(each for each in listeners if not each.is_plaintext)
        self._credential_of = credential_of
        self._token_of = token_of
        self._decoys = decoys
        self._clock = clock
        self._keys: dict[str, JsonWebKeys] = {}
        self._secured: Mapping[str, ListenerSecurity] = {}
        self._relevant: Mapping[str, str | None] = {}

    def configure(self, texts: Mapping[str, str | None]) -> None:
        """
        Go by these options, at the start.

        Raises:
            ConfigError: the options are not acceptable; nothing has changed.
        """
        if self._listeners:
            self._secured = self._secure(texts, may_fetch=True)
            self._relevant = _relevant(texts)

    def reconfigure(self, texts: Mapping[str, str | None]) -> None:
        """
        Go by these options from now on, in place of others that have counted for clients. If they
        are not acceptable, since a file has changed after ``check``, the log says so, and nothing
        has changed.
        """
        if not self._listeners:
            return
        try:
            secured = self._secure(texts, may_fetch=True)
            self._check_replacement(secured)
        except ConfigError as error:
            logger.error("The listeners stay as they are: %s", error)
            return
        before, self._secured = self._secured, secured
        self._relevant = _relevant(texts)
        self._warn_of_expiry(
            {name: new for name, new in secured.items() if not _has_same_chain(new, before[name])}
        )

    def warn_of_expiry(self) -> None:
        """
        Log which certificates of listeners end soon, or have ended.
        """
        self._warn_of_expiry(self._secured)

    def _warn_of_expiry(self, secured: Mapping[str, ListenerSecurity]) -> None:
        for name, security in secured.items():
            if security.tls is not None:
                from barnabas.server.security.tls.expiry import warn_of_expiry

                warn_of_expiry(name, security.tls, self._clock.now_ms())

    def certificate_seconds_left(self, listener: Listener) -> float:
        """
        How long the certificates of a listener with TLS are valid; negative after their end.
        """
        from barnabas.server.security.tls.expiry import first_to_end

        tls = self._secured[listener.name].tls
        assert tls is not None, "the listener has TLS"
        return (first_to_end(tls).ends_ms - self._clock.now_ms()) / 1000

    def check(self, texts: Mapping[str, str | None], *, reads_again: bool = False) -> None:
        """
        Args:
            reads_again: whether a store counts as new although its options are those of now.

        Raises:
            ConfigError: these options are not acceptable, though others are now.
        """
        if self._listeners and (reads_again or _relevant(texts) != self._relevant):
            self._check_replacement(self._secure(texts, may_fetch=False))

    def _check_replacement(self, secured: Mapping[str, ListenerSecurity]) -> None:
        for name, new in secured.items():
            old = self._secured.get(name)
            if old is None:
                continue
            try:
                old.check_replacement(new)
            except ConfigError as error:
                raise ConfigError(f"listener {name}: {error}") from None

    def _secure(
        self, texts: Mapping[str, str | None], *, may_fetch: bool
    ) -> Mapping[str, ListenerSecurity]:
        from barnabas.server.security.listener import SaslResources, secure_listeners

        resources = SaslResources(
            self._credential_of,
            self._token_of,
            self._clock,
            self._keys,
            may_fetch,
            self._decoys,
        )
        return secure_listeners(self._listeners, texts, resources)

    def of(self, listener: Listener) -> ListenerSecurity | None:
        """
        The security of a listener; None if it is PLAINTEXT.
        """
        return self._secured.get(listener.name)

    def failure_delay_s(self, listener: Listener) -> float:
        """
        How long a client that failed to authenticate waits for its answer.
        """
        security = self.of(listener)
        return 0.0 if security is None else security.failure_delay_s


def _has_same_chain(one: ListenerSecurity, other: ListenerSecurity) -> bool:
    return one.tls is None or (other.tls is not None and one.tls.chain == other.tls.chain)


def _relevant(texts: Mapping[str, str | None]) -> Mapping[str, str | None]:
    """
    The options that the security of listeners depends on.
    """
    known = SecurityOptions.options()
    return {
        name: text
        for name, text in texts.items()
        if name in known or name.startswith(LISTENER_PREFIX)
    }
