"""
Produce requests that wait until what they appended is durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.structs import NamedTuple
from barnabas.server.purgatory import Delayed

if TYPE_CHECKING:
    from barnabas.protocol.hot_messages.produce import PartitionResponse
    from barnabas.protocol.messages.produce import ProduceResponse
    from barnabas.server.clock import ServerClock, Timer
    from barnabas.server.partitions.partition import Partition


class Uncommitted(NamedTuple):
    """
    An append that may not be acknowledged yet.
    """

    partition: Partition
    next_offset: int
    response: PartitionResponse


class DelayedProduce(Delayed):
    """
    The answer to a produce request of which some appends wait for an fsync.

    With ``acks=-1`` the wait ends after the request's timeout, and what is not durable by then is
    answered with REQUEST_TIMED_OUT: it may or may not survive. With ``acks=1`` Kafka knows no
    timeout, for there the append itself does not return before.
    """

    __slots__ = ("_pending", "_response", "_timer")

    is_seen_when_answered = True

    def __init__(self, response: ProduceResponse, uncommitted: Sequence[Uncommitted]) -> None:
        super().__init__()
        self._response = response
        self._timer: Timer | None = None
        self._pending = {index: append.response for index, append in enumerate(uncommitted)}
        for index, append in enumerate(uncommitted):
            append.partition.when_committed(append.next_offset, partial(self._committed, index))

    def limit(self, clock: ServerClock, timeout_ms: int) -> None:
        """
        Wait no longer than that.
        """
        if not self.done:
            self._timer = clock.call_later(max(0, timeout_ms) / 1000, self._timed_out)

    def cancel(self) -> None:
        self._stop_timer()
        super().cancel()

    def _committed(self, index: int, error: KafkaError | None) -> None:
        response = self._pending.pop(index, None)
        if response is None:
            return
        if error is not None:
            response.error_code = error.code
            response.base_offset = -1
        if not self._pending:
            self._stop_timer()
            self.answer(self._response)

    def _timed_out(self) -> None:
        for response in self._pending.values():
            response.error_code = ErrorCode.REQUEST_TIMED_OUT
        self._pending.clear()
        self.answer(self._response)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
