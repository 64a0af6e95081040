"""
Produce requests that wait until what they appended is durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.structs import NamedTuple
from barnabas.server.scheduling.turns import settle

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock, Timer
    from barnabas.protocol.hot_messages.produce import PartitionResponse
    from barnabas.server.partitions.partition import Partition


class Uncommitted(NamedTuple):
    """
    An append that may not be acknowledged yet.
    """

    partition: Partition
    next_offset: int
    response: PartitionResponse


async def wait_for_commit(
    uncommitted: Sequence[Uncommitted], clock: ServerClock, timeout_ms: int | None
) -> None:
    """
    Wait until the appends are durable, and put the errors of those that fail into their responses.

    With ``acks=-1`` the wait ends after the request's timeout, and what is not durable by then is
    answered with REQUEST_TIMED_OUT: it may or may not survive. With ``acks=1`` Kafka knows no
    timeout, for there the append itself does not return before.
    """
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    pending = {index: append.response for index, append in enumerate(uncommitted)}

    def committed(index: int, error: KafkaError | None) -> None:
        response = pending.pop(index, None)
        if response is None:
            return
        if error is not None:
            response.error_code = error.code
            response.base_offset = -1
        if not pending:
            settle(future, None)

    def time_out() -> None:
        for response in pending.values():
            response.error_code = ErrorCode.REQUEST_TIMED_OUT
        pending.clear()
        settle(future, None)

    for index, append in enumerate(uncommitted):
        append.partition.when_committed(append.next_offset, partial(committed, index))
    timer: Timer | None = None
    if timeout_ms is not None:
        timer = clock.call_later(max(0, timeout_ms) / 1000, time_out)
    try:
        await future
    finally:
        if timer is not None:
            timer.cancel()
