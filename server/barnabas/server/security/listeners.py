"""
The security of the listeners: what their options come to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.protocol.structs import struct
from barnabas.server.config.security import (
    ListenerSecurityOptions,
    listener_options,
    listener_prefix,
    mechanism_option,
)
from barnabas.server.security.jaas import parse_jaas
from barnabas.server.security.principal import ANONYMOUS, USER, KafkaPrincipal
from barnabas.server.security.sasl.authentication import Authentication, Mechanism
from barnabas.server.security.sasl.plain import PLAIN, USER_PREFIX, PlainSaslServer
from barnabas.server.security.sasl.scram import SCRAM_HASHES, ScramCredential, ScramSaslServer
from barnabas.server.security.tls.principal_mapping import PrincipalRule, name_of, parse_rules
from barnabas.storage.config.option_values import ConfigError, InvalidValue

if TYPE_CHECKING:
    from ssl import SSLContext

    from barnabas.server.config import Listener
    from barnabas.storage.clock import Clock

MECHANISMS: Final = (PLAIN, *SCRAM_HASHES)
"""
The mechanisms that this broker has.
"""
_PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"

CredentialOf = Callable[[str, str], ScramCredential | None]
"""
The SCRAM credential of a mechanism and a user.
"""


@struct(kw_only=True)
class ListenerSecurity:
    """
    How the clients of one listener show who they are.
    """

    tls: SSLContext | None
    rules: Iterable[PrincipalRule]
    mechanisms: Mapping[str, Mechanism]
    """Empty where clients need no SASL."""
    max_receive_bytes: int
    failure_delay_s: float
    """How long a client that has failed waits for its answer."""

    def authentication(self, clock: Clock) -> Authentication | None:
        """
        Where a new client of the listener begins; None if it needs no SASL.
        """
        return Authentication(self.mechanisms, clock) if self.mechanisms else None

    def principal_of(self, certificate: bytes | None) -> KafkaPrincipal | None:
        """
        The principal of a client with a *certificate* (DER), or without one; None if no rule is for
        its subject.

        Raises:
            NoSupport: the library that reads certificates is not installed.
        """
        if certificate is None or self.mechanisms:
            return ANONYMOUS
        from barnabas.server.security.tls.subject import subject_of

        name = name_of(subject_of(certificate), list(self.rules))
        return None if name is None else KafkaPrincipal(USER, name)


def secure_listeners(
    listeners: Iterable[Listener], texts: Mapping[str, str | None], credential_of: CredentialOf
) -> dict[str, ListenerSecurity]:
    """
    The security of the *listeners* by their names; those of PLAINTEXT have none.

    Args:
        texts: all options, as they were given.

    Raises:
        ConfigError: options of a listener contradict each other, or a store cannot be used.
    """
    secured = {}
    for listener in listeners:
        if listener.is_plaintext:
            continue
        try:
            secured[listener.name] = _secure(listener, texts, credential_of)
        except ConfigError as error:
            raise ConfigError(f"listener {listener.name}: {error}") from None
    return secured


def _secure(
    listener: Listener, texts: Mapping[str, str | None], credential_of: CredentialOf
) -> ListenerSecurity:
    options = listener_options(listener.name, texts)
    tls = None
    if listener.has_tls:
        from barnabas.server.security.tls.context import tls_context

        tls = tls_context(options)
    return ListenerSecurity(
        tls=tls,
        rules=parse_rules(options.ssl_principal_mapping_rules),
        mechanisms=_mechanisms(listener, options, texts, credential_of)
        if listener.has_sasl
        else {},
        max_receive_bytes=options.sasl_server_max_receive_size,
        failure_delay_s=options.connection_failed_authentication_delay_ms / 1000,
    )


def _mechanisms(
    listener: Listener,
    options: ListenerSecurityOptions,
    texts: Mapping[str, str | None],
    credential_of: CredentialOf,
) -> dict[str, Mechanism]:
    names = options.sasl_enabled_mechanisms
    unknown = [name for name in names if name not in MECHANISMS]
    if unknown or not names:
        raise InvalidValue(
            "sasl.enabled.mechanisms",
            ",".join(names),
            f"there are {', '.join(MECHANISMS)} here",
        )
    return {
        name: Mechanism(
            name=name,
            server=_server(listener, name, texts, credential_of),
            max_reauth_ms=_max_reauth_ms(listener, name, options, texts),
        )
        for name in names
    }


def _server(
    listener: Listener,
    mechanism: str,
    texts: Mapping[str, str | None],
    credential_of: CredentialOf,
) -> Callable[[], PlainSaslServer | ScramSaslServer]:
    if mechanism == PLAIN:
        passwords = _plain_passwords(listener, texts)
        return lambda: PlainSaslServer(passwords)
    return lambda: ScramSaslServer(mechanism, lambda user: credential_of(mechanism, user))


def _plain_passwords(listener: Listener, texts: Mapping[str, str | None]) -> dict[str, str]:
    name = f"{listener_prefix(listener.name)}plain.sasl.jaas.config"
    text = mechanism_option(listener.name, PLAIN, "sasl.jaas.config", texts)
    if not text:
        raise ConfigError(f"PLAIN needs its users in {name}")
    try:
        modules = parse_jaas(text)
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None
    if len(modules) != 1 or modules[0].name != _PLAIN_MODULE:
        raise ConfigError(f"{name}: it has to have one login module, {_PLAIN_MODULE}")
    return {
        key.removeprefix(USER_PREFIX): value
        for key, value in modules[0].options.items()
        if key.startswith(USER_PREFIX)
    }


def _max_reauth_ms(
    listener: Listener,
    mechanism: str,
    options: ListenerSecurityOptions,
    texts: Mapping[str, str | None],
) -> int:
    text = mechanism_option(listener.name, mechanism, "connections.max.reauth.ms", texts)
    if text is None:
        return options.connections_max_reauth_ms
    option = ListenerSecurityOptions.options()["connections.max.reauth.ms"]
    value: int = option.parse(text)
    return value
