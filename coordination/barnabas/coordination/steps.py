"""
Coroutines that let other work run between their steps, whoever drives them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from types import coroutine
from typing import Any, Final, Generic, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")

ENTRIES_PER_STEP: Final = 16
"""
How many entries of a hot request are served in one step: a request with fewer needs no turn.
"""


def finished(steps: Coroutine[Any, Any, T]) -> T:
    """
    Take all *steps* at once, where the event loop does not wait for them, and return their result.
    """
    return cast("T", finished_unless(steps, lambda: False))


def finished_unless(steps: Coroutine[Any, Any, T], is_over: Callable[[], bool]) -> T | None:
    """
    The same, but take no step once *is_over* returns true, and return None.
    """
    try:
        while not is_over():
            awaited = steps.send(None)
            assert awaited is None, "there is no event loop to wait for"
    except StopIteration as ended:
        return cast("T", ended.value)
    steps.close()
    return None


@coroutine
def checkpoint() -> Generator[None, None, None]:
    """
    Let other work run, once the turn is over.
    """
    yield


class InSteps(Generic[T]):
    """
    Steps that a coroutine awaits: each of them is a checkpoint.
    """

    __slots__ = ("_steps",)

    def __init__(self, steps: Generator[None, None, T]) -> None:
        self._steps = steps

    def __await__(self) -> Generator[None, None, T]:
        return self._steps


async def await_each(make: Callable[[T], Awaitable[R]], items: Iterable[T]) -> list[R]:
    """
    The results of what *make* returns for each of *items*, awaited one after another.
    """
    made = []
    for item in items:
        made.append(await make(item))
        await checkpoint()
    return made


async def map_in_turns(make: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """
    The results of *make* for each of *items*; other work may run between two of them.
    """
    made = []
    for item in items:
        made.append(make(item))
        await checkpoint()
    return made
