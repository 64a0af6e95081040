"""
Answers that wait for their changes to be committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import ErrorCode
from barnabas.server.groups.answers import coordinator_error
from barnabas.server.groups.changes import Changes
from barnabas.server.groups.shard import Shard
from barnabas.server.purgatory import Delayed

M = TypeVar("M", bound=Message)


def reply_to(future: asyncio.Future[M]) -> Callable[[M], None]:
    """
    What answers a request that waits in a future; its connection may be gone by then.
    """

    def reply(response: M) -> None:
        if not future.done():
            future.set_result(response)

    return reply


def answer_after(
    shard: Shard, changes: Changes, response: M, refused: Callable[[ErrorCode], M]
) -> M | Delayed:
    """
    Write changes, and answer once they are committed, or with the error that prevents it.
    """
    if not changes.records:
        return response
    delayed = Delayed()

    def settled(error: ErrorCode | None) -> None:
        delayed.answer(response if error is None else refused(coordinator_error(error)))

    shard.write(changes, settled)
    return delayed
