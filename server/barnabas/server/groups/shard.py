"""
One partition of ``__consumer_offsets``, coordinated.

::

    request, or timer --> state --> Changes --> one batch --> the partition's log
                            ^                                     |
                            +---------- apply --------------------+--> answers, once committed
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import (
    CoordinatorLoadInProgress,
    ErrorCode,
    KafkaError,
    MessageTooLarge,
)
from barnabas.protocol.records.batch import HEADER_SIZE, NO_PRODUCER_EPOCH, build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.config.coordinators import GroupOptions
from barnabas.server.groups.changes import Changes, Producer
from barnabas.server.groups.loading import load
from barnabas.server.groups.member_memory import MemberMemory
from barnabas.server.groups.offsets.offsets import NO_PRODUCER_ID
from barnabas.server.groups.records import Record, encode_record
from barnabas.server.groups.shard_state import ShardState
from barnabas.server.groups.timers import TimerQueue
from barnabas.storage.producers.append_origin import AppendOrigin

if TYPE_CHECKING:
    from barnabas.server.clock import ServerClock, Timer
    from barnabas.server.partitions.partition import Partition

log = logging.getLogger(__name__)

Settled: TypeAlias = Callable[[ErrorCode | None], None]

NOBODY: Final = Producer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
RECORD_OVERHEAD: Final = 32
"""
More than a record of ours takes beside its key and value: two varlongs, four varints, attributes.
"""


class Shard:
    """
    The coordinator of the groups of one partition.

    Invariants:

    1. Nothing reads or changes ``state`` before all of the log is replayed.
    2. What is applied to ``state`` was appended before, in the same order.
    3. While the queue has something to look at, a timer of the clock is set for that time, or
       earlier.

    Used on the event loop's thread only; loading alone runs in the executor.
    """

    def __init__(
        self,
        partition: Partition,
        *,
        options: GroupOptions,
        clock: ServerClock,
        io: Executor,
        memory: MemberMemory,
    ) -> None:
        self.partition = partition
        self._options = options
        self._clock = clock
        self._io = io
        self._queue = TimerQueue(clock.monotonic, self._set_alarm)
        self._alarm: Timer | None = None
        self._state = ShardState(self._queue, options, memory)
        self._is_loaded = False
        self._is_closed = False
        self._is_running_due = False

    @property
    def state(self) -> ShardState:
        """
        What the log adds up to.

        Raises:
            CoordinatorLoadInProgress: that is not known yet.
            KafkaError: the partition is not served any more.
        """
        self.check()
        self._run_overdue()
        return self._state

    def check(self) -> None:
        """
        See whether requests can be taken.

        Raises:
            CoordinatorLoadInProgress, KafkaError: as ``state``.
        """
        if self.partition.error is not None:
            raise self.partition.error.with_traceback(None)
        if not self._is_loaded:
            raise CoordinatorLoadInProgress

    # From the log, and back to it

    async def load(self) -> None:
        """
        Replay the log, then ``open``.

        Raises:
            Exception: it cannot be read, or is not what a coordinator writes.
        """
        await asyncio.get_running_loop().run_in_executor(
            self._io,
            load,
            self._state,
            self.partition.log,
            self._options.offsets_load_buffer_size,
        )
        if not self._is_closed:
            self.open()

    def open(self) -> None:
        """
        Take requests: all of the log is replayed.
        """
        self._is_loaded = True
        self._state.loaded(self._clock.now_ms())

    def close(self) -> None:
        """
        Coordinate these groups no more; whoever waits is told to look for somebody else.
        """
        self._is_closed = True
        self._queue.clear()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._is_loaded:
            self._is_loaded = False
            self._state.unloaded(self._clock.now_ms())

    def write(self, changes: Changes, settled: Settled | None = None) -> None:
        """
        Append what an operation has to say, and see to what follows.

        Args:
            settled: hears of the error that kept the records out of the log, or None once they
                count. At once, where there are no records.
        """
        if not changes.records:
            if settled is not None:
                settled(None)
            return

        def committed(error: KafkaError | None) -> None:
            code = None if error is None else error.code
            if changes.written is not None:
                changes.written(code, self._clock.now_ms())
            if settled is not None:
                settled(code)

        try:
            next_offset = self._append(changes)
        except KafkaError as error:
            log.warning("%r: %d records were refused: %s", self, len(changes.records), error)
            committed(error)
        else:
            self.partition.when_committed(next_offset, committed)

    def check_size(self, changes: Changes) -> None:
        """
        See whether the records may fit into a batch, before that is built: with 100,000 of them it
        takes half a second. Nobody comes between this and ``write``.

        Raises:
            MessageTooLarge: they do not.
        """
        if self._options.offsets_topic_compression_codec:
            return  # Who knows how small the batch becomes.
        most = self.partition.log.config.max_message_bytes
        if sum(len(key) + len(value or b"") for key, value in changes.encoded or ()) > most:
            raise MessageTooLarge(f"{len(changes.records)} records do not fit into {most} bytes")

    def _append(self, changes: Changes) -> int:
        """
        Append records, in one batch where they belong together; return where the log then ends.
        """
        now_ms = self._clock.now_ms()
        compression = CompressionType.of(self._options.offsets_topic_compression_codec)
        producer = changes.producer or NOBODY
        next_offset = 0
        for records, encoded in self._batches(changes, now_ms):
            batch = build_batch(
                encoded,
                base_sequence=0,
                compression=compression,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                is_transactional=changes.producer is not None,
            )
            info = self.partition.append(
                memoryview(batch), origin=AppendOrigin.COORDINATOR, verification_guard=changes.guard
            )
            next_offset = info.last_offset + 1
            if not changes.ahead:
                for offset, record in enumerate(records, info.first_offset):
                    self._state.apply(record, offset, producer.producer_id)
        return next_offset

    def _batches(
        self, changes: Changes, now_ms: int
    ) -> Iterator[tuple[Sequence[Record], list[SimpleRecord]]]:
        pairs = changes.encoded or map(encode_record, changes.records)
        most = self.partition.log.config.max_message_bytes
        encoded = [SimpleRecord(now_ms, key, value) for key, value in pairs]
        if not changes.divisible:
            yield changes.records, encoded
            return
        start, size = 0, HEADER_SIZE
        for index, (_, key, value, _) in enumerate(encoded):
            more = len(key or b"") + len(value or b"") + RECORD_OVERHEAD
            if size + more > most and index > start:
                yield changes.records[start:index], encoded[start:index]
                start, size = index, HEADER_SIZE
            size += more
        yield changes.records[start:], encoded[start:]

    # Time

    def _set_alarm(self) -> None:
        """
        The first time to look at the queue has moved forward: wake up then.
        """
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        when = self._queue.next_look()
        if when is not None:
            delay = when / 1000 - self._clock.monotonic()
            self._alarm = self._clock.call_later(max(0.0, delay), self._run_due)

    def _run_overdue(self) -> None:
        """
        Have what is due happen before a request sees the groups: after a turn of the loop that took
        long, the requests that came meanwhile may be looked at before the alarm rings.
        """
        if not self._is_running_due and self._queue.is_overdue:
            self._run_due()

    def _run_due(self) -> None:
        self._is_running_due = True
        try:
            self._run_all_due()
        finally:
            self._is_running_due = False
        self._set_alarm()

    def _run_all_due(self) -> None:
        while (operation := self._queue.pop_due()) is not None:
            try:
                self.write(operation(self._clock.now_ms()))
            except Exception:
                log.exception("%r: a timeout failed", self)

    def __repr__(self) -> str:
        return f"<Shard {self.partition.topic}-{self.partition.index}>"
