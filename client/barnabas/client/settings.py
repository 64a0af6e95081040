"""
Client options, by the names of Apache Kafka's Java clients.

``sasl.username``, ``sasl.password`` and ``ssl.ca.location`` are librdkafka's. Options that affect
only how a Java client works are accepted without effect. Any other unknown option is refused,
because it might change what is read or written. Spark gives each option the prefix ``kafka.``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.client.errors import InvalidOption

PREFIX: Final = "kafka."
BOOTSTRAP: Final = "kafka.bootstrap.servers"

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
_PROTOCOLS: Final = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

_SECURITY: Final = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "sasl.username",
    "sasl.password",
    "sasl.oauthbearer.token.endpoint.url",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.ca.location",
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
)
_COMMON: Final = ("bootstrap.servers", "client.id", "request.timeout.ms", *_SECURITY)
READER: Final = ("isolation.level", "fetch.max.wait.ms", "max.partition.fetch.bytes")
WRITER: Final = (
    "acks",
    "batch.size",
    "compression.type",
    "delivery.timeout.ms",
    "enable.idempotence",
    "max.request.size",
    "transaction.timeout.ms",
)
_WITHOUT_EFFECT: Final = frozenset(
    {
        "allow.auto.create.topics",
        "buffer.memory",
        "check.crcs",
        "client.dns.lookup",
        "connections.max.idle.ms",
        "default.api.timeout.ms",
        "fetch.max.bytes",
        "fetch.min.bytes",
        "group.id",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.poll.interval.ms",
        "max.poll.records",
        "metadata.max.age.ms",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retries",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "sasl.login.callback.handler.class",
        "send.buffer.bytes",
        "session.timeout.ms",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
    }
)
"""Options that affect how a Java client works, but not what it reads or writes."""

_LAST_PORT: Final = 65_535
_JAAS: Final = re.compile(
    r"\b(username|password|tokenauth|clientId|clientSecret|scope)"
    r"""\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|(\w+))"""
)


@dataclass(frozen=True)
class OAuthClient:
    """
    The source of a client's tokens (RFC 6749, 4.4).
    """

    token_url: str
    """``https:`` for a request to an issuer, or ``file:`` for a file that has the token."""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""


@dataclass(frozen=True)
class Sasl:
    """
    A SASL mechanism with its credentials.
    """

    mechanism: str
    username: str = ""
    password: str = field(default="", repr=False)
    is_token: bool = False
    """The credentials are those of a delegation token (KIP-48)."""
    oauth: OAuthClient | None = None


@dataclass(frozen=True)
class Tls:
    """
    Certificates to trust and to present. All files are PEM.
    """

    ca_file: str | None = None
    ca_text: str | None = None
    key_file: str | None = None
    """The client's certificate and its key."""
    key_password: str | None = field(default=None, repr=False)
    checks_host: bool = True


@dataclass(frozen=True)
class ClientSettings:
    """
    How to reach a cluster.
    """

    bootstrap: tuple[tuple[str, int], ...]
    client_id: str = "barnabas-spark"
    timeout_s: float = 30.0
    """Timeout of one response, and of the retries of a retriable error."""
    sasl: Sasl | None = None
    tls: Tls | None = None
    others: Mapping[str, str] = field(default_factory=dict)
    """Options of readers and writers, by their names without the prefix."""

    @property
    def timeout_ms(self) -> int:
        return int(1000 * self.timeout_s)


def parse_client(given: Mapping[str, str], kinds: tuple[str, ...]) -> ClientSettings:
    """
    The settings that a query's options with the prefix ``kafka.`` describe.

    Args:
        given: all options of a query; options without the prefix are skipped.
        kinds: ``READER`` or ``WRITER``.

    Raises:
        InvalidOption: an option is unknown, or its value cannot be used.
    """
    options = {
        name.lower().removeprefix(PREFIX): value
        for name, value in given.items()
        if name.lower().startswith(PREFIX)
    }
    return client_settings(options, kinds, prefix=PREFIX)


def client_settings(
    given: Mapping[str, str], kinds: tuple[str, ...] = (), *, prefix: str = ""
) -> ClientSettings:
    """
    The settings that Kafka's client options describe.

    Args:
        given: options by their Kafka names, in lower case.
        kinds: names that are accepted beside the common ones: ``READER`` or ``WRITER``.
        prefix: stands before each name in messages.

    Raises:
        InvalidOption: an option is unknown, or its value cannot be used.
    """
    options = {name: str(value).strip() for name, value in given.items()}
    _check_names(options, kinds, prefix)
    protocol = options.get("security.protocol", PLAINTEXT).upper()
    if protocol not in _PROTOCOLS:
        raise InvalidOption(
            f"{prefix}security.protocol is one of {', '.join(_PROTOCOLS)}, not {protocol!r}."
        )
    return ClientSettings(
        bootstrap=tuple(_addresses(options.get("bootstrap.servers", ""), prefix)),
        client_id=options.get("client.id", ClientSettings.client_id),
        timeout_s=number(options, "request.timeout.ms", 30_000, at_least=1, prefix=prefix) / 1000,
        sasl=_sasl(options, prefix) if protocol.startswith("SASL") else None,
        tls=_tls(options, prefix) if protocol.endswith("SSL") else None,
        others={name: options[name] for name in kinds if name in options},
    )


