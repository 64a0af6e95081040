"""
Fetches of share groups: what a member acquires, at once or after a wait (Kafka
``DelayedShareFetch`` and ``ShareFetchUtils``).

::

    select: partitions with something to acquire --> read --> enough? --> acquire --> answer
                 ^                                              | no
                 +------ appended, released, lock ended --------+  time is up: what there is
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.coordination.share.acquiring import AcquireRequest
from barnabas.coordination.steps import ENTRIES_PER_STEP, checkpoint
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.errors import KafkaError, OffsetOutOfRange, UnknownServerError
from barnabas.protocol.messages.share_fetch import AcquiredRecords
from barnabas.server.partitions.watch import Watch
from barnabas.server.purgatory import FetchPurgatory, WaitingFetch
from barnabas.storage.fs.interface import WouldBlock
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.segment.fetch_data import FileSlice
from barnabas.storage.segment.fetched_batches import FetchedBatch, fetched_batches
from barnabas.storage.segment.offset_metadata import UNKNOWN_OFFSET

if TYPE_CHECKING:
    from barnabas.server.share.served import ServedSharePartition
    from barnabas.storage.segment.fetch_data import FetchDataInfo

M = TypeVar("M", bound=Message)

logger = logging.getLogger(__name__)

_ANY_NUMBER: Final = 1 << 62


class ShareFetchPlan:
    """
    What one request wants.
    """

    __slots__ = (
        "batch_size",
        "is_record_limit",
        "isolation",
        "max_bytes",
        "max_records",
        "max_wait_ms",
        "member_id",
        "min_bytes",
        "partitions",
    )

    def __init__(
        self,
        partitions: Sequence[ServedSharePartition],
        member_id: str,
        *,
        isolation: FetchIsolation,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        max_records: int,
        batch_size: int,
        is_record_limit: bool,
    ) -> None:
        self.partitions = partitions
        self.member_id = member_id
        self.isolation = isolation
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.max_records = max_records
        self.batch_size = batch_size
        self.is_record_limit = is_record_limit

    @property
    def wants_nothing(self) -> bool:
        return not self.partitions or self.max_records == 0 or self.max_bytes <= 0


class ShareFetched:
    """
    What a fetch found in a share-partition.
    """

    __slots__ = ("acquired", "error", "records", "share_partition")

    def __init__(
        self, share_partition: ServedSharePartition, error: KafkaError | None = None
    ) -> None:
        self.share_partition = share_partition
        self.error = error
        self.records: FileSlice | None = None
        """The batches of the acquired records."""
        self.acquired: Sequence[AcquiredRecords] = ()


class _Selected:
    """
    A share-partition that a fetch reads, and what it reads there.
    """

    __slots__ = (
        "batches",
        "data",
        "end_offset",
        "error",
        "max_bytes",
        "offset",
        "share_partition",
        "size",
    )

    def __init__(self, share_partition: ServedSharePartition) -> None:
        window = share_partition.window
        assert window is not None
        share_partition.is_fetching = True
        self.share_partition = share_partition
        self.offset = window.next_fetch_offset()
        self.end_offset = window.end_offset
        self.max_bytes = 0
        self.data: FetchDataInfo | None = None
        self.batches: list[FetchedBatch] = []
        self.size = 0
        self.error: KafkaError | None = None

    def read(self, plan: ShareFetchPlan, *, is_first: bool, nowait: bool) -> None:
        """
        Look where the bytes are, and at the headers of the batches. In any thread.

        Raises:
            WouldBlock: with *nowait*, the page cache lacks what has to be looked at.
        """
        try:
            self.data = self.share_partition.partition.read(
                self.offset,
                self.max_bytes,
                plan.isolation,
                min_one_message=is_first,
                nowait=nowait,
            ).data
            records = None if self.data is None else self.data.records
            if records is None or self.data is None or self.data.first_entry_incomplete:
                return
            self.batches = fetched_batches(
                records, last_known=self.end_offset, most=plan.max_records, nowait=nowait
            )
            self.size = records.size
        except WouldBlock:
            raise
        except KafkaError as error:
            self.error = error.with_traceback(None)
        except Exception:
            logger.exception("%s: reading at %d failed", self.share_partition, self.offset)
            self.error = UnknownServerError()

    @property
    def is_behind(self) -> bool:
        """
        Whether it was read from a segment that gets no more records.
        """
        if not self.size or self.data is None:
            return False
        place = self.data.fetch_offset_metadata.segment_base_offset
        log = self.share_partition.partition.log
        return place < log.log_end_offset_metadata.segment_base_offset

    def slice_of(self, acquired: Sequence[AcquiredRecords]) -> FileSlice:
        """
        The bytes from the batch of the first acquired record to that of the last one.
        """
        first, last = acquired[0].first_offset, acquired[-1].last_offset
        assert self.data is not None
        records = self.data.records
        assert records is not None
        start = self.batches[0]
        end = start
        for batch in self.batches:
            if batch.base_offset <= first:
                start = batch
            if batch.base_offset > last:
                break
            end = batch
        return FileSlice(records.file, start.position, end.position + end.size - start.position)


class DelayedShareFetch(WaitingFetch):
    """
    A fetch of a share group, from its first look to what it finds.

    Invariants:

    1. One attempt at a time is made; what happens meanwhile leads to another one.
    """

    __slots__ = ("_has_news", "_plan")

    def __init__(self, purgatory: FetchPurgatory, plan: ShareFetchPlan) -> None:
        super().__init__(purgatory)
        self._plan = plan
        self._has_news = False
        self.is_hurried = plan.wants_nothing or plan.max_wait_ms <= 0

    async def response(self, respond: Callable[[list[ShareFetched]], Awaitable[M]]) -> M:
        """
        What *respond* makes of what is found, once that is enough or the last attempt.
        """
        try:
            while True:
                self._has_news = False
                response = await self._attempt(respond)
                if response is not None:
                    return response
                if not self.has_begun:
                    # No watch has seen records that were appended before the watches were set.
                    self._watch()
                elif not (self._has_news or self.is_hurried):
                    await self.wait()
        finally:
            self.leave()

    # Attempts

    async def _attempt(self, respond: Callable[[list[ShareFetched]], Awaitable[M]]) -> M | None:
        plan = self._plan
        selected: list[_Selected] = []
        try:
            if not plan.wants_nothing:
                await self._select(selected)
                await self._read_all(selected)
            failed = [each for each in plan.partitions if each.error is not None]
            is_enough = (
                self.is_hurried
                or any(one.error is not None or one.is_behind for one in selected)
                or (selected and sum(one.size for one in selected) >= plan.min_bytes)
                or len(failed) == len(plan.partitions)
            )
            if not is_enough:
                return None
            found = [ShareFetched(each, each.error) for each in failed]
            await self._acquire(selected, found)
            return await respond(found)
        finally:
            _let_go(selected)

    async def _select(self, selected: list[_Selected]) -> None:
        """
        Choose the share-partitions that have something to acquire, and divide the bytes.
        """
        plan = self._plan
        for number, share_partition in enumerate(plan.partitions, 1):
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
            if share_partition.can_acquire():
                selected.append(_Selected(share_partition))
        each, left = divmod(plan.max_bytes, len(selected) or 1)
        for place, one in enumerate(selected):
            # What cannot be divided goes to the first ones, and some get nothing if it is little.
            one.max_bytes = each + (left if each and not place else int(not each and place < left))

    async def _read(self, selected: Sequence[_Selected], *, nowait: bool) -> None:
        is_first = True
        for number, one in enumerate(selected, 1):
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
            one.read(self._plan, is_first=is_first, nowait=nowait)
            is_first = is_first and not one.size

    async def _read_all(self, selected: list[_Selected]) -> None:
        try:
            await self._read(selected, nowait=True)
        except WouldBlock:
            pass
        else:
            return
        reading = self.in_thread(lambda: self._read(selected, nowait=False))
        try:
            await asyncio.shield(reading)
        except asyncio.CancelledError:
            # The thread may still read from them.
            self.has_left = True
            taken = selected[:]
            selected.clear()
            reading.add_done_callback(lambda _: _let_go(taken))
            raise

    async def _acquire(self, selected: Sequence[_Selected], found: list[ShareFetched]) -> None:
        plan = self._plan
        left = plan.max_records
        for number, one in enumerate(selected, 1):
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
            share_partition = one.share_partition
            if share_partition.error is not None:
                found.append(ShareFetched(share_partition, share_partition.error))
                continue
            fetched = ShareFetched(share_partition)
            found.append(fetched)
            if isinstance(one.error, OffsetOutOfRange):
                share_partition.follow_log_start()
            elif one.error is not None:
                fetched.error = one.error
            elif one.batches:
                settings = share_partition.settings
                request = AcquireRequest(
                    member_id=plan.member_id,
                    max_records=left,
                    batch_size=plan.batch_size,
                    is_record_limit=plan.is_record_limit,
                    max_in_flight=settings.max_record_locks,
                    max_delivery_count=settings.delivery_count_limit,
                    lock_until=self.purgatory.clock.now_ms() + settings.record_lock_duration_ms,
                )
                assert one.data is not None
                acquired = share_partition.acquire(
                    request, one.offset, one.batches, one.data.aborted_transactions or ()
                )
                if acquired:
                    fetched.acquired = acquired
                    fetched.records = one.slice_of(acquired)
                    left -= sum(each.last_offset - each.first_offset + 1 for each in acquired)

    # Waiting

    def _watch(self) -> None:
        plan = self._plan
        self.begin(plan.max_wait_ms)
        for share_partition in plan.partitions:
            watch = Watch(
                self,
                share_partition.partition,
                available=0,
                limit=_ANY_NUMBER,
                segment=UNKNOWN_OFFSET,
                read_committed=plan.isolation is FetchIsolation.TXN_COMMITTED,
            )
            self.watches.append(watch)
            share_partition.waiters[self] = None
            share_partition.partition.add_watch(watch)

    def arrived(self, size: int) -> None:
        self.wake()

    def wake(self) -> None:
        self._has_news = True
        super().wake()

    def leave(self) -> None:
        super().leave()
        for share_partition in self._plan.partitions:
            share_partition.waiters.pop(self, None)


def _let_go(selected: Sequence[_Selected]) -> None:
    """
    Let other fetches have these share-partitions.
    """
    for one in selected:
        one.share_partition.end_fetch()
