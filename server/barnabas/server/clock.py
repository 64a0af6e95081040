"""
The clock of a server: the storage engine's, and timers on the event loop.

Nothing else in the package reads the time. ``SystemClock`` is the real one; ``ManualClock``
(``manual_clock.py``) starts where it is told and moves only when asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from barnabas.server.manual_clock import ManualClock
from barnabas.storage.clock import Clock
from barnabas.storage.clock import SystemClock as StorageClock

__all__ = ["ManualClock", "ServerClock", "SystemClock", "Timer"]


class Timer(Protocol):
    """
    Something that will happen unless it is cancelled.
    """

    def cancel(self) -> None:
        """
        See to it that it does not happen; harmless when it already has.
        """


class ServerClock(Clock, Protocol):
    """
    A clock that can also call back, always on the event loop's thread.
    """

    def call_later(self, seconds: float, callback: Callable[..., Any], *args: Any) -> Timer:
        """
        Call back once, that much later.
        """

    async def sleep(self, seconds: float) -> None:
        """
        Return that much later.
        """


class SystemClock(StorageClock):
    """
    Real time. Timers belong to the running event loop.
    """

    def call_later(self, seconds: float, callback: Callable[..., Any], *args: Any) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback, *args)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
