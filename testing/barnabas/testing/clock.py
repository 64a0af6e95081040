"""
The clock of a broker, as a test moves it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from barnabas.testing.errors import hides_frame
from barnabas.testing.shown import time_of

if TYPE_CHECKING:
    from barnabas.testing.hosts.host import Host

__tracebackhide__ = hides_frame


class Clock:
    """
    The clock of a broker. It runs with real time, and a test moves it forward.

    Clients have clocks of their own, which stay where they are.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    def now_ms(self) -> int:
        """
        The time in milliseconds since 1970 UTC.

        Raises:
            NotRunning: the broker does not run.
        """
        return self._host.now_ms()

    def now(self) -> datetime:
        """
        The time in UTC.

        Raises:
            NotRunning: the broker does not run.
        """
        return time_of(self.now_ms())

    def advance(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
    ) -> None:
        """
        Move the clock forward by the sum of the arguments.

        All that falls due on the way happens before this returns, in order, each at its time:
        retention, removal of files, rolls, compaction, the ends of sessions and transactions, the
        expiry of offsets, and fetches that wait.

        Raises:
            ValueError: the sum is negative, or leads beyond the year 9999.
            TimeoutError: the work of one moment takes longer than 30 s of real time.
        """
        try:
            step = timedelta(
                days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds
            )
            self.now() + step
        except OverflowError:
            raise ValueError("the clock ends with the year 9999") from None
        if step < timedelta(0):
            raise ValueError(f"the clock moves forward only, not by {step}")
        self._host.advance(step.total_seconds())