def _check_names(options: Mapping[str, str], kinds: tuple[str, ...], prefix: str) -> None:
    known = {*_COMMON, *kinds}
    for name in options:
        if name in known or name in _WITHOUT_EFFECT or name in (*READER, *WRITER):
            continue
        close = difflib.get_close_matches(name, known, 1)
        hint = f" Did you mean {prefix}{close[0]}?" if close else ""
        raise InvalidOption(f"The client has no option {prefix}{name}.{hint}")


def number(
    options: Mapping[str, str],
    name: str,
    default: int,
    *,
    at_least: int = 0,
    prefix: str = PREFIX,
) -> int:
    """
    The value of an option that is a whole number.

    Raises:
        InvalidOption: the value is no number, or less than *at_least*.
    """
    text = options.get(name, str(default))
    if not re.fullmatch(r"[0-9]+", text) or int(text) < at_least:
        raise InvalidOption(f"{prefix}{name} is a number of at least {at_least}, not {text!r}.")
    return int(text)


def _addresses(text: str, prefix: str) -> list[tuple[str, int]]:
    name = f"{prefix}bootstrap.servers"
    addresses = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        host, _, port = each.rpartition("://")[2].rpartition(":")
        if not host or not port.isdigit() or int(port) > _LAST_PORT:
            raise InvalidOption(f"{name} is a list like host:9092,other:9092, not {text!r}.")
        addresses.append((host.strip("[]"), int(port)))
    if not addresses:
        raise InvalidOption(f"{name} is missing: the address of a broker, as in host:9092.")
    return addresses


def _sasl(options: Mapping[str, str], prefix: str) -> Sasl:
    mechanism = options.get("sasl.mechanism", "GSSAPI").upper()
    if mechanism not in MECHANISMS:
        raise InvalidOption(
            f"{prefix}sasl.mechanism is one of {', '.join(MECHANISMS)} here, not {mechanism}."
        )
    jaas = {
        found[1]: re.sub(r"\\(.)", r"\1", found[2])
        if found[2] is not None
        else found[3] or found[4]
        for found in _JAAS.finditer(options.get("sasl.jaas.config", ""))
    }
    if mechanism == "OAUTHBEARER":
        return Sasl(mechanism, oauth=_oauth_client(options, jaas, prefix))
    username = options.get("sasl.username", jaas.get("username"))
    password = options.get("sasl.password", jaas.get("password"))
    if username is None or password is None:
        raise InvalidOption(
            f"{mechanism} needs a name and a password: {prefix}sasl.jaas.config with username and"
            f" password, or {prefix}sasl.username and {prefix}sasl.password."
        )
    return Sasl(mechanism, username, password, jaas.get("tokenauth", "").lower() == "true")


def _oauth_client(options: Mapping[str, str], jaas: Mapping[str, str], prefix: str) -> OAuthClient:
    url = options.get("sasl.oauthbearer.token.endpoint.url", "")
    scheme = url.partition(":")[0].lower()
    if scheme not in ("https", "http", "file"):
        raise InvalidOption(
            f"OAUTHBEARER needs {prefix}sasl.oauthbearer.token.endpoint.url, the https: URL of an"
            f" issuer or the file: URL of a file with a token, not {url!r}."
        )
    if scheme != "file" and not {"clientId", "clientSecret"} <= jaas.keys():
        raise InvalidOption(f"{url} needs clientId and clientSecret in {prefix}sasl.jaas.config.")
    return OAuthClient(
        url, jaas.get("clientId", ""), jaas.get("clientSecret", ""), jaas.get("scope", "")
    )


def _tls(options: Mapping[str, str], prefix: str) -> Tls:
    for store in ("truststore", "keystore"):
        kind = options.get(f"ssl.{store}.type", "PEM")
        if kind.upper() != "PEM":
            raise InvalidOption(
                f"{prefix}ssl.{store}.type is PEM here, not {kind}: export the store as PEM, for"
                " example with keytool and openssl pkcs12."
            )
    return Tls(
        ca_file=options.get("ssl.truststore.location", options.get("ssl.ca.location")),
        ca_text=options.get("ssl.truststore.certificates"),
        key_file=options.get("ssl.keystore.location"),
        key_password=options.get("ssl.key.password"),
        checks_host=options.get("ssl.endpoint.identification.algorithm", "https") != "",
    )
