"""
The clock of a server: the storage engine's, and timers on the event loop.

Nothing else in the package reads the time. Every part takes a ``ServerClock``: ``EventLoopClock``
is the real one, and a test passes one that it moves itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from barnabas.storage.clock import Clock, SystemClock


class Timer(Protocol):
    """
    A callback that is scheduled and can be cancelled.
    """

    def cancel(self) -> None:
        """
        Prevent the call; no effect after it has happened.
        """


class ServerClock(Clock, Protocol):
    """
    A clock with timers, which call back on the event loop's thread.
    """

    def call_later(self, seconds: float, callback: Callable[..., Any], *args: Any) -> Timer:
        """
        Call *callback* with *args* once, *seconds* from now.
        """

    async def sleep(self, seconds: float) -> None:
        """
        Return *seconds* from now.
        """


class EventLoopClock(SystemClock):
    """
    Real time, and the timers of the running event loop.
    """

    def call_later(self, seconds: float, callback: Callable[..., Any], *args: Any) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback, *args)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
