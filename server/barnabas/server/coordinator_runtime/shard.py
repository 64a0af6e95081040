"""
A shard of a coordinator: one partition of its internal topic, and the state that its records make.

::

    request, or timer --> state --> records --> one batch --> the partition's log
                            ^                                     |
                            +---------- apply --------------------+--> answers, once committed

Groups, transactions and share-partitions differ in their state only (Kafka's
``CoordinatorRuntime`` and ``CoordinatorShard``).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from barnabas.coordination.coordinator_runtime.errors import coordinator_error
from barnabas.coordination.coordinator_runtime.loading import Playback
from barnabas.coordination.coordinator_runtime.result import CoordinatorResult, EncodedRecord
from barnabas.coordination.coordinator_runtime.timers import TimedOperation, TimerQueue, Timers
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import (
    ErrorCode,
    KafkaError,
    MessageTooLarge,
    UnknownServerError,
    error_for,
)
from barnabas.protocol.records.record import SimpleRecord
from barnabas.protocol.structs import struct
from barnabas.server.coordinator_runtime.partition_log import PartitionLog

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock, Timer

logger = logging.getLogger(__name__)

AppendCallback: TypeAlias = Callable[[ErrorCode | None], None]


class StateMachine(Playback, Protocol):
    """
    The state of a shard: requests read it and decide on records, and only records change it.
    """

    def encode(self, record: Any) -> EncodedRecord:
        """
        The key and the value of a record.
        """

    def check_room(self, result: CoordinatorResult[Any]) -> None:
        """
        See whether there is memory for what the records of *result* make.

        Raises:
            KafkaError: there is none.
        """

    def apply(self, record: Any, record_offset: int, producer_id: int) -> None:
        """
        Apply a record that is in the log.

        Args:
            producer_id: of the transaction that the record belongs to, or -1.
        """

    def loaded(self, now_ms: int) -> None:
        """
        Begin to wait for what falls due: the log is replayed.
        """

    def unloaded(self, now_ms: int) -> None:
        """
        Answer the requests that wait: the shard resigns.
        """


S = TypeVar("S", bound=StateMachine)


@struct
class LogFormat:
    """
    How a coordinator reads and writes its log.
    """

    base_sequence: int
    """The base sequence of its batches, by which those of Kafka's coordinators differ."""
    load_buffer_bytes: int
    compression: CompressionType = CompressionType.NONE
    is_compacted: bool = True
    """Whether the last record of each key counts, and no other."""


