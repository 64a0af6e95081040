"""
Waiting for a condition in real time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from barnabas.storage.clock import seconds_now, sleep
from barnabas.testing.errors import WaitTimeout, hides_frame
from barnabas.testing.shown import message_of, shortened, shown

__tracebackhide__ = hides_frame

T = TypeVar("T")

PAUSES: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
"""
The seconds between two looks at a condition; the last one repeats.
"""

MOST_CHARACTERS: Final = 500
"""
The most characters of a value in a message.
"""


def wait_until(
    condition: Callable[[], T], *, seconds: float, what: str, seen: Callable[[], str]
) -> T:
    """
    Ask until *condition* returns something that is true, and return that.

    Args:
        seconds: of real time.
        what: a name of the condition, for the message.
        seen: returns a description of the broker, for the message.

    Raises:
        WaitTimeout: it did not; the message has the last result or failure.
    """
    attempts = _Attempts(condition, seconds)
    for pause in attempts:
        sleep(pause)
    return attempts.result(what, seen)


async def wait_until_async(
    condition: Callable[[], T], *, seconds: float, what: str, seen: Callable[[], str]
) -> T:
    """
    Like ``wait_until``; the event loop of the caller runs meanwhile.
    """
    attempts = _Attempts(condition, seconds)
    for pause in attempts:
        await asyncio.sleep(pause)
    return attempts.result(what, seen)


class _Attempts(Generic[T]):
    """
    Asks a condition, and gives the pauses between two questions, until it is true or time is out.
    """

    def __init__(self, condition: Callable[[], T], seconds: float) -> None:
        self._condition = condition
        self._seconds = seconds
        self._results: list[T] = []
        self._last: object = None

    def __iter__(self) -> Iterator[float]:
        deadline = seconds_now() + self._seconds
        count = 0
        while not self._ask() and seconds_now() < deadline:
            yield PAUSES[min(count, len(PAUSES) - 1)]
            count += 1

    def _ask(self) -> bool:
        try:
            result = self._condition()
        except (AssertionError, LookupError) as error:
            self._last = error
            return False
        self._last = result
        if result:
            self._results.append(result)
        return bool(result)

    def result(self, what: str, seen: Callable[[], str]) -> T:
        if self._results:
            return self._results[0]
        last = self._last
        if isinstance(last, Exception):
            ended = f"at last it raised {shortened(message_of(last), MOST_CHARACTERS)}"
        else:
            ended = f"at last it returned {shown(last, MOST_CHARACTERS)}"
        raise WaitTimeout(f"{what} did not come true within {self._seconds:g} s: {ended}\n{seen()}")
