"""
A partition as the server sees it: a log, its leader epoch, and those who wait for it.

The log stores; a partition decides when what was stored counts (the high watermark) and tells those
who wait. With one replica the high watermark follows the end of the log at once, except when
``flush.messages`` asks for an fsync, which is what an acknowledgement then waits for. Appends that
come while an fsync runs share the next one (group commit)::

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
CommitListener: TypeAlias = Callable[[KafkaError | None], None]


class EpochEnd(NamedTuple):
    """
    Where a leader epoch ends; both -1 when that is not known.
    """

    epoch: int
    end_offset: int


class Watermarks(NamedTuple):
    """
    The offsets between which a client may read.
    """

    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class FetchResult(NamedTuple):
    """
    What a partition answers to a fetch. The offsets are those from before the read.
    """

    data: FetchDataInfo | None  # None when the epochs diverge
    diverging: EpochEnd | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class Partition:
    """
    A log plus those who wait for it.

    Invariants:

    1. Everything below the high watermark was acknowledged, or may be.
    2. While an fsync is owed, nobody is told of the offsets that it will cover.
    3. ``error`` is None as long as the partition serves; once set, every call raises it, and
       whoever waited has been told.

    Used on the event loop's thread only; the fsync alone runs in the executor.
    """

    __slots__ = (
        "_commits",
        "_flushing",
        "_io",
        "_pending",
        "_watches",
        "error",
        "index",
        "leader_epoch",
        "log",
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
        self.suspect: File | None = None
        """A file whose bytes were promised to a client, and then could not be read."""
        self._io = io
        self._watches: dict[Watch, None] = {}
        # Made when they are needed: an empty deque has more than half a KiB.
        self._commits: deque[tuple[int, CommitListener]] | None = None  # by offset
        self._flushing = False
        self._pending: deque[tuple[int, int]] | None = None  # next offset, size of what owes a sync

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index}>"

    def begin_epoch(self, leader_epoch: int) -> None:
        """
        Lead on in a later epoch: another one has been asked for, or replicas have gone.

        Raises:
            KafkaStorageError: the disk failed.
        """
        self.log.assign_epoch_start_offset(leader_epoch, self.log.log_end_offset)
        self.leader_epoch = leader_epoch

    # Writing

    def append(self, records: memoryview, **options: Any) -> LogAppendInfo:
        """
        Append batches as the leader; *options* are those of ``Log.append_as_leader``. Without any,
        it is a batch of a client, and appended only if that is done at once.

        The high watermark has moved when this returns, unless an fsync has to come first: compare
        ``info.last_offset`` with it, or ask ``when_committed``.

        Raises:
            BatchTakesLong: it would take longer, see ``append_long``.
            KafkaError: the log refuses the records, or cannot be written.
        """
        if self.error is not None:
            raise self.error.with_traceback(None)
        if options:
            info = self.log.append_as_leader(records, self.leader_epoch, **options)
        else:
            info = self.log.append_as_leader(records, self.leader_epoch, True)
        if info.is_duplicate:
            return info
        next_offset = info.last_offset + 1
        if self._flushing or info.flush_due:
            if self._pending is None:
                self._pending = deque()
            self._pending.append((next_offset, info.valid_bytes))
            if not self._flushing:
                self._flush()
        else:
            self._advance(next_offset, info.valid_bytes)
        return info

    def when_committed(self, next_offset: int, listener: CommitListener) -> None:
        """
        Call back once everything below *next_offset* is acknowledged, or with the error that
        prevents it. At once if it is so already.
        """
        if self.error is not None:
            listener(self.error)
        elif next_offset <= self.log.high_watermark:
            listener(None)
        else:
            if self._commits is None:
                self._commits = deque()
            self._commits.append((next_offset, listener))

    async def committed(self, next_offset: int) -> None:
        """
        Return once everything below *next_offset* is acknowledged.

        Raises:
            KafkaError: it will never be.
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

        Alone among the methods it may be called in any thread.

        Raises:
            OffsetOutOfRange: the log does not have that offset.
            FencedLeaderEpoch, UnknownLeaderEpoch: the client's leader is not this one.
            KafkaStorageError: the log directory is offline.
            WouldBlock: with *nowait*, the page cache lacks what has to be looked at.
        """
        self.check_leader_epoch(current_leader_epoch)
        log = self.log
        high_watermark = log.high_watermark
        start = log.log_start_offset
        stable = log.last_stable_offset
        if last_fetched_epoch != NO_EPOCH:
            diverging = self._diverging(offset, last_fetched_epoch)
            if diverging is not None:
                return FetchResult(None, diverging, high_watermark, stable, start)
        data = log.read(offset, max_bytes, isolation, min_one_message, nowait=nowait)
        if self.suspect is not None and data.records is not None:
            self._check(data.records, nowait=nowait)
        return FetchResult(data, None, high_watermark, stable, start)

    def _check(self, records: FileSlice, *, nowait: bool) -> None:
        """
        See whether *records* can be read, if they are in the file that could not be. An answer that
        is promised and not sent ends its connection, with what it has of healthy partitions, over
        and over again.
        """
        if records.file is self.suspect:
            records.read(nowait=nowait)
            self.suspect = None

    def watermarks(self) -> Watermarks:
        """
        The offsets between which a client may read now.
        """
        log = self.log
        return Watermarks(log.high_watermark, log.last_stable_offset, log.log_start_offset)

    def check_leader_epoch(self, epoch: int) -> None:
        """
        Compare the leader epoch a client knows with ours (KIP-320); -1 is no check.

        Raises:
            FencedLeaderEpoch, UnknownLeaderEpoch: it is behind, or ahead.
            KafkaError: the partition is gone or offline.
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
        Where the client's log and ours part, if they do (KIP-595, Kafka ``Partition.readRecords``).
        """
        end = self.end_of_epoch(last_fetched_epoch)
        start = self.log.log_start_offset
        if end.epoch == NO_EPOCH or offset < start:
            raise OffsetOutOfRange(
                f"{self.topic}-{self.index}: offset {offset} after epoch {last_fetched_epoch},"
                f" the log starts at {start}"
            )
        return end if end.epoch < last_fetched_epoch or end.end_offset < offset else None

    # Those who wait for bytes

    def add_watch(self, watch: Watch) -> None:
        """
        Tell *watch* of every byte that becomes readable from now on.
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
        Serve no more: deleted, or with the *error* that says why. Whoever waits is told.
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
        Move the high watermark to *offset*, that many bytes further, and tell who waited for it.
        """
        log = self.log
        if offset <= log.high_watermark:
            pass  # A listener has appended meanwhile, and that counts already.
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
        Call *listener*. Its failure concerns neither the other listeners nor the append that they
        waited for: a producer that heard of it would send its records again.
        """
        try:
            listener(error)
        except Exception:
            logger.exception("%r: a listener failed", self)

    def _tell_watches(self, size: int, before: int, stable_before: int) -> None:
        log = self.log
        stable = log.last_stable_offset
        segment = log.log_end_offset_metadata.segment_base_offset
        all_stable = stable_before == before and stable == log.high_watermark
        for watch in tuple(self._watches):
            if watch.segment not in (segment, UNKNOWN_OFFSET):
                # A fetch reads one segment, and more will not come in that one.
                watch.changed()
            elif not watch.read_committed or all_stable:
                watch.more(size)
            elif stable > stable_before:
                # How far the last stable offset jumps says nothing about this append.
                watch.changed()

    def _flush(self) -> None:
        """
        Make the log durable in the executor, then acknowledge what that covers: also what is
        appended until the executor comes to it.
        """
        self._flushing = True
        future = asyncio.get_running_loop().run_in_executor(self._io, self.log.flush)
        future.add_done_callback(self._flushed)

    def _flushed(self, done: asyncio.Future[Any]) -> None:
        self._flushing = False
        error = done.exception()
        if isinstance(error, TooManyOpenFiles):
            # The log is well, and the flush of the next append covers this one as well.
            commits, self._commits = self._commits, None
            for _, listener in commits or ():
                self._tell(listener, error)
            return
        if error is not None:
            if not isinstance(error, KafkaError):
                logger.error("%r: fsync failed", self, exc_info=error)
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
