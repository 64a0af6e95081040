"""
A partition as the server sees it: a log, its leader epoch, and the requests that wait for it.

The log stores batches; the partition advances the high watermark, and answers the requests that
wait for it. With one replica the high watermark follows the end of the log at once, unless
``flush.messages`` requires an fsync first. Appends during an fsync share the next one (group
commit)::

    append --> log end offset --+--> high watermark --> acknowledgements, waiting fetches
                                |         ^
                                +- fsync -+   only when flush.messages is reached
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from barnabas.protocol.errors import (
    ErrorCode,
    FencedLeaderEpoch,
    KafkaError,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from barnabas.storage.errors import KafkaStorageError, TooManyOpenFiles
from barnabas.storage.segment.offset_metadata import UNKNOWN_OFFSET

if TYPE_CHECKING:
    from barnabas.server.partitions.watch import Watch
    from barnabas.storage.fs.interface import File
    from barnabas.storage.log.append_info import LogAppendInfo
    from barnabas.storage.log.fetch_isolation import FetchIsolation
    from barnabas.storage.log.log import Log
    from barnabas.storage.segment.fetch_data import FetchDataInfo, FileSlice

logger = logging.getLogger(__name__)

NO_EPOCH: Final = -1
NOT_LEADER: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
"""
The errors beside which an answer names the leader (KIP-951).
"""
CommitListener: TypeAlias = Callable[[KafkaError | None], None]


class EpochEnd(NamedTuple):
    """
    The end of a leader epoch; both fields are -1 if it is unknown.
    """

    epoch: int
    end_offset: int


class ReadableOffsets:
    """
    The offsets between which a client may read.
    """

    __slots__ = ("high_watermark", "last_stable_offset", "log_start_offset")

    def __init__(self, high_watermark: int, last_stable_offset: int, log_start_offset: int) -> None:
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset

    def are(self, other: ReadableOffsets) -> bool:
        """
        Whether the *other* ones are the same.
        """
        return (
            self.high_watermark == other.high_watermark
            and self.last_stable_offset == other.last_stable_offset
            and self.log_start_offset == other.log_start_offset
        )


class FetchResult:
    """
    The result of a fetch from a partition. The watermarks are those from before the read.
    """

    __slots__ = ("data", "diverging", "watermarks")

    def __init__(
        self, data: FetchDataInfo | None, diverging: EpochEnd | None, watermarks: ReadableOffsets
    ) -> None:
        self.data = data
        """None where the epochs diverge."""
        self.diverging = diverging
        self.watermarks = watermarks


class Partition:
    """
    A log, and the requests that wait for it.

    Invariants:

    1. All records below the high watermark are acknowledged, or may be.
    2. While an fsync is due, no request sees the offsets that it will cover.
    3. ``error`` is None as long as the partition serves; once set, every call raises it, and all
       waiting requests have failed with it.

    Used on the event loop's thread only; the fsync alone runs in the executor.
    """

    __slots__ = (
        "_commits",
        "_flushing",
        "_io",
        "_pending",
        "_watches",
        "bytes_in",
        "bytes_out",
        "error",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "index",
        "leader_epoch",
        "log",
        "produces",
        "records_in",
        "suspect",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        index: int,
        *,
        topic_id: UUID,
        leader_epoch: int,
        log: Log,
        io: Executor,
    ) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.leader_epoch = leader_epoch
        self.log = log
        self.error: KafkaError | None = None
        self.records_in = 0
        """Records that were appended since the partition is open."""
        self.bytes_in = 0
        """Bytes of their batches."""
        self.bytes_out = 0
        """Bytes of the batches that consumers were sent."""
        self.produces = self.failed_produces = 0
        """Requests to append, and those that failed for a reason that nobody expects."""
        self.fetches = self.failed_fetches = 0
        """Requests to read, and those that failed likewise."""
        self.suspect: File | None = None
        """A file that could not be read after a response had announced its bytes."""
        self._io = io
        self._watches: dict[Watch, None] = {}
        # Created when needed: an empty deque takes more than half a KiB.
        self._commits: deque[tuple[int, CommitListener]] | None = None  # by offset
        self._flushing = False
        self._pending: deque[tuple[int, int]] | None = None  # next offset and size of unsynced ones

    def __repr__(self) -> str:
        return f"<Partition {self}>"

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    def begin_epoch(self, leader_epoch: int) -> None:
        """
        Continue to lead in a later epoch, after an election or a change of the replicas.

        Raises:
            KafkaStorageError: the disk failed.
        """
        self.log.assign_epoch_start_offset(leader_epoch, self.log.log_end_offset)
        self.leader_epoch = leader_epoch

    # Writing

    def append(self, records: memoryview, **options: Any) -> LogAppendInfo:
        """
        Append batches as the leader; *options* are those of ``Log.append_as_leader``. Without
        options they are a client's, and appended only if that takes no long work.

        The high watermark has moved when this returns, unless an fsync has to come first: compare
        ``info.last_offset`` with it, or ask ``when_committed``.

        Raises:
            BatchTakesLong: their validation is long work.
            KafkaError: the log refuses the records, or cannot be written.
        """
        if self.error is not None:
            raise self.error.with_traceback(None)
        if options:
            info = self.log.append_as_leader(records, self.leader_epoch, **options)
        else:
            info = self.log.append_as_leader(records, self.leader_epoch, at_once=True)
        self.produces += 1
        if info.is_duplicate:
            return info
        next_offset = info.last_offset + 1
        self.records_in += next_offset - info.first_offset
        self.bytes_in += info.valid_bytes
        if self._flushing or info.flush_due:
            if self._pending is None:
                self._pending = deque()
            self._pending.append((next_offset, info.valid_bytes))
            if not self._flushing and next_offset <= self.log.log_end_offset:
                self._flush()
        else:
            self._advance(next_offset, info.valid_bytes)
        return info

    def when_committed(self, next_offset: int, listener: CommitListener) -> None:
        """
        Call *listener* once all records below *next_offset* are committed, at once if they are, or
        with the error that prevents it.
        """
        if self.error is not None:
            listener(self.error)
        elif next_offset <= self.log.high_watermark:
            listener(None)
        else:
            if not self._flushing and next_offset <= self.log.log_end_offset:
                # The last one failed for want of a descriptor, and no append follows: this is a
                # producer's second attempt, whose records are in the log.
                self._flush()
            if self._commits is None:
                self._commits = deque()
            self._commits.append((next_offset, listener))

    @property
    def is_settled(self) -> bool:
        """
        Return True if the high watermark has reached the end of the log.
        """
        return self.log.high_watermark >= self.log.log_end_offset

    def when_settled(self, listener: CommitListener) -> None:
        """
        Call *listener* once all records that were appended so far are committed, or with the error
        that prevents it.
        """
        self.when_committed(self.log.log_end_offset, listener)

    async def committed(self, next_offset: int) -> None:
        """
        Return once all records below *next_offset* are committed.

        Raises:
            KafkaError: they will never be.
        """
        if self.error is None and next_offset <= self.log.high_watermark:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def settle(error: KafkaError | None) -> None:
            if not future.done():
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(error)

        self.when_committed(next_offset, settle)
        await future

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        isolation: FetchIsolation,
        *,
        min_one_message: bool,
        current_leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        nowait: bool = False,
    ) -> FetchResult:
        """
        Find the bytes from *offset* on; the epochs are -1 where the client does not check them.

        The only method that may be called in any thread.

        Raises:
            OffsetOutOfRange: the log does not have that offset.
            FencedLeaderEpoch, UnknownLeaderEpoch: the client's leader is not this one.
            KafkaStorageError: the log directory is offline.
            WouldBlock: with *nowait*, the page cache lacks bytes that have to be read.
        """
        self.check_leader_epoch(current_leader_epoch)
        watermarks = self.watermarks()
        if last_fetched_epoch != NO_EPOCH:
            diverging = self._diverging(offset, last_fetched_epoch)
            if diverging is not None:
                return FetchResult(None, diverging, watermarks)
        data = self.log.read(offset, max_bytes, isolation, min_one_message, nowait=nowait)
        if self.suspect is not None and data.records is not None:
            self._check(data.records, nowait=nowait)
        return FetchResult(data, None, watermarks)

    def _check(self, records: FileSlice, *, nowait: bool) -> None:
        """
        Read *records* if they are in the suspect file. A response that has announced their bytes
        and cannot send them ends its connection, with the records of healthy partitions, and so
        would each retry.
        """
        if records.file is self.suspect:
            records.read(nowait=nowait)
            self.suspect = None

    def watermarks(self) -> ReadableOffsets:
        """
        The offsets between which a client may read now.
        """
        log = self.log
        return ReadableOffsets(log.high_watermark, log.last_stable_offset, log.log_start_offset)

    def check_leader_epoch(self, epoch: int) -> None:
        """
        Compare the client's leader epoch with that of the partition (KIP-320); -1 is no check.

        Raises:
            FencedLeaderEpoch, UnknownLeaderEpoch: the client's epoch is older, or newer.
            KafkaError: the partition is deleted or offline.
        """
        if self.error is not None:
            raise self.error.with_traceback(None)
        if epoch not in (NO_EPOCH, self.leader_epoch):
            error = FencedLeaderEpoch if epoch < self.leader_epoch else UnknownLeaderEpoch
            raise error(f"{self.topic}-{self.index} is at leader epoch {self.leader_epoch}")

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """
        The epoch, or the next lower known one, and the offset where it ends.
        """
        end = self.log.end_offset_for_epoch(epoch)
        return EpochEnd(NO_EPOCH, -1) if end is None else EpochEnd(end.epoch, end.offset)

    def _diverging(self, offset: int, last_fetched_epoch: int) -> EpochEnd | None:
        """
        The end of the epoch at which the client's log diverges (KIP-595, Kafka's
        ``Partition.readRecords``).
        """
        end = self.end_of_epoch(last_fetched_epoch)
        start = self.log.log_start_offset
        if end.epoch == NO_EPOCH or offset < start:
            raise OffsetOutOfRange(
                f"{self.topic}-{self.index}: offset {offset} after epoch {last_fetched_epoch},"
                f" the log starts at {start}"
            )
        return end if end.epoch < last_fetched_epoch or end.end_offset < offset else None

    # Fetches that wait for bytes

    def add_watch(self, watch: Watch) -> None:
        """
        Notify *watch* of all bytes that become readable from now on.
        """
        if self.error is not None:
            watch.changed()
        else:
            self._watches[watch] = None

    def remove_watch(self, watch: Watch) -> None:
        self._watches.pop(watch, None)

    # The end

    def close(self, error: KafkaError | None = None) -> None:
        """
        Serve no more requests, and fail the waiting ones with *error*, by default that of a
        deleted partition.
        """
        if self.error is not None:
            return
        self.error = error or UnknownTopicOrPartition(f"{self.topic}-{self.index} is deleted")
        for watch in tuple(self._watches):
            watch.changed()
        self._watches.clear()
        commits, self._commits = self._commits, None
        for _, listener in commits or ():
            self._tell(listener, self.error)

    # The high watermark

    def _advance(self, offset: int, size: int) -> None:
        """
        Move the high watermark to *offset*, *size* bytes further, and notify the waiting requests.
        """
        log = self.log
        if offset <= log.high_watermark:
            pass  # A listener has appended meanwhile, and has moved it further.
        elif self._watches:
            before, stable_before = log.high_watermark, log.last_stable_offset
            log.update_high_watermark(offset)
            self._tell_watches(size, before, stable_before)
        else:
            log.update_high_watermark(offset)
        commits = self._commits
        while commits and commits[0][0] <= offset:
            self._tell(commits.popleft()[1], None)

    def _tell(self, listener: CommitListener, error: KafkaError | None) -> None:
        """
        Call *listener*, and log its failure: an append that failed because of a listener would be
        sent again by its producer.
        """
        try:
            listener(error)
        except Exception:
            logger.exception("%s: a listener failed", self)

    def _tell_watches(self, size: int, before: int, stable_before: int) -> None:
        log = self.log
        stable = log.last_stable_offset
        segment = log.log_end_offset_metadata.segment_base_offset
        all_stable = stable_before == before and stable == log.high_watermark
        for watch in tuple(self._watches):
            if watch.segment not in (segment, UNKNOWN_OFFSET):
                # A fetch reads one segment, and this one gets no more records.
                watch.changed()
            elif not watch.read_committed or all_stable:
                watch.more(size)
            elif stable > stable_before:
                # The last stable offset moves by other sizes than that of this append.
                watch.changed()

    def _flush(self) -> None:
        """
        Flush the log in the executor, then acknowledge the records that this covers, including
        those that are appended until the executor runs it.
        """
        self._flushing = True
        future = asyncio.get_running_loop().run_in_executor(self._io, self.log.flush)
        future.add_done_callback(self._flushed)

    def _flushed(self, done: asyncio.Future[Any]) -> None:
        self._flushing = False
        error = done.exception()
        if isinstance(error, TooManyOpenFiles):
            # The log is healthy, and the flush of the next append covers this one as well.
            commits, self._commits = self._commits, None
            for _, listener in commits or ():
                self._tell(listener, error)
            return
        if error is not None:
            if not isinstance(error, KafkaError):
                logger.error("%s: fsync failed", self, exc_info=error)
                error = KafkaStorageError(f"{self.topic}-{self.index}: fsync failed: {error}")
            self.close(error)
            return
        if self.error is not None:
            return
        log = self.log
        self._acknowledge(log.recovery_point)
        if self._pending:
            if log.log_end_offset - log.recovery_point >= log.config.flush_messages:
                self._flush()
            else:
                self._acknowledge(log.log_end_offset)

    def _acknowledge(self, offset: int) -> None:
        pending = self._pending
        size = 0
        while pending and pending[0][0] <= offset:
            next_offset, added = pending.popleft()
            size += added
        if size:
            self._advance(next_offset, size)
