"""
The pages of a broker over HTTP.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.routing import Mount, Route

from barnabas.server.http.answers import json_response, no_method, no_path
from barnabas.server.http.api import PREFIX
from barnabas.server.http.api.mounted import MountedApi
from barnabas.server.http.health import HealthAnswer, health, readiness
from barnabas.server.http.metrics.endpoint import MetricsEndpoint
from barnabas.server.http.page.assets import FOLDER, Assets, wants_html

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from barnabas.server.http.observed import ObservedBroker

PATHS: Final = {
    "/": "the page, for a browser (Accept: text/html); this list for others, such as curl",
    "/healthz": "whether the broker can go on as it is: 200, or 503 with the reason",
    "/readyz": "whether clients are served: 200, or 503 with what is waited for",
    "/metrics": "the metrics, for Prometheus",
    f"{PREFIX}/": "the paths of the API, which has everything else as JSON",
}


def make_app(broker: ObservedBroker, api: MountedApi) -> Starlette:
    """
    The application that shows *broker*.
    """

    assets = Assets()

    async def start(request: Request) -> Response:
        if wants_html(request):
            return await assets.frame(request)
        return json_response([{"path": path, "says": says} for path, says in PATHS.items()])

    return Starlette(
        routes=[
            Route("/", start),
            Route(f"{FOLDER}/{{name:path}}", assets.file),
            Route("/healthz", _page(partial(health, broker))),
            Route("/readyz", _page(partial(readiness, broker))),
            Route("/metrics", MetricsEndpoint(broker)),
            Mount(PREFIX, api),
        ],
        exception_handlers={404: no_path, 405: no_method},
    )


def _page(verdict: Callable[[], HealthAnswer]) -> Callable[[Request], Awaitable[Response]]:
    async def page(_: Request) -> Response:
        status, content = verdict()
        return json_response(content, status)

    return page