class CoordinatorShard(Generic[S]):
    """
    The state of one partition, its log and its timers.

    Invariants:

    1. What is applied to the state was appended before, in the same order.
    2. While the queue has a deadline, an alarm of the clock is set for that time, or earlier.
    3. Its errors are those of a client of the coordinator, see ``coordinator_error``.
    4. An answer leaves after the commit of the records that made the state which it tells, also if
       the request itself has written none.

    Used on the event loop's thread only; loading alone runs in the executor.
    """

    def __init__(
        self,
        log: PartitionLog,
        *,
        log_format: LogFormat,
        clock: ServerClock,
        make_state: Callable[[Timers], S],
    ) -> None:
        """
        Args:
            make_state: makes the state of an empty log, which gets the timers of the shard.
        """
        self.log = log
        self._format = log_format
        self._clock = clock
        self._queue: TimerQueue[Any, TimedOperation] = TimerQueue(clock.monotonic, self._set_alarm)
        self._alarm: Timer | None = None
        self._state = make_state(self._queue)
        self._is_running_due = False

    def check(self) -> None:
        """
        See whether requests can be taken.

        Raises:
            CoordinatorLoadInProgress: the log is not replayed yet.
            KafkaError: the partition is not served any more.
        """
        try:
            self.log.check()
        except KafkaError as error:
            raise error_for(coordinator_error(error.code)) from None

    @property
    def state(self) -> S:
        """
        The sum of the records, with every timeout that is due.

        Raises:
            CoordinatorLoadInProgress, KafkaError: see ``check``.
        """
        self.check()
        # After a long turn of the loop, requests may run before the alarm that was due earlier.
        if self._queue.is_overdue and not self._is_running_due:
            self._run_due()
        return self._state

    @property
    def seen(self) -> S:
        """
        The sum of the records as it is now, to look at. Nothing that is due happens because of it.
        """
        return self._state

    async def load(self) -> None:
        """
        Replay the log, then ``open``.

        Raises:
            Exception: the log cannot be read, or has records that no coordinator writes.
        """
        await self.log.load(
            self._state, self._format.load_buffer_bytes, is_compacted=self._format.is_compacted
        )
        self.open()

    def open(self) -> None:
        """
        Take requests: the log is replayed. Without effect after ``close``.
        """
        if self.log.open():
            self._state.loaded(self._clock.now_ms())

    def close(self) -> None:
        """
        Resign: let the state answer the requests that wait, and take no more.
        """
        self._queue.clear()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self.log.close():
            self._state.unloaded(self._clock.now_ms())

    # Records

    def write(self, result: CoordinatorResult[Any], callback: AppendCallback | None = None) -> None:
        """
        Append the records of *result*, and apply them.

        Args:
            callback: called once the records are committed, or with the error that refused them. If
                there are none, once all earlier records are committed, as in Kafka.
        """

        def committed(error: KafkaError | None) -> None:
            code = None if error is None else coordinator_error(error.code)
            if result.on_append is not None:
                result.on_append(code, self._clock.now_ms())
            if callback is not None:
                callback(code)

        if not result.records:
            self.log.when_settled(committed)
            return
        try:
            next_offset = self._append(result)
        except KafkaError as error:
            logger.warning("%s: %d records were refused: %s", self, len(result.records), error)
            committed(error)
        else:
            self.log.when_committed(next_offset, committed)

    async def commit(self, result: CoordinatorResult[Any]) -> None:
        """
        Append the records of *result*, apply them, and return once they are committed.

        Raises:
            KafkaError: the records were refused, or their commit failed.
        """
        future: asyncio.Future[ErrorCode | None] = asyncio.get_running_loop().create_future()
        self.write(result, lambda code: None if future.done() else future.set_result(code))
        code = await future
        if code is not None:
            raise error_for(code)

    def when_settled(self, listener: AppendCallback) -> None:
        """
        Call *listener* once the state as it is now is committed, or with the error that prevents
        it.
        """
        self.log.when_settled(
            lambda error: listener(None if error is None else coordinator_error(error.code))
        )

    def check_size(self, result: CoordinatorResult[Any]) -> None:
        """
        See whether the records may fit into a batch before it is built: with 100,000 records that
        takes half a second. No other request runs between this and ``write``.

        Raises:
            MessageTooLarge: they do not.
        """
        if self._format.compression or not result.is_atomic:
            return  # The size of the compressed batch is unknown; other records are divided.
        most = self.log.max_message_bytes
        if sum(len(key) + len(value or b"") for key, value in result.encoded or ()) > most:
            raise MessageTooLarge(f"{len(result.records)} records do not fit into {most} bytes")

    def check_texts(self, texts: Iterable[str]) -> None:
        """
        See whether a record with all *texts* may fit into a batch before the request is served:
        with 40,000 names of topics that takes seconds.

        Raises:
            UnknownServerError: it does not. Kafka refuses records that are too large with its code.
        """
        most = self.log.max_message_bytes
        if not self._format.compression and sum(map(len, texts)) > most:
            raise UnknownServerError(f"The request needs a record of more than {most} bytes.")

    def _append(self, result: CoordinatorResult[Any]) -> int:
        """
        Append the records and apply them; return the offset after the last one.

        Raises:
            KafkaError: they were refused, all of them.
        """
        self._state.check_room(result)
        now_ms = self._clock.now_ms()
        pairs = result.encoded or map(self._state.encode, result.records)
        encoded = [SimpleRecord(now_ms, key, value) for key, value in pairs]
        next_offset = 0
        for part in self._batches(result, encoded):
            info = self.log.append(
                encoded[part],
                base_sequence=self._format.base_sequence,
                compression=self._format.compression,
                producer=result.producer,
                guard=result.guard,
            )
            next_offset = info.last_offset + 1
            if result.replay_records:
                for offset, record in enumerate(result.records[part], info.first_offset):
                    self._state.apply(record, offset, result.producer.producer_id)
        return next_offset

    def _batches(
        self, result: CoordinatorResult[Any], encoded: Sequence[SimpleRecord]
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
                    logger.exception("%s: a timeout failed", self)
        finally:
            self._is_running_due = False
        self._set_alarm()

    def __repr__(self) -> str:
        return f"<Shard {self}>"

    def __str__(self) -> str:
        return repr(self.log)
