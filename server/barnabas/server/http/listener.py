"""
The HTTP server of a broker, on ``barnabas.http.listener``.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.server.http.address import Address, BadAddress
from barnabas.server.http.extra import MissingExtra, require_http
from barnabas.server.network.latencies import Latencies, TimedDispatch
from barnabas.storage.config.option_values import ConfigError

if TYPE_CHECKING:
    from barnabas.server.http.api.mounted import MountedApi
    from barnabas.server.http.observed import ObservedBroker
    from barnabas.server.http.server import HttpServer
    from barnabas.server.network.resources import Dispatch

logger = logging.getLogger(__name__)

OPTION: Final = "barnabas.http.listener"


class HttpListener:
    """
    The HTTP server of a broker, and the times of the broker's requests, which it shows.
    """

    def __init__(self, server: HttpServer, api: MountedApi, now: Callable[[], float]) -> None:
        """
        Args:
            api: the application of *server* reads it.
            now: returns a time in seconds.
        """
        self.server = server
        self._api = api
        self._now = now
        self.latencies = Latencies()

    @property
    def address(self) -> Address:
        """
        The address that the server listens on.
        """
        return self.server.address

    def timed(self, dispatch: Dispatch) -> Dispatch:
        """
        A dispatcher like that one, whose requests are timed.
        """
        return TimedDispatch(dispatch, self.latencies, self._now)

    def wake_all(self) -> None:
        """
        Let requests that wait for records answer at once.
        """
        self._api.wake_all()

    async def stop(self) -> None:
        """
        Answer the requests in progress, and close all connections and the address.
        """
        await self.server.stop()
        self._api.close()


async def listen(broker: ObservedBroker) -> HttpListener:
    """
    Serve the pages of *broker* until the server is stopped.

    Raises:
        ConfigError: the option is no address, or the extra is not installed.
        CannotListen: the address cannot be taken.
    """
    config = broker.config
    try:
        address = Address.parse(config.barnabas_http_listener)
        require_http("prometheus_client")
    except (BadAddress, MissingExtra) as error:
        raise ConfigError(f"{OPTION}: {error}") from None
    # They are there, and only now are they loaded.
    from barnabas.server.http.api.mounted import MountedApi  # noqa: PLC0415
    from barnabas.server.http.app import make_app  # noqa: PLC0415
    from barnabas.server.http.bounded import BoundedProtocol  # noqa: PLC0415
    from barnabas.server.http.read_only import ReadOnly  # noqa: PLC0415
    from barnabas.server.http.server import HttpServer  # noqa: PLC0415

    hosts = {
        address.host,
        socket.gethostname(),
        *(listener.advertised_host for listener in broker.listeners),
        *config.barnabas_http_hosts,
    }
    api = MountedApi(broker)
    guarded = ReadOnly(make_app(broker, api), hosts)
    server = HttpServer(guarded, address, option="barnabas.http.listener", protocol=BoundedProtocol)
    await server.start()
    logger.debug("http://%s has /healthz, /readyz, /metrics and /api/v1", server.address)
    return HttpListener(server, api, broker.clock.monotonic)
