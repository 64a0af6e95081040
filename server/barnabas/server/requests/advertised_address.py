"""
Notices clients that learn the advertised address of the broker and do not get there.

A client asks any address for Metadata and sends everything else to the advertised one. If it cannot
reach that, its user sees a timeout only, and the broker sees nothing: one line in the log names the
address and the option.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final, TypeAlias

from barnabas.coordination.clock import ServerClock
from barnabas.server.config import Listener
from barnabas.server.requests.client import Client

logger = logging.getLogger(__name__)

PATIENCE_S: Final = 10.0
"""
How long a client may ask nothing but introductory questions, in seconds.
"""
MOST_HOSTS: Final = 1000
"""
How many hosts are remembered; the one that came first is forgotten first.
"""

_Host: TypeAlias = tuple[str, str]
"""
The listener's name and the client's IP address.
"""


class AdvertisedAddressCheck:
    """
    Watches the hosts whose clients have asked for Metadata.

    Each host is warned of once. ``Client.has_worked`` says that a connection has sent a request
    that is not introductory; one connection of a host that has is enough.
    """

    def __init__(self, clock: ServerClock) -> None:
        self._clock = clock
        self._has_worked: dict[_Host, bool] = {}

    def given(self, client: Client) -> None:
        """
        Note that the answer to *client* has the advertised address.
        """
        host = _host(client)
        if host in self._has_worked or client.has_worked or _is_there(client):
            return
        self._remember(host, False)
        self._clock.call_later(PATIENCE_S, partial(self._look, host, client.listener, str(client)))

    def worked(self, client: Client) -> None:
        """
        Note that a client of that host reaches the broker, and has nothing more to learn.
        """
        self._remember(_host(client), True)

    def _remember(self, host: _Host, has_worked: bool) -> None:
        if host not in self._has_worked and len(self._has_worked) >= MOST_HOSTS:
            del self._has_worked[next(iter(self._has_worked))]
        self._has_worked[host] = has_worked

    def _look(self, host: _Host, listener: Listener, client: str) -> None:
        if self._has_worked.get(host) is False:
            logger.warning(
                "%s was given the address %s:%d, and nobody at its host has used it for %d s. If"
                " clients cannot reach that address, set advertised.listeners"
                " (KAFKA_ADVERTISED_LISTENERS) to one that they reach",
                client,
                listener.advertised_host,
                listener.advertised_port,
                PATIENCE_S,
            )


def _host(client: Client) -> _Host:
    return client.listener.name, client.address


def _is_there(client: Client) -> bool:
    """
    Whether the client has connected to the advertised address, as far as that is certain.
    """
    listener = client.listener
    return (
        listener.advertised_port == listener.port
        and _is_loopback(client.address)
        and _is_loopback(listener.advertised_host)
    )


def _is_loopback(host: str) -> bool:
    return host in {"localhost", "::1"} or host.startswith("127.")
