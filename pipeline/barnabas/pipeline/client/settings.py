"""
The settings of a client of a broker, from the options of Spark that begin with ``kafka.``.

Names and values are those of Apache Kafka's Java clients, as Spark's Kafka connector takes them;
``sasl.username``, ``sasl.password`` and ``ssl.ca.location`` are librdkafka's. An option that would
change what is read or written, and that this client does not have, is refused by its name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.pipeline.errors import InvalidOption

PREFIX: Final = "kafka."
BOOTSTRAP: Final = "kafka.bootstrap.servers"

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
_PROTOCOLS: Final = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

_SECURITY: Final = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "sasl.username",
    "sasl.password",
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
        "send.buffer.bytes",
        "session.timeout.ms",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
    }
)
"""They say how a Java client does its work, and nothing of what is read or written."""

_JAAS: Final = re.compile(r'\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|\'([^\']*)\')')


@dataclass(frozen=True)
class Sasl:
    """
    A mechanism of SASL, and what it needs.
    """

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Tls:
    """
    What is trusted, and what the client shows of itself; all files are PEM.
    """

    ca_file: str | None = None
    ca_text: str | None = None
    key_file: str | None = None
    """The certificate of the client and its key."""
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
    """How long one answer may take, and how long an error is retried that may pass."""
    sasl: Sasl | None = None
    tls: Tls | None = None
    others: Mapping[str, str] = field(default_factory=dict)
    """Options of readers and writers, by their names without the prefix."""


def parse_client(given: Mapping[str, str], kinds: tuple[str, ...]) -> ClientSettings:
    """
    Args:
        given: all options of a query; those of them that begin with ``kafka.`` are looked at.
        kinds: ``READER`` or ``WRITER``.

    Raises:
        InvalidOption: there is no such option, or its value makes no sense.
    """
    options = {
        name.lower().removeprefix(PREFIX): str(value).strip()
        for name, value in given.items()
        if name.lower().startswith(PREFIX)
    }
    _check_names(options, kinds)
    protocol = options.get("security.protocol", PLAINTEXT).upper()
    if protocol not in _PROTOCOLS:
        raise InvalidOption(
            f"kafka.security.protocol is one of {', '.join(_PROTOCOLS)}, not {protocol!r}."
        )
    return ClientSettings(
        bootstrap=tuple(_addresses(options.get("bootstrap.servers", ""))),
        client_id=options.get("client.id", ClientSettings.client_id),
        timeout_s=number(options, "request.timeout.ms", 30_000, at_least=1) / 1000,
        sasl=_sasl(options) if protocol.startswith("SASL") else None,
        tls=_tls(options) if protocol.endswith("SSL") else None,
        others={name: options[name] for name in kinds if name in options},
    )


def _check_names(options: Mapping[str, str], kinds: tuple[str, ...]) -> None:
    known = {*_COMMON, *kinds}
    for name in options:
        if name in known or name in _WITHOUT_EFFECT or name in (*READER, *WRITER):
            continue
        close = difflib.get_close_matches(name, known, 1)
        hint = f" Did you mean kafka.{close[0]}?" if close else ""
        raise InvalidOption(f"The client of the source barnabas has no option kafka.{name}.{hint}")


def number(options: Mapping[str, str], name: str, default: int, *, at_least: int = 0) -> int:
    """
    The value of an option that is a whole number.

    Raises:
        InvalidOption: it is none, or less than *at_least*.
    """
    text = options.get(name, str(default))
    if not re.fullmatch(r"[0-9]+", text) or int(text) < at_least:
        raise InvalidOption(f"kafka.{name} is a number of at least {at_least}, not {text!r}.")
    return int(text)


def _addresses(text: str) -> list[tuple[str, int]]:
    addresses = []
    for each in filter(None, (part.strip() for part in text.split(","))):
        host, _, port = each.rpartition("://")[2].rpartition(":")
        if not host or not port.isdigit():
            raise InvalidOption(f"{BOOTSTRAP} is a list like host:9092,other:9092, not {text!r}.")
        addresses.append((host.strip("[]"), int(port)))
    if not addresses:
        raise InvalidOption(f"{BOOTSTRAP} is missing: the address of a broker, as in host:9092.")
    return addresses


def _sasl(options: Mapping[str, str]) -> Sasl:
    mechanism = options.get("sasl.mechanism", "GSSAPI").upper()
    if mechanism not in MECHANISMS:
        raise InvalidOption(
            f"kafka.sasl.mechanism is one of {', '.join(MECHANISMS)} here, not {mechanism}: for"
            " others, take Spark's own Kafka connector."
        )
    jaas = {
        found[1]: re.sub(r"\\(.)", r"\1", found[2]) if found[2] is not None else found[3]
        for found in _JAAS.finditer(options.get("sasl.jaas.config", ""))
    }
    username = options.get("sasl.username", jaas.get("username"))
    password = options.get("sasl.password", jaas.get("password"))
    if username is None or password is None:
        raise InvalidOption(
            f"{mechanism} needs a name and a password: kafka.sasl.jaas.config with username and"
            " password, or kafka.sasl.username and kafka.sasl.password."
        )
    return Sasl(mechanism, username, password)


def _tls(options: Mapping[str, str]) -> Tls:
    for store in ("truststore", "keystore"):
        kind = options.get(f"ssl.{store}.type", "PEM")
        if kind.upper() != "PEM":
            raise InvalidOption(f"kafka.ssl.{store}.type is PEM here, not {kind}.")
    return Tls(
        ca_file=options.get("ssl.truststore.location", options.get("ssl.ca.location")),
        ca_text=options.get("ssl.truststore.certificates"),
        key_file=options.get("ssl.keystore.location"),
        key_password=options.get("ssl.key.password"),
        checks_host=options.get("ssl.endpoint.identification.algorithm", "https") != "",
    )
