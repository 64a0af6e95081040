"""
The shard of the group coordinator for one partition of ``__consumer_offsets``.

::

    request, or timer --> state --> records --> one batch --> the partition's log
                            ^                                     |
                            +---------- apply --------------------+--> answers, once committed
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import ErrorCode, KafkaError, MessageTooLarge
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.config.coordinators import GroupOptions
from barnabas.server.coordinator_runtime.partition_log import PartitionLog
from barnabas.server.coordinator_runtime.timers import TimerQueue
from barnabas.server.groups.member_memory import MemberMemory
from barnabas.server.groups.records import encode_record
from barnabas.server.groups.result import CoordinatorResult
from barnabas.server.groups.shard_state import ShardState
from barnabas.server.groups.timeouts import Operation, TimerKey

if TYPE_CHECKING:
    from barnabas.server.clock import ServerClock, Timer

logger = logging.getLogger(__name__)

AppendCallback: TypeAlias = Callable[[ErrorCode | None], None]


class GroupShard:
    """
    The groups of one partition (Kafka's ``GroupCoordinatorShard``).

    Invariants:

    1. What is applied to ``state`` was appended before, in the same order.
    2. While the queue has a deadline, an alarm of the clock is set for that time, or earlier.

    Used on the event loop's thread only; loading alone runs in the executor.
    """

    def __init__(
        self,
        log: PartitionLog,
        *,
        options: GroupOptions,
        clock: ServerClock,
        memory: MemberMemory,
    ) -> None:
        self.log = log
        self._options = options
        self._clock = clock
        self._queue: TimerQueue[TimerKey, Operation] = TimerQueue(clock.monotonic, self._set_alarm)
        self._alarm: Timer | None = None
        self._state = ShardState(self._queue, options, memory)
        self._is_running_due = False

    @property
    def state(self) -> ShardState:
        """
        The sum of the records, with every timeout that is due.

        Raises:
            CoordinatorLoadInProgress, KafkaError: see ``PartitionLog.check``.
        """
        self.log.check()
        # After a long turn of the loop, requests may run before the alarm that was due earlier.
        if self._queue.is_overdue and not self._is_running_due:
            self._run_due()
        return self._state

    async def load(self) -> None:
        """
        Replay the log, then ``open``.

        Raises:
            Exception: the log cannot be read, or has records that no coordinator writes.
        """
        await self.log.load(self._state, self._options.offsets_load_buffer_size)
        self.open()

    def open(self) -> None:
        """
        Take requests: the log is replayed. Without effect after ``close``.
        """
        if self.log.open():
            self._state.loaded(self._clock.now_ms())

    def close(self) -> None:
        """
        Resign: answer the requests that wait with ``NOT_COORDINATOR``, and take no more.
        """
        self._queue.clear()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self.log.close():
            self._state.unloaded(self._clock.now_ms())

    # Records

    def write(self, result: CoordinatorResult, callback: AppendCallback | None = None) -> None:
        """
        Append the records of *result*.

        Args:
            callback: called once the records are committed, or with the error that refused them; at
                once if there are none.
        """
        if not result.records:
            if callback is not None:
                callback(None)
            return

        def committed(error: KafkaError | None) -> None:
            code = None if error is None else error.code
            if result.on_append is not None:
                result.on_append(code, self._clock.now_ms())
            if callback is not None:
                callback(code)

        try:
            next_offset = self._append(result)
        except KafkaError as error:
            logger.warning("%r: %d records were refused: %s", self, len(result.records), error)
            committed(error)
        else:
            self.log.partition.when_committed(next_offset, committed)

    def check_size(self, result: CoordinatorResult) -> None:
        """
        See whether the records may fit into a batch before it is built: with 100,000 records that
        takes half a second. No other request runs between this and ``write``.

        Raises:
            MessageTooLarge: they do not.
        """
        if self._options.offsets_topic_compression_codec or not result.is_atomic:
            return  # The size of the compressed batch is unknown; other records are divided.
        most = self.log.partition.log.config.max_message_bytes
        if sum(len(key) + len(value or b"") for key, value in result.encoded or ()) > most:
            raise MessageTooLarge(f"{len(result.records)} records do not fit into {most} bytes")

    def _append(self, result: CoordinatorResult) -> int:
        """
        Append the records and apply them; return the offset after the last one.
        """
        now_ms = self._clock.now_ms()
        pairs = result.encoded or map(encode_record, result.records)
        encoded = [SimpleRecord(now_ms, key, value) for key, value in pairs]
        next_offset = 0
        for part in self._batches(result, encoded):
            info = self.log.append(
                encoded[part],
                base_sequence=0,
                compression=CompressionType.of(self._options.offsets_topic_compression_codec),
                producer=result.producer,
                guard=result.guard,
            )
            next_offset = info.last_offset + 1
            if result.replay_records:
                for offset, record in enumerate(result.records[part], info.first_offset):
                    self._state.apply(record, offset, result.producer.producer_id)
        return next_offset

    def _batches(
        self, result: CoordinatorResult, encoded: Sequence[SimpleRecord]
    ) -> Sequence[slice]:
        return [slice(None)] if result.is_atomic else [*self.log.divided(encoded)]

    # Time

    def _set_alarm(self) -> None:
        """
        Set the alarm for the next deadline of the queue.
        """
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        when = self._queue.next_look()
        if when is not None:
            delay = when / 1000 - self._clock.monotonic()
            self._alarm = self._clock.call_later(max(0.0, delay), self._run_due)

    def _run_due(self) -> None:
        self._is_running_due = True
        try:
            while (operation := self._queue.pop_due()) is not None:
                try:
                    self.write(operation(self._clock.now_ms()))
                except Exception:
                    logger.exception("%r: a timeout failed", self)
        finally:
            self._is_running_due = False
        self._set_alarm()

    def __repr__(self) -> str:
        return f"<GroupShard {self.log!r}>"
