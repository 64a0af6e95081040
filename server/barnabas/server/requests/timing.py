"""
The time that requests take of the event loop: of each step, and of each stretch of a task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from barnabas.server.scheduling.turns import Steps

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


def timed_steps(steps: Steps[T], request: Timed) -> Steps[T]:
    """
    *steps* whose time counts for *request*.
    """
    while True:
        is_outermost = request.resume()
        try:
            next(steps)
        except StopIteration as ended:
            result: T = ended.value
            return result
        finally:
            if is_outermost:
                request.pause()
        yield


class TimedAwaitable(Generic[T]):
    """
    An awaitable whose time counts for a request, but for that in which it waits.
    """

    __slots__ = ("_awaited", "_request")

    def __init__(self, awaited: Awaitable[T], request: Timed) -> None:
        self._awaited = awaited
        self._request = request

    def __await__(self) -> Generator[Any, Any, T]:
        waiting: Any = self._awaited.__await__()
        thrown: BaseException | None = None
        while True:
            is_outermost = self._request.resume()
            try:
                waited_for = waiting.send(None) if thrown is None else waiting.throw(thrown)
            except StopIteration as ended:
                result: T = ended.value
                return result
            finally:
                if is_outermost:
                    self._request.pause()
            thrown = None
            try:
                yield waited_for
            except BaseException as error:  # it is for what is awaited
                thrown = error
