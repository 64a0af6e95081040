"""
Fetch: read batches, or wait for them.

A fetch is answered at once when it has enough bytes, may not wait, or has to tell of an error;
otherwise it waits until enough bytes were appended, its time is up, or another request stands
behind it on its connection. The rules are those of Kafka's ``ReplicaManager.fetchMessages``.

Fetch sessions (KIP-227) are declined, as a broker may: every answer says session 0 and names every
partition that was asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from barnabas.protocol.errors import (
    ErrorCode,
    FetchSessionIdNotFound,
    KafkaError,
    UnknownServerError,
)
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.server.context import Context
from barnabas.server.delayed_fetch import DelayedFetch, Watch
from barnabas.server.fetching import FetchPlan, Reading, Wanted, error_data, size_of
from barnabas.server.handlers import handles
from barnabas.server.partition import NO_EPOCH, Partition
from barnabas.storage.fetch_isolation import FetchIsolation
from barnabas.storage.files import WouldBlock

FIRST_TOPIC_ID_VERSION: Final = 13
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1

_UNKNOWN: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_ISOLATION: Final = (FetchIsolation.HIGH_WATERMARK, FetchIsolation.TXN_COMMITTED)


def error_response(
    request: FetchRequest, version: int, code: ErrorCode, _message: str | None
) -> FetchResponse:
    """
    The same error for every partition where clients look for it there, and for the whole response.
    """
    topics = request.topics if version < FIRST_TOPIC_ID_VERSION else []
    return FetchResponse(
        error_code=code,
        session_id=0,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[error_data(partition, code) for partition in topic.partitions],
            )
            for topic in topics
        ],
    )


@handles(FetchRequest, error_response=error_response)
def fetch(request: FetchRequest, context: Context) -> FetchResponse | DelayedFetch:
    if request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
        # An incremental fetch, but no session was ever given out.
        return FetchResponse(error_code=FetchSessionIdNotFound.code, session_id=0, responses=[])
    return _Fetch(request, context).start()


class _Fetch:
    """
    One fetch request, until it is answered.

    It is answered by whoever finds that it can be: the handler, an append, the timer, or the
    executor that had to read what the page cache lacked.
    """

    __slots__ = ("_context", "_min_bytes", "_plan", "_request")

    def __init__(self, request: FetchRequest, context: Context) -> None:
        wanted = list(_wanted(request, context))
        level = request.isolation_level
        if not 0 <= level < len(_ISOLATION):
            # Only a partition that is there makes anybody look at it.
            if any(each.error not in _UNKNOWN for each in wanted):
                raise UnknownServerError(f"isolation level {level} is unknown")
            level = 0
        max_bytes = min(request.max_bytes, context.config.fetch_max_bytes)
        self._request = request
        self._context = context
        self._min_bytes = min(request.min_bytes, max_bytes)
        self._plan = FetchPlan(
            wanted=wanted,
            isolation=_ISOLATION[level],
            max_bytes=max_bytes,
            version=context.version,
        )

    def start(self) -> FetchResponse | DelayedFetch:
        """
        Answer, or begin to wait.
        """
        try:
            reading = self._plan.find(nowait=True)
        except WouldBlock:
            delayed = DelayedFetch(self._context.fetches, self._complete)
            self._find_elsewhere(delayed, self._proceed)
            return delayed
        if self._is_enough(reading):
            return self._response(reading)
        delayed = DelayedFetch(self._context.fetches, self._complete)
        self._wait(delayed, reading)
        return delayed

    def _is_enough(self, reading: Reading) -> bool:
        return (
            reading.size >= self._min_bytes
            or reading.urgent
            or self._request.max_wait_ms <= 0
            or all(wanted.partition is None for wanted in self._plan.wanted)
            or self._is_behind(reading)
        )

    def _is_behind(self, reading: Reading) -> bool:
        """
        Whether a partition is read from a segment that gets no more records (case F of Kafka's
        ``DelayedFetch``): what is found there is all that this fetch will ever find.
        """
        return any(
            size_of(data)
            and wanted.partition is not None
            and segment < wanted.partition.log.log_end_offset_metadata.segment_base_offset
            for wanted, data, segment in zip(
                self._plan.wanted, reading.partitions, reading.segments, strict=True
            )
        )

    def _wait(self, delayed: DelayedFetch, reading: Reading) -> None:
        read_committed = self._plan.isolation is FetchIsolation.TXN_COMMITTED
        watches = [
            Watch(
                delayed,
                wanted.partition,
                available=size_of(data),
                limit=wanted.request.partition_max_bytes,
                segment=segment,
                read_committed=read_committed,
            )
            for wanted, data, segment in zip(
                self._plan.wanted, reading.partitions, reading.segments, strict=True
            )
            if wanted.partition is not None
        ]
        timer = self._context.clock.call_later(self._request.max_wait_ms / 1000, delayed.wake)
        delayed.wait(watches, self._min_bytes - reading.size, timer)

    def _complete(self, delayed: DelayedFetch) -> None:
        """
        The wait is over: answer with whatever is there.
        """
        try:
            self._answer(delayed, self._plan.find(nowait=True))
        except WouldBlock:
            self._find_elsewhere(delayed, self._answer)

    def _answer(self, delayed: DelayedFetch, reading: Reading) -> None:
        delayed.answer(self._response(reading))

    def _find_elsewhere(
        self, delayed: DelayedFetch, then: Callable[[DelayedFetch, Reading], None]
    ) -> None:
        """
        Look in the executor, where it does no harm to wait for the disk.
        """

        def found(future: asyncio.Future[Reading]) -> None:
            if future.cancelled() or delayed.done:
                return
            error = future.exception()
            if error is None:
                then(delayed, future.result())
            else:
                delayed.fail(error if isinstance(error, Exception) else UnknownServerError())

        future = asyncio.get_running_loop().run_in_executor(
            self._context.io, lambda: self._plan.find(nowait=False)
        )
        future.add_done_callback(found)

    def _proceed(self, delayed: DelayedFetch, reading: Reading) -> None:
        if self._is_enough(reading) or delayed.is_hurried:
            self._answer(delayed, reading)
        elif self._is_outdated(reading):
            self._complete(delayed)
        else:
            self._wait(delayed, reading)

    def _is_outdated(self, reading: Reading) -> bool:
        """
        Whether something was appended while the executor looked, which no watch has seen.
        """
        return any(
            wanted.partition is not None
            and (
                wanted.partition.error is not None
                or wanted.partition.log.high_watermark != data.high_watermark
                or wanted.partition.log.last_stable_offset != data.last_stable_offset
            )
            for wanted, data in zip(self._plan.wanted, reading.partitions, strict=True)
        )

    def _response(self, reading: Reading) -> FetchResponse:
        for code in reading.errors:
            self._context.metrics.count_error("Fetch", code)
        partitions = iter(reading.partitions)
        return FetchResponse(
            error_code=0,
            session_id=0,
            responses=[
                FetchableTopicResponse(
                    topic=topic.topic,
                    topic_id=topic.topic_id,
                    partitions=list(islice(partitions, len(topic.partitions))),
                )
                for topic in self._request.topics
            ],
        )


def _wanted(request: FetchRequest, context: Context) -> Iterator[Wanted]:
    replica_id = request.replica_state.replica_id if context.version >= 15 else request.replica_id
    for topic in request.topics:
        for partition in topic.partitions:
            try:
                found = _find(topic, partition, context)
            except KafkaError as error:
                yield Wanted(partition, None, error.code)
                continue
            if replica_id >= 0:
                yield Wanted(partition, None, _no_follower(partition, found))
            else:
                yield Wanted(partition, found, ErrorCode.NONE)


def _find(topic: FetchTopic, partition: FetchPartition, context: Context) -> Partition:
    if context.version >= FIRST_TOPIC_ID_VERSION:
        return context.partitions.expect_by_id(topic.topic_id, partition.partition)
    return context.partitions.expect(topic.topic, partition.partition)


def _no_follower(partition: FetchPartition, found: Partition) -> ErrorCode:
    """
    No other broker has a replica, so one that fetches as a follower is not one that is assigned
    (Kafka ``Partition.followerReplicaOrThrow``).
    """
    if partition.current_leader_epoch == NO_EPOCH:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if partition.current_leader_epoch < found.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH
