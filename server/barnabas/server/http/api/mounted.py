"""
The API as a part of an application. The first request loads its modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.applications import Starlette
    from starlette.types import Receive, Scope, Send

    from barnabas.server.http.api.context import ApiContext
    from barnabas.server.http.observed import ObservedBroker


class MountedApi:
    """
    An application, which takes no memory before it is asked for.
    """

    def __init__(self, broker: ObservedBroker) -> None:
        self._broker = broker
        self._api: ApiContext | None = None
        self._app: Starlette | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Answer a request.
        """
        if self._app is None:
            make = await self._broker.workers.in_upkeep(_load)
            if self._app is None:  # another request may have been first
                self._api, self._app = make(self._broker)
        await self._app(scope, receive, send)

    def wake_all(self) -> None:
        """
        Let requests that wait for records answer at once.
        """
        if self._api is not None:
            self._api.wake_all()

    def close(self) -> None:
        """
        Start no more work.
        """
        if self._api is not None:
            self._api.close()


def _load() -> Callable[[ObservedBroker], tuple[ApiContext, Starlette]]:
    from barnabas.server.http.api.app import make_api  # noqa: PLC0415  # in a thread, and once
    from barnabas.server.http.api.context import ApiContext  # noqa: PLC0415

    def make(broker: ObservedBroker) -> tuple[ApiContext, Starlette]:
        api = ApiContext(broker)
        return api, make_api(api)

    return make
