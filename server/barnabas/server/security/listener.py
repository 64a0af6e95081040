"""
The security of the listeners: what their options come to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.coordination.security.principal import ANONYMOUS, USER, KafkaPrincipal
from barnabas.coordination.security.sasl.credentials import TokenLogin
from barnabas.coordination.security.sasl.decoys import (
    SCRAM_HASHES,
    Decoys,
    ScramCredential,
    fresh_decoys,
)
from barnabas.protocol.structs import struct
from barnabas.server.config.security import (
    ListenerSecurityOptions,
    listener_options,
    listener_prefix,
)
from barnabas.server.security.files import read_file
from barnabas.server.security.jaas import parse_jaas, parse_jaas_file
from barnabas.server.security.sasl.authentication import Authentication, Mechanism
from barnabas.server.security.sasl.mechanism import SaslServer
from barnabas.server.security.sasl.oauthbearer import (
    OAUTHBEARER,
    BearerToken,
    InvalidToken,
    OAuthBearerSaslServer,
    Validate,
)
from barnabas.server.security.sasl.plain import PLAIN, USER_PREFIX, PlainSaslServer
from barnabas.server.security.sasl.scram import ScramSaslServer
from barnabas.server.security.tls.principal_mapping import PrincipalRule, name_of, parse_rules
from barnabas.storage.config.option_values import ConfigError, InvalidValue

if TYPE_CHECKING:
    from barnabas.server.config import Listener
    from barnabas.server.security.sasl.signed_tokens import JsonWebKeys
    from barnabas.server.security.tls.context import ListenerTls
    from barnabas.storage.clock import Clock

MECHANISMS: Final = (PLAIN, *SCRAM_HASHES, OAUTHBEARER)
"""
The mechanisms that this broker has.
"""
_LOGIN_MODULES: Final = {
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_VALIDATOR: Final = "OAuthBearerValidatorCallbackHandler"


def _refuse_token(_token: str) -> BearerToken:
    raise InvalidToken("the keys of its issuer are not there")


@struct
class SaslResources:
    """
    The credentials, keys and clock that mechanisms use.
    """

    credential_of: Callable[[str, str], ScramCredential | None]
    """The SCRAM credential of a mechanism and a user."""
    token_of: Callable[[str, str], TokenLogin | None]
    """The delegation token of a mechanism and an id."""
    clock: Clock
    keys: dict[str, JsonWebKeys]
    """The keys of issuers by their URLs, which are fetched once."""
    may_fetch: bool = True
    """True to fetch missing keys, which takes time."""
    decoys: Callable[[], Decoys] = fresh_decoys
    """The credentials of users and tokens that do not exist."""


@struct(kw_only=True)
class ListenerSecurity:
    """
    How the clients of one listener show who they are.
    """

    options: ListenerSecurityOptions
    tls: ListenerTls | None
    rules: Iterable[PrincipalRule]
    mechanisms: Mapping[str, Mechanism]
    """Empty where clients need no SASL."""
    max_receive_bytes: int
    failure_delay_s: float
    """How long a client that has failed waits for its answer."""

    def check_replacement(self, new: ListenerSecurity) -> None:
        """
        Raises:
            ConfigError: clients that know the listener by its key store would not know it by the
                *new* one.
        """
        if self.tls is None or new.tls is None:
            return
        from barnabas.server.security.tls.context import check_replacement

        check_replacement(self.tls, new.tls, new.options)

    def authentication(self, clock: Clock) -> Authentication | None:
        """
        The SASL exchange of a new client; None if the listener needs no SASL.
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
    listeners: Iterable[Listener], texts: Mapping[str, str | None], resources: SaslResources
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
            secured[listener.name] = _secure(listener, texts, resources)
        except ConfigError as error:
            raise ConfigError(f"listener {listener.name}: {error}") from None
    return secured


def _secure(
    listener: Listener, texts: Mapping[str, str | None], resources: SaslResources
) -> ListenerSecurity:
    options = listener_options(listener.name, texts)
    tls = None
    if listener.has_tls:
        from barnabas.server.security.tls.context import listener_tls

        tls = listener_tls(options)
    return ListenerSecurity(
        options=options,
        tls=tls,
        rules=parse_rules(options.ssl_principal_mapping_rules),
        mechanisms=_mechanisms(listener, options, texts, resources) if listener.has_sasl else {},
        max_receive_bytes=options.sasl_server_max_receive_size,
        failure_delay_s=options.connection_failed_authentication_delay_ms / 1000,
    )


