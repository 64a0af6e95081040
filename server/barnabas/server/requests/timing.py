"""
The time that a request takes of the event loop, but for the time in which it waits.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class Timed(Protocol):
    """
    A request whose time counts.
    """

    def resume(self) -> bool:
        """
        Time counts from now on; false if it does so already.
        """

    def pause(self) -> None:
        """
        Time does not count from now on.
        """


async def timed(serving: Coroutine[Any, Any, T], request: Timed) -> T:
    """
    Await *serving*, and count the time that it takes for *request*.
    """
    return await _Stretches(serving, request)


class _Stretches(Generic[T]):
    """
    A coroutine, of which each stretch between two waits counts.
    """

    __slots__ = ("_request", "_serving")

    def __init__(self, serving: Coroutine[Any, Any, T], request: Timed) -> None:
        self._serving = serving
        self._request = request

    def __await__(self) -> Generator[Any, Any, T]:
        thrown: BaseException | None = None
        while True:
            is_outermost = self._request.resume()
            try:
                if thrown is None:
                    waits_for = self._serving.send(None)
                else:
                    waits_for = self._serving.throw(thrown)
            except StopIteration as ended:
                result: T = ended.value
                return result
            finally:
                if is_outermost:
                    self._request.pause()
            thrown = None
            try:
                yield waits_for
            except BaseException as error:  # it is for what is awaited
                thrown = error
