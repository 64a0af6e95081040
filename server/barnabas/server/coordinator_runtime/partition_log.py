"""
The partition of an internal topic, as the shard that owns it uses it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.coordination.coordinator_runtime.loading import Playback
from barnabas.coordination.coordinator_runtime.producer import NO_PRODUCER, ProducerIdAndEpoch
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import CoordinatorLoadInProgress
from barnabas.protocol.records.batch import HEADER_SIZE, build_batch
from barnabas.protocol.records.record import SimpleRecord
from barnabas.server.coordinator_runtime.loading import load
from barnabas.storage.producers.append_origin import AppendOrigin
from barnabas.storage.producers.entry import SENTINEL, VerificationGuard

if TYPE_CHECKING:
    from barnabas.server.partitions.partition import CommitListener, Partition
    from barnabas.storage.log.append_info import LogAppendInfo

RECORD_OVERHEAD: Final = 32
"""
The most bytes of a record beside its key and value: two varlongs, four varints, attributes.
"""


class PartitionLog:
    """
    The log of one shard, from its replay until the shard resigns.

    Invariants:

    1. The state of the shard is read and changed only while the log is open, or by ``load``.
    2. A log is opened once; after ``close`` it stays closed.

    Used on the event loop's thread only; the replay alone runs in the executor.
    """

    __slots__ = ("_io", "_is_closed", "_is_loaded", "partition")

    def __init__(self, partition: Partition, io: Executor) -> None:
        self.partition = partition
        self._io = io
        self._is_loaded = False
        self._is_closed = False

    @property
    def index(self) -> int:
        return self.partition.index

    @property
    def max_message_bytes(self) -> int:
        """
        ``max.message.bytes`` of the topic.
        """
        return self.partition.log.config.max_message_bytes

    @property
    def is_empty(self) -> bool:
        """
        Whether there is nothing to replay.
        """
        log = self.partition.log
        return log.log_end_offset == log.log_start_offset

    @property
    def is_open(self) -> bool:
        """
        Whether the log is replayed, and the partition is served.
        """
        return self._is_loaded and self.partition.error is None

    def check(self) -> None:
        """
        See whether requests can be taken.

        Raises:
            CoordinatorLoadInProgress: the log is not replayed yet.
            KafkaError: the partition is not served any more.
        """
        if self.partition.error is not None:
            raise self.partition.error.with_traceback(None)
        if not self._is_loaded:
            raise CoordinatorLoadInProgress

    async def load(
        self, playback: Playback, buffer_bytes: int, *, is_compacted: bool = True
    ) -> None:
        """
        Apply all records to *playback*, in the executor. The log is still not open afterwards.

        Raises:
            Exception: the log cannot be read, or has records that no coordinator writes.
        """
        loop = asyncio.get_running_loop()
        work = partial(load, playback, self.partition.log, buffer_bytes, is_compacted=is_compacted)
        await loop.run_in_executor(self._io, work)

    def open(self) -> bool:
        """
        Take requests, unless the shard has resigned meanwhile; return whether it takes them.
        """
        self._is_loaded = not self._is_closed
        return self._is_loaded

    def close(self) -> bool:
        """
        Take no more requests; return whether the log was open.
        """
        was_loaded, self._is_loaded, self._is_closed = self._is_loaded, False, True
        return was_loaded

    def append(
        self,
        records: Sequence[SimpleRecord],
        *,
        base_sequence: int,
        compression: CompressionType = CompressionType.NONE,
        producer: ProducerIdAndEpoch = NO_PRODUCER,
        guard: VerificationGuard = SENTINEL,
    ) -> LogAppendInfo:
        """
        Append *records* in one batch.

        Args:
            producer: the producer of the transaction that the records belong to.
            guard: what the log handed out for the verification of that transaction (KIP-890).

        Raises:
            KafkaError: the log refuses the batch, or cannot be written.
        """
        batch = build_batch(
            records,
            base_sequence=base_sequence,
            compression=compression,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            is_transactional=producer != NO_PRODUCER,
        )
        return self.partition.append(
            memoryview(batch), origin=AppendOrigin.COORDINATOR, verification_guard=guard
        )

    def when_committed(self, next_offset: int, listener: CommitListener) -> None:
        """
        Call *listener* once all records below *next_offset* are committed, at once if they are, or
        with the error that prevents it.
        """
        self.partition.when_committed(next_offset, listener)

    @property
    def is_settled(self) -> bool:
        """
        Return True if a crash takes back no record of the current state.
        """
        return self.partition.is_settled

    def when_settled(self, listener: CommitListener) -> None:
        """
        Call *listener* once the records that the state is made from now are committed, at once if
        they are, or with the error that prevents it.
        """
        if self.is_settled:
            listener(None)
        else:
            self.partition.when_settled(listener)

    async def delete_records(self, offset: int) -> None:
        """
        Delete the records below *offset*, which later ones replace. Those are synced before, in the
        executor: a crash of the machine could otherwise leave neither.

        Raises:
            KafkaError: the log cannot be written, or is not served any more.
        """
        log = self.partition.log
        await asyncio.get_running_loop().run_in_executor(self._io, log.flush)
        self.check()
        log.delete_records(offset)

    def divided(self, records: Sequence[SimpleRecord]) -> Iterator[slice]:
        """
        Divide *records* into as few batches as ``max.message.bytes`` of the topic allows.
        """
        most = self.max_message_bytes
        start, size = 0, HEADER_SIZE
        for index, (_, key, value, _) in enumerate(records):
            more = len(key or b"") + len(value or b"") + RECORD_OVERHEAD
            if size + more > most and index > start:
                yield slice(start, index)
                start, size = index, HEADER_SIZE
            size += more
        if start < len(records):
            yield slice(start, len(records))

    def __repr__(self) -> str:
        return f"{self.partition.topic}-{self.partition.index}"
