"""
Answers that wait: for an fsync, for bytes to fetch, for members of a group, for time to pass.

Kafka keeps its ``DelayedOperation``s in purgatories, and looks at those of a key when something
happens to it. Here each holds what it waits for, and is completed by that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

from barnabas.protocol.codec.primitives import Buffer
from barnabas.protocol.codec.schema import Message

Outcome: TypeAlias = "Message | list[Buffer] | Exception | None"
"""
A response, its bytes, the error that the request failed with, or that there is no answer.
"""


class Delayed:
    """
    The answer to a request whose effects are done.

    Invariants:

    1. There is one outcome: the first ``answer`` or ``fail`` decides, later ones do nothing.
    2. The listener hears the outcome once, also when it comes after the outcome.
    3. After ``cancel`` nobody hears anything.

    Used on the event loop's thread only.
    """

    __slots__ = ("_listener", "_outcome", "done")

    is_seen_when_answered = False
    """Whether the effects of the request are to be seen by others only when it is answered."""

    def __init__(self) -> None:
        self._listener: Callable[[Outcome], None] | None = None
        self._outcome: Outcome = None
        self.done = False

    def then(self, listener: Callable[[Outcome], None]) -> None:
        """
        Let *listener* hear the outcome, at once if there is one.
        """
        if self.done:
            listener(self._outcome)
        else:
            self._listener = listener

    async def outcome(self) -> Any:
        """
        The answer, when it is there.

        Raises:
            Exception: what it failed with.
        """
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def settle(outcome: Outcome) -> None:
            if future.done():
                return
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        self.then(settle)
        return await future

    def answer(self, response: Message | list[Buffer] | None) -> None:
        """
        This is the answer.
        """
        self._settle(response)

    def fail(self, error: Exception) -> None:
        """
        There is no answer, but this error.
        """
        self._settle(error)

    def cancel(self) -> None:
        """
        Nobody waits any more: the connection is gone.
        """
        self._listener = None
        self._settle(None)

    def hurry(self) -> None:
        """
        Something waits behind this answer; give the one that is possible now, if there is one.
        """

    def _settle(self, outcome: Outcome) -> None:
        if self.done:
            return
        self.done = True
        self._outcome = outcome
        listener, self._listener = self._listener, None
        if listener is not None:
            listener(outcome)
