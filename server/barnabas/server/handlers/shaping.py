"""
Giving an answer the shape that the version of the request asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from barnabas.protocol.codec.schema import Message
from barnabas.server.purgatory import Delayed, Outcome

M = TypeVar("M", bound=Message)


def shaped(answer: M | Delayed, shape: Callable[[M], M]) -> M | Delayed:
    """
    The answer after *shape* has been applied to it, now or when it comes.
    """
    if not isinstance(answer, Delayed):
        return shape(answer)
    result = Delayed()

    def settle(outcome: Outcome) -> None:
        if isinstance(outcome, Exception):
            result.fail(outcome)
        else:
            result.answer(shape(outcome))  # type: ignore[arg-type]  # a Delayed of M answers an M

    answer.then(settle)
    return result
