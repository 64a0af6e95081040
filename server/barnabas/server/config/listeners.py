"""
The listeners of the broker.

``listeners`` has ``NAME://HOST:PORT`` for each; ``advertised.listeners`` has the same names with
the addresses for clients. The rules are those of Kafka's ``KafkaConfig`` and
``SocketServerConfigs``.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.protocol.structs import struct
from barnabas.server.config.network import ClusterOptions, NetworkOptions
from barnabas.storage.config.option_values import InvalidValue

_ENDPOINT = re.compile(
    r"(?P<name>[A-Za-z0-9_.-]+)://(?:\[(?P<v6>[^\]]*)\]|(?P<host>[^\[\]/:]*)):(?P<port>-?\d+)"
)
_EVERY_INTERFACE = ("", "0.0.0.0", "::")
PLAINTEXT: Final = "PLAINTEXT"
SECURITY_PROTOCOLS: Final = {PLAINTEXT: 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""
The security protocols, with their numbers in records (Kafka ``SecurityProtocol``).
"""


@struct
class Listener:
    """
    One address that the broker listens on, and the one that it advertises to clients.
    """

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int
    protocol: str = PLAINTEXT
    """One of ``SECURITY_PROTOCOLS``."""

    @property
    def is_plaintext(self) -> bool:
        """
        Whether clients need neither TLS nor SASL.
        """
        return self.protocol == PLAINTEXT

    @property
    def has_tls(self) -> bool:
        """
        Whether all bytes are encrypted.
        """
        return self.protocol.endswith("SSL")

    @property
    def has_sasl(self) -> bool:
        """
        Whether clients have to authenticate by SASL.
        """
        return self.protocol.startswith("SASL_")

    def __str__(self) -> str:
        return f"{self.name}://{_bracketed(self.host)}:{self.port}"

    @property
    def bootstrap(self) -> str:
        """
        The advertised address, as clients take it: ``host:port``.
        """
        return f"{_bracketed(self.advertised_host)}:{self.advertised_port}"


@struct
class _Endpoint:
    name: str
    host: str
    port: int


def parse_listeners(network: NetworkOptions, cluster: ClusterOptions) -> tuple[Listener, ...]:
    """
    The listeners for clients; those of controllers are left out, since there is no other node.

    Port 0 means any free port, which is then advertised as well.

    Raises:
        InvalidValue: an endpoint is malformed, named twice, advertised without being listened on,
            or of a security protocol that is not supported.
    """
    controllers = set(cluster.controller_listener_names)
    endpoints = [
        endpoint
        for endpoint in _endpoints("listeners", network.listeners)
        if endpoint.name not in controllers
    ]
    if not endpoints:
        raise InvalidValue("listeners", ",".join(network.listeners), "no listener is for clients")
    advertised = {
        endpoint.name: endpoint
        for endpoint in _endpoints("advertised.listeners", network.advertised_listeners or ())
    }
    _check_names(endpoints, advertised, controllers)
    protocols = _protocols(network.listener_security_protocol_map)
    return tuple(
        _listener(endpoint, advertised.get(endpoint.name), _protocol_of(endpoint.name, protocols))
        for endpoint in endpoints
    )


def _endpoints(option: str, texts: Iterable[str]) -> list[_Endpoint]:
    found: list[_Endpoint] = []
    for text in texts:
        match = _ENDPOINT.fullmatch(text)
        if match is None:
            raise InvalidValue(option, text, "it must look like PLAINTEXT://host:9092")
        host = match["v6"] if match["v6"] is not None else match["host"]
        endpoint = _Endpoint(match["name"].upper(), host, int(match["port"]))
        if not 0 <= endpoint.port <= 65535:
            raise InvalidValue(option, text, "a port is a number from 0 to 65535")
        if any(endpoint.name == other.name for other in found):
            raise InvalidValue(option, text, f"there are two listeners named {endpoint.name}")
        found.append(endpoint)
    return found


def _check_names(
    endpoints: Iterable[_Endpoint], advertised: Mapping[str, _Endpoint], controllers: set[str]
) -> None:
    names = {endpoint.name for endpoint in endpoints}
    for name, endpoint in advertised.items():
        if name in controllers:
            continue
        if name not in names:
            raise InvalidValue("advertised.listeners", name, "no listener has this name")
        if endpoint.host in _EVERY_INTERFACE[1:]:
            raise InvalidValue(
                "advertised.listeners", endpoint.host, "clients cannot connect to every interface"
            )


def _protocols(text: str) -> dict[str, str]:
    protocols = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = pair.partition(":")
        if not colon:
            raise InvalidValue(
                "listener.security.protocol.map", pair, "it must look like NAME:PLAINTEXT"
            )
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def _protocol_of(name: str, protocols: Mapping[str, str]) -> str:
    option = "listener.security.protocol.map"
    if name not in protocols:
        given = ",".join(f"{each}:{protocol}" for each, protocol in protocols.items())
        raise InvalidValue(option, given, f"it has no protocol for listener {name}")
    if protocols[name] not in SECURITY_PROTOCOLS:
        raise InvalidValue(
            option,
            f"{name}:{protocols[name]}",
            f"the security protocols are {', '.join(SECURITY_PROTOCOLS)}",
        )
    return protocols[name]


def _listener(endpoint: _Endpoint, advertised: _Endpoint | None, protocol: str) -> Listener:
    host = advertised.host if advertised is not None else endpoint.host
    if host in _EVERY_INTERFACE:
        host = socket.gethostname()
    port = advertised.port if advertised is not None else endpoint.port
    return Listener(endpoint.name, endpoint.host, endpoint.port, host, port, protocol)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
