"""
What one fetch request reads.

The rules are those of Kafka's ``ReplicaManager.readFromLog``. Partitions are walked in the order of
the request. Each gives at most its own limit and what is left of the response's; as long as nothing
was found, the first batch is given whole, however large, so that every client makes progress. After
that, a partition whose first batch does not fit gives nothing.

Only the places are looked up here; the bytes are read when they are sent (``stored_records.py``).
Even that may need what the page cache lacks (``WouldBlock``), and is then done again where blocking
is allowed. Nothing in here waits or keeps anything from one reading to the next, so it may run in
any thread.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from typing import Final, cast

from barnabas.coordination.steps import ENTRIES_PER_STEP, checkpoint
from barnabas.protocol.codec.schema import Records
from barnabas.protocol.errors import ErrorCode, KafkaError, UnknownServerError
from barnabas.protocol.hot_messages.fetch import partition_data
from barnabas.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    PartitionData,
)
from barnabas.server.fetch.cached_partition import ERRONEOUS, CachedPartition, Empty
from barnabas.server.fetch.stored_records import StoredRecords
from barnabas.server.partitions.partition import NO_EPOCH, FetchResult, Partition
from barnabas.server.partitions.watch import Waiter, Watch
from barnabas.storage.fs.interface import WouldBlock
from barnabas.storage.log.fetch_isolation import FetchIsolation
from barnabas.storage.log.reads import MOST_ABORTED
from barnabas.storage.segment.fetch_data import FetchDataInfo
from barnabas.storage.segment.offset_metadata import UNKNOWN_OFFSET

logger = logging.getLogger(__name__)

NO_OFFSET = -1
NO_RECORDS = b""
FIRST_STORAGE_ERROR_VERSION = 6

_TXN_COMMITTED: Final = FetchIsolation.TXN_COMMITTED
_ISOLATION: Final = (FetchIsolation.HIGH_WATERMARK, FetchIsolation.TXN_COMMITTED)


class LogReadResult:
    """
    What a fetch found.
    """

    __slots__ = ("_aborted", "errors", "partitions", "segments", "size", "sources", "urgent")

    def __init__(self) -> None:
        self._aborted = 0
        self.partitions: list[PartitionData] = []
        self.segments: list[int] = []  # of each partition, the base offset of the one read from
        self.errors: list[ErrorCode] = []
        self.size = 0  # bytes of records in all
        self.sources: list[tuple[Partition, int]] = []  # where they are, and how many of them
        self.urgent = False  # something besides records that the client has to know now

    def add(self, data: PartitionData, found: FetchDataInfo | None) -> None:
        """
        This is the answer for the next partition.
        """
        self.partitions.append(data)
        place = None if found is None else found.fetch_offset_metadata
        self.segments.append(UNKNOWN_OFFSET if place is None else place.segment_base_offset)
        self.size += size_of(data)
        self._aborted += len(data.aborted_transactions or ())

    def remaining(self, max_bytes: int) -> int:
        """
        How many of *max_bytes* the next partitions may have: none once the answer has very many
        aborted transactions.
        """
        return max(0, max_bytes - self.size) if self._aborted < MOST_ABORTED else 0


class FetchPlan:
    """
    What a fetch request reads, and what it waits for.
    """

    __slots__ = (
        "is_of_session",
        "isolation",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "version",
        "wanted",
    )

    def __init__(
        self,
        wanted: list[CachedPartition],
        isolation: FetchIsolation,
        *,
        min_bytes: int,
        max_bytes: int,
        max_wait_ms: int,
        version: int,
        is_of_session: bool,
    ) -> None:
        """
        Args:
            version: of the API.
            is_of_session: the findings may help the next fetch of the session.
        """
        self.wanted = wanted
        self.isolation = isolation
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.max_wait_ms = max_wait_ms
        self.version = version
        self.is_of_session = is_of_session

    def limit(self, most_bytes: float | None) -> None:
        """
        Read no more than that, beside a first batch; and wait for no more.
        """
        if most_bytes is not None:
            self.max_bytes = int(min(self.max_bytes, most_bytes))
            self.min_bytes = min(self.min_bytes, self.max_bytes)

    def is_enough(self, reading: LogReadResult) -> bool:
        """
        Whether the fetch is answered with *reading*, and waits for no more.
        """
        return (
            reading.size >= self.min_bytes
            or reading.urgent
            or self.max_wait_ms <= 0
            or all(wanted.partition is None for wanted in self.wanted)
            or self._is_behind(reading)
        )

    def _is_behind(self, reading: LogReadResult) -> bool:
        """
        Whether a partition is read from a segment that gets no more records (case F of Kafka's
        ``DelayedFetch``): what is found there is all that this fetch will ever find.
        """
        for number, wanted in enumerate(self.wanted):
            partition = wanted.partition
            if partition is None or not size_of(reading.partitions[number]):
                continue
            active = partition.log.log_end_offset_metadata.segment_base_offset
            if reading.segments[number] < active:
                return True
        return False

    def is_outdated(self, reading: LogReadResult) -> bool:
        """
        Whether something was appended, or a partition closed, since the *reading* began.
        """
        for number, wanted in enumerate(self.wanted):
            partition, data = wanted.partition, reading.partitions[number]
            if partition is not None and (
                partition.error is not None
                or partition.log.high_watermark != data.high_watermark
                or partition.log.last_stable_offset != data.last_stable_offset
            ):
                return True
        return False

    def watches(self, reading: LogReadResult, waiter: Waiter) -> list[Watch]:
        """
        What *waiter* has to hear of, to know when there is enough.
        """
        read_committed = self.isolation is _TXN_COMMITTED
        return [
            Watch(
                waiter,
                wanted.partition,
                available=size_of(reading.partitions[number]),
                limit=wanted.request.partition_max_bytes,
                segment=reading.segments[number],
                read_committed=read_committed,
            )
            for number, wanted in enumerate(self.wanted)
            if wanted.partition is not None
        ]

    async def read(self, *, nowait: bool) -> LogReadResult:
        """
        Look where the bytes are.

        Raises:
            WouldBlock: with *nowait*, the page cache lacks what has to be looked at.
        """
        reading = LogReadResult()
        remaining = self.max_bytes  # If it is negative, the first partition fails alone.
        for number, wanted in enumerate(self.wanted, 1):
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
            if wanted.partition is None:
                # Such an error does not end the wait: Kafka answers for it apart from the read.
                reading.urgent |= wanted.error not in ERRONEOUS
                reading.errors.append(wanted.error)
                data = self._error(wanted.request, wanted.error)
                if wanted.error not in ERRONEOUS:
                    data.aborted_transactions = None
                reading.add(data, None)
                continue
            known = wanted.empty
            if known is not None and known.is_still_so(
                wanted.request, self.isolation, wanted.partition
            ):
                remaining = max(remaining, 0)
                reading.partitions.append(known.data)
                reading.segments.append(known.segment)
                continue
            try:
                result = self._find_one(wanted, wanted.partition, remaining, reading, nowait)
            except KafkaError as error:
                reading.urgent = True
                reading.errors.append(error.code)
                if error.code is ErrorCode.UNKNOWN_SERVER_ERROR:
                    wanted.partition.failed_fetches += 1
                data = self._error(wanted.request, error.code)
                data.aborted_transactions = None
                reading.add(data, None)
                remaining = max(0, remaining)
                continue
            data = _found(wanted.request, result, wanted.partition)
            reading.add(data, result.data)
            if (size := size_of(data)) > 0:
                reading.sources.append((wanted.partition, size))
            reading.urgent |= result.diverging is not None
            remaining = reading.remaining(self.max_bytes)
            if self.is_of_session:
                wanted.empty = self._empty(wanted, wanted.partition, result, reading)
        return reading

    def _find_one(
        self,
        wanted: CachedPartition,
        partition: Partition,
        remaining: int,
        reading: LogReadResult,
        nowait: bool,
    ) -> FetchResult:
        request = wanted.request
        try:
            return partition.read(
                request.fetch_offset,
                min(request.partition_max_bytes, remaining),
                self.isolation,
                min_one_message=not reading.size,
                current_leader_epoch=request.current_leader_epoch,
                last_fetched_epoch=request.last_fetched_epoch,
                nowait=nowait,
            )
        except (KafkaError, WouldBlock):
            raise
        except Exception as error:
            logger.exception("reading %s at %d failed", partition, request.fetch_offset)
            raise UnknownServerError from error

    def _empty(
        self,
        wanted: CachedPartition,
        partition: Partition,
        result: FetchResult,
        reading: LogReadResult,
    ) -> Empty | None:
        """
        That there was nothing to read, if only the offset was the reason.
        """
        request = wanted.request
        watermarks = result.watermarks
        if self.isolation is _TXN_COMMITTED:
            bound = watermarks.last_stable_offset
        else:
            bound = watermarks.high_watermark
        if request.fetch_offset < bound or request.last_fetched_epoch != NO_EPOCH:
            return None
        if result.data is None or result.data.records is not None:
            return None
        return Empty(
            request,
            self.isolation,
            partition.leader_epoch,
            watermarks,
            data=reading.partitions[-1],
            segment=reading.segments[-1],
        )

    def _error(self, request: FetchPartition, code: ErrorCode) -> PartitionData:
        if code is ErrorCode.KAFKA_STORAGE_ERROR and self.version < FIRST_STORAGE_ERROR_VERSION:
            # Older clients do not know it, and would not try again.
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return error_data(request, code)


def plan_of(
    request: FetchRequest,
    wanted: list[CachedPartition],
    most_bytes: int,
    *,
    version: int,
    is_of_session: bool,
) -> FetchPlan:
    """
    The plan of a request: its partitions, and how much it reads of them.

    Args:
        most_bytes: what the broker lets an answer have.

    Raises:
        UnknownServerError: the isolation level is unknown, and some partition is there.
    """
    level: int = request.isolation_level
    if not 0 <= level < len(_ISOLATION):
        # Kafka looks at it only for a partition that it is going to read.
        if any(each.error not in ERRONEOUS for each in wanted):
            raise UnknownServerError(f"isolation level {level} is unknown")
        level = 0
    max_bytes = min(request.max_bytes, most_bytes)
    return FetchPlan(
        wanted,
        _ISOLATION[level],
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        max_wait_ms=request.max_wait_ms,
        version=version,
        is_of_session=is_of_session,
    )


def error_data(request: FetchPartition, code: ErrorCode) -> PartitionData:
    """
    The answer for a partition that cannot be read.

    As nobody looked, no transactions were aborted; where a read fails, that is null.
    """
    return PartitionData(
        partition_index=request.partition,
        error_code=code,
        high_watermark=NO_OFFSET,
        aborted_transactions=[],
        records=NO_RECORDS,
    )


def size_of(data: PartitionData) -> int:
    """
    Bytes of records found in a partition.
    """
    return len(data.records or NO_RECORDS)


def _found(request: FetchPartition, result: FetchResult, partition: Partition) -> PartitionData:
    watermarks = result.watermarks
    data = partition_data(
        request.partition,
        0,
        high_watermark=watermarks.high_watermark,
        last_stable_offset=watermarks.last_stable_offset,
        log_start_offset=watermarks.log_start_offset,
    )
    if result.diverging is not None:
        epoch, end_offset = result.diverging
        data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    fetched = result.data
    if fetched is None or fetched.first_entry_incomplete:
        return data
    if fetched.aborted_transactions is not None:
        data.aborted_transactions = [
            AbortedTransaction(
                producer_id=transaction.producer_id, first_offset=transaction.first_offset
            )
            for transaction in fetched.aborted_transactions
        ]
    if fetched.records is not None and fetched.records.size:
        # The encoder asks for no more than the length, and passes on what it was given.
        data.records = cast(Records, StoredRecords(fetched.records, partition))
    return data