def _mechanisms(
    listener: Listener,
    options: ListenerSecurityOptions,
    texts: Mapping[str, str | None],
    resources: SaslResources,
) -> dict[str, Mechanism]:
    names = options.sasl_enabled_mechanisms
    unknown = [name for name in names if name not in MECHANISMS]
    if unknown or not names:
        raise InvalidValue(
            "sasl.enabled.mechanisms",
            ",".join(names),
            f"there are {', '.join(MECHANISMS)} here",
        )
    found = {}
    for name in names:
        own = listener_options(listener.name, texts, name)
        found[name] = Mechanism(
            name=name,
            server=_server(listener, name, own, texts, resources),
            max_reauth_ms=own.connections_max_reauth_ms,
        )
    return found


def _server(
    listener: Listener,
    mechanism: str,
    options: ListenerSecurityOptions,
    texts: Mapping[str, str | None],
    resources: SaslResources,
) -> Callable[[], SaslServer]:
    if mechanism == PLAIN:
        passwords = {
            key.removeprefix(USER_PREFIX): value
            for key, value in _login_options(listener, mechanism, texts).items()
            if key.startswith(USER_PREFIX)
        }
        return lambda: PlainSaslServer(passwords)
    if mechanism == OAUTHBEARER:
        validate = _token_validator(listener, options, texts, resources)
        return lambda: OAuthBearerSaslServer(validate)
    return lambda: ScramSaslServer(
        mechanism,
        lambda user: resources.credential_of(mechanism, user),
        lambda token_id: resources.token_of(mechanism, token_id),
        resources.decoys(),
    )


def _token_validator(
    listener: Listener,
    options: ListenerSecurityOptions,
    texts: Mapping[str, str | None],
    resources: SaslResources,
) -> Validate:
    handler = options.sasl_server_callback_handler_class
    login = _login_options(listener, OAUTHBEARER, texts)
    if not handler:
        from barnabas.server.security.sasl.unsecured_tokens import UnsecuredValidator

        try:
            return UnsecuredValidator(login, resources.clock)
        except ValueError as error:
            raise ConfigError(str(error)) from None
    if not handler.endswith(_VALIDATOR):
        raise InvalidValue(
            "sasl.server.callback.handler.class", handler, f"the one class here is {_VALIDATOR}"
        )
    url = options.sasl_oauthbearer_jwks_endpoint_url
    if not url:
        raise ConfigError("sasl.oauthbearer.jwks.endpoint.url is required to verify tokens")
    from barnabas.server.security.sasl.signed_tokens import (
        JsonWebKeys,
        SignedValidator,
        TokenRules,
    )

    if url not in resources.keys and not resources.may_fetch:
        return _refuse_token
    if url not in resources.keys:
        refresh_s = options.sasl_oauthbearer_jwks_endpoint_refresh_ms / 1000
        resources.keys[url] = JsonWebKeys(url, refresh_s, resources.clock)
    rules = TokenRules(
        audience=[name for name in options.sasl_oauthbearer_expected_audience if name],
        issuer=options.sasl_oauthbearer_expected_issuer,
        skew_s=options.sasl_oauthbearer_clock_skew_seconds,
        user_claim=options.sasl_oauthbearer_sub_claim_name,
    )
    return SignedValidator(resources.keys[url], rules, resources.clock)


def _login_options(
    listener: Listener, mechanism: str, texts: Mapping[str, str | None]
) -> Mapping[str, str]:
    """
    The options of the login module of a mechanism.
    """
    name = f"{listener_prefix(listener.name)}{mechanism.lower()}.sasl.jaas.config"
    text, module = texts.get(name), _LOGIN_MODULES[mechanism]
    if not text:
        file = texts.get("barnabas.jaas.file")
        if not file:
            raise ConfigError(f"{mechanism} needs {name}={module} required ...;")
        return _options_in_file(file, listener, module)
    try:
        modules = parse_jaas(text)
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None
    if len(modules) != 1 or modules[0].name != module:
        raise ConfigError(f"{name}: it has to have one login module, {module}")
    return modules[0].options


def _options_in_file(file: str, listener: Listener, module: str) -> Mapping[str, str]:
    """
    The options of a login module in the section of the file that is for a listener, or for all of
    them (Kafka ``JaasContext.loadServerContext``).
    """
    try:
        sections = parse_jaas_file(read_file(file).decode())
    except OSError as error:
        raise ConfigError(f"barnabas.jaas.file: {file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"barnabas.jaas.file: {file}: {error}") from None
    for section in (f"{listener.name.lower()}.KafkaServer", "KafkaServer"):
        for found in sections.get(section, ()):
            if found.name == module:
                return found.options
    raise ConfigError(f"{file} has no {module} in its section KafkaServer")
