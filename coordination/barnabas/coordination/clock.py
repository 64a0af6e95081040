"""
A clock with timers, as coordinators and the server use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from barnabas.storage.clock import Clock


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
