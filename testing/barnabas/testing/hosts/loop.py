"""
The event loop of a broker in a test: it knows whether there is work left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from barnabas.storage.clock import seconds_now

if TYPE_CHECKING:
    from asyncio import SelectorEventLoop as _Loop
else:
    try:
        from uvloop import Loop as _Loop
    except ImportError:

        class _Loop(asyncio.SelectorEventLoop):
            """
            A loop whose time no test freezes. That of uvloop is out of their reach.
            """

            def time(self) -> float:
                return seconds_now()


ROUNDS: Final = 10
"""
The rounds of the loop in which coroutines that wake each other come to rest.
"""


class CountingLoop(_Loop):
    """
    An event loop that counts the work that its thread pools do for it, and the calls that other
    threads have left for it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.touches = 0
        """The calls of ``call_soon_threadsafe``, before the last round of ``settle``."""
        self._in_progress = 0
        self._idle: asyncio.Future[None] | None = None

    def call_soon_threadsafe(  # type: ignore[override]  # of any callback
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        self.touches += 1
        return super().call_soon_threadsafe(callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]  # a pool of any kind
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = super().run_in_executor(executor, func, *args)
        self._in_progress += 1
        future.add_done_callback(self._done)
        return future

    def _done(self, _future: object) -> None:
        self._in_progress -= 1
        idle = self._idle
        if idle is not None and not self._in_progress and not idle.done():
            idle.set_result(None)

    async def settle(self) -> None:
        """
        Return when the pools have nothing to do, and coroutines that wait for each other rest.
        """
        await _rounds()
        while self._in_progress:
            self._idle = self.create_future()
            await self._idle
            await _rounds()


async def _rounds() -> None:
    for _ in range(ROUNDS):
        await asyncio.sleep(0)
