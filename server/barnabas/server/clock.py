"""
The clock of a server: the storage engine's, and timers on the event loop.

Nothing else in the package reads the time. Every part takes a ``ServerClock``: ``EventLoopClock``
is the real one, and a test passes one that it moves itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas.coordination.clock import Timer
from barnabas.storage.clock import SystemClock


class EventLoopClock(SystemClock):
    """
    Real time, and the timers of the running event loop.
    """

    def call_later(self, seconds: float, callback: Callable[..., Any], *args: Any) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback, *args)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
