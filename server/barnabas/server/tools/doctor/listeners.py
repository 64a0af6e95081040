"""
The listeners: whether they can be opened, where clients are sent, who may come.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from barnabas.server.config import BrokerConfig, Listener, Settings
from barnabas.server.http.address import Address, BadAddress
from barnabas.server.network.acceptor import reason_of
from barnabas.server.tools.doctor.facts import Facts
from barnabas.server.tools.doctor.findings import Finding, advice, ok, problem
from barnabas.storage.clock import SystemClock
from barnabas.storage.config.option_values import ConfigError

LOCAL_NAMES: Final = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})
MONTH_MS: Final = 30 * 24 * 3600 * 1000


def check_listeners(config: BrokerConfig, settings: Settings, facts: Facts) -> Iterator[Finding]:
    """
    All listeners for clients.
    """
    has_broker = any(facts.is_locked(directory) for directory in config.log_directories)
    for listener in config.client_listeners:
        if has_broker:
            yield ok(listener.name, f"{listener} is left alone, since a broker runs")
        else:
            yield from _binding(listener, config, facts)
        yield from _advertised(listener, facts)
        yield from _openness(listener, config)
    if config.barnabas_http_listener and not has_broker:
        yield from _http(config.barnabas_http_listener, facts)
    yield from _security(config, settings)


def _http(text: str, facts: Facts) -> Iterator[Finding]:
    try:
        address = Address.parse(text)
        facts.bind_http(address)
    except BadAddress as error:
        yield problem("HTTP", str(error), "write barnabas.http.listener=HOST:PORT")
    except OSError as error:
        yield problem(
            "HTTP",
            f"http://{text} cannot be opened: {reason_of(error)}",
            "end the program that has the port, or name another one in barnabas.http.listener",
        )
    else:
        yield ok("HTTP", f"http://{address} can be opened")


def _binding(listener: Listener, config: BrokerConfig, facts: Facts) -> Iterator[Finding]:
    try:
        facts.bind(listener, config)
    except OSError as error:
        yield problem(
            listener.name,
            f"{listener} cannot be opened: {reason_of(error)}",
            "end the program that has the port, or name another host or port in listeners",
        )
    else:
        yield ok(listener.name, f"{listener} can be opened")


def _advertised(listener: Listener, facts: Facts) -> Iterator[Finding]:
    host = listener.advertised_host
    if _is_local(host) and not _is_local(listener.host):
        yield advice(
            listener.name,
            f"clients are sent to {listener.bootstrap}, which is for each its own machine",
            "advertised.listeners with a name that clients on other machines resolve",
        )
        return
    try:
        facts.resolve(host)
    except OSError:
        yield advice(
            listener.name,
            f"clients are sent to {listener.bootstrap}, a name that this machine does not resolve",
            "advertised.listeners with a name that clients resolve",
        )
    else:
        yield ok(listener.name, f"clients are sent to {listener.bootstrap}")


def _openness(listener: Listener, config: BrokerConfig) -> Iterator[Finding]:
    if _is_local(listener.host) or config.authorizer_class_name:
        return
    if not listener.has_sasl and not listener.has_tls:
        yield advice(
            listener.name,
            f"everybody who reaches {listener} may read, write and delete, and bytes are not"
            " encrypted",
            "listen on 127.0.0.1, or set up TLS and users (docs/security.md)",
        )


def _security(config: BrokerConfig, settings: Settings) -> Iterator[Finding]:
    """
    The stores of keys, and the options of SASL, as a start would load them.
    """
    from barnabas.server.security.listener import (  # noqa: PLC0415  # it loads ssl
        SaslResources,
        secure_listeners,
    )

    clock = SystemClock()
    resources = SaslResources(
        lambda _mechanism, _user: None, lambda _mechanism, _token: None, clock, {}, False
    )
    try:
        secured = secure_listeners(config.client_listeners, settings.texts, resources)
    except ConfigError as error:
        yield problem("security", settings.without_values(str(error)), "see docs/security.md")
        return
    for name, security in secured.items():
        if security.tls is None:
            continue
        from barnabas.server.security.tls.expiry import first_to_end  # noqa: PLC0415  # the same

        left_ms = first_to_end(security.tls).ends_ms - clock.now_ms()
        if left_ms <= 0:
            yield problem(name, "a certificate has ended", "renew it")
        elif left_ms < MONTH_MS:
            days = left_ms // (24 * 3600 * 1000)
            yield advice(name, f"a certificate ends in {days} days", "renew it")
        else:
            yield ok(name, "the keys can be read, and their certificates are valid for a month")


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in LOCAL_NAMES
