"""
From the frame of a request to its route and its context.

What cannot be understood closes the connection, as in Kafka.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from barnabas.coordination.text_memory import shortened
from barnabas.protocol import apis
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.headers import RequestHeader, decode_request_header
from barnabas.server.requests.authorized import gated
from barnabas.server.requests.context import RequestContext, frame_of
from barnabas.server.requests.error_response import unsupported_version
from barnabas.server.requests.errors import CloseConnection
from barnabas.server.requests.registry import Registration
from barnabas.server.requests.route import Route

if TYPE_CHECKING:
    from barnabas.protocol.codec.primitives import Buffer
    from barnabas.server.requests.active_quotas import ActiveQuotas
    from barnabas.server.requests.authenticating import RawToken
    from barnabas.server.requests.broker_parts import BrokerParts
    from barnabas.server.requests.client import Client
    from barnabas.server.requests.meter import Meter
    from barnabas.server.requests.request_quotas import RequestQuotas
    from barnabas.server.scheduling.turns import Work

DispatchOutcome: TypeAlias = "list[Buffer] | tuple[RequestContext | RawToken, Work[Any]] | None"
"""
The buffers of an answer; or a request and what is going to give its answer; or no answer.
"""

API_VERSIONS = apis.API_VERSIONS.key


class Dispatcher:
    """
    Finds the handler of each request and calls it.
    """

    def __init__(self, handlers: Mapping[int, Registration], broker: BrokerParts) -> None:
        self._broker = broker
        self._quotas: ActiveQuotas = broker.quotas
        self._handlers = handlers
        self._routes: dict[tuple[int, int], Route] = {}

    def __call__(self, frame: memoryview, client: Client) -> DispatchOutcome:
        """
        Handle one request.

        Raises:
            CloseConnection: the request cannot be answered.
        """
        authentication = client.authentication
        if authentication is not None and authentication.takes_raw_tokens:
            from barnabas.server.requests.authenticating import serve_raw_token

            return serve_raw_token(frame, client, self._broker)
        try:
            header, position = decode_request_header(frame)
        except DecodeError as error:
            raise CloseConnection(f"the header of a request is malformed: {error}") from None
        client_id: str | None = header.client_id
        client.client_id = None if client_id is None else shortened(client_id)
        key, version = header.api_key, header.api_version
        route = self._routes.get((key, version)) or self._find_route(key, version)
        if route is None:
            return self._unsupported(header)
        quotas = self._quotas.current
        meter = None if quotas is None else _meter(quotas, client, header)
        context = RequestContext(self._broker, client, header, route, len(frame))
        context.meter = meter
        if authentication is not None:
            from barnabas.server.requests.authenticating import check_allowed

            check_allowed(authentication, context, frame, position)
        if not (client.has_worked or route.is_introductory):
            client.has_worked = True
            self._broker.advertised_address.worked(client)
        if meter is None or not meter.is_timed:
            answer = context.serve(frame, position)
        else:
            meter.resume()
            answer = context.serve(frame, position)
            meter.pause()
        return answer if answer is None or isinstance(answer, list) else (context, answer)

    def _find_route(self, key: int, version: int) -> Route | None:
        """
        Where requests of that API and version go; None where the version is not served.

        Raises:
            CloseConnection: no handler has that API.
        """
        if key not in self._handlers:
            raise CloseConnection(f"API key {key} is unknown")
        registration = self._handlers[key]
        if version not in registration.versions:
            return None
        requests = self._broker.metrics.counter(
            "requests", "Requests received.", api=registration.name
        )
        route = Route(registration, version, requests)
        if self._broker.authorizer is not None and registration.needs.is_gate:
            route.handler = gated(registration.handler, *registration.needs.permissions)
        self._routes[key, version] = route
        return route

    def _unsupported(self, header: RequestHeader) -> list[Buffer]:
        """
        Clients ask for the newest ApiVersions first and take the range from the refusal (KIP-511);
        for every other API they know the range already, and Kafka closes the connection.
        """
        if header.api_key == API_VERSIONS:
            first = self._find_route(API_VERSIONS, 0)
            assert first is not None, "every client understands version 0"
            return frame_of(unsupported_version(), first, header.correlation_id)
        registration = self._handlers[header.api_key]
        raise CloseConnection(
            f"{registration.name} v{header.api_version} is not supported,"
            f" only v{registration.versions[0]} to v{registration.versions[-1]}"
        )


def _meter(quotas: RequestQuotas, client: Client, header: RequestHeader) -> Meter:
    # Few brokers have quotas.
    from barnabas.server.requests.meter import Meter as Metering

    return Metering(quotas, client, header)
