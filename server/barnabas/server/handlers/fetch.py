"""
Fetch: read batches, or wait for them.

A fetch is answered at once when it has enough bytes, may not wait, or has to tell of an error;
otherwise it waits until enough bytes were appended, its time is up, or another request stands
behind it on its connection. The rules are those of Kafka's ``ReplicaManager.fetchMessages``.

Which partitions a request means, and which of them an answer tells of, is the business of its
context (``fetch_contexts.py``): it may be one of a session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from barnabas.protocol.errors import ErrorCode, UnknownServerError
from barnabas.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
)
from barnabas.server.fetch.cached_partition import (
    NOBODY,
    UNKNOWN,
    CachedPartition,
)
from barnabas.server.fetch.contexts import SESSION_ERRORS, FetchContext, context_of, refusal
from barnabas.server.fetch.delayed import DelayedFetch, Watch
from barnabas.server.fetch.plain_fetches import fetch_plain
from barnabas.server.fetch.reader import FetchPlan, LogReadResult, size_of
from barnabas.server.partitions.partition import NO_EPOCH
from barnabas.server.requests.context import Context
from barnabas.server.requests.registry import handles
from barnabas.server.scheduling.turns import Steps, finished
from barnabas.storage.fs.interface import WouldBlock
from barnabas.storage.log.fetch_isolation import FetchIsolation

FIRST_REPLICA_STATE_VERSION: Final = 15
FIRST_LEADER_VERSION: Final = 16

_ISOLATION: Final = (FetchIsolation.HIGH_WATERMARK, FetchIsolation.TXN_COMMITTED)
_NOT_LEADER: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


@handles(FetchRequest, shortcut=fetch_plain)
def fetch(request: FetchRequest, context: Context) -> Steps[FetchResponse | DelayedFetch]:
    replica_id = _replica_id(request, context.version)
    try:
        asked = yield from context_of(
            request,
            context.version,
            context.fetch_sessions,
            context.clock,
            is_follower=replica_id > NOBODY,
        )
    except SESSION_ERRORS as error:
        context.metrics.count_error("Fetch", error.code)
        return refusal(error.code)
    wanted = yield from _locate(asked, context, replica_id)
    return (yield from _Fetch(request, asked, wanted, context).start())


class _Fetch:
    """
    One fetch request, until it is answered.

    It is answered by whoever finds that it can be: the handler, an append, the timer, or the
    executor that had to read what the page cache lacked.
    """

    __slots__ = ("_asked", "_context", "_min_bytes", "_plan", "_request")

    def __init__(
        self,
        request: FetchRequest,
        asked: FetchContext,
        wanted: Sequence[CachedPartition],
        context: Context,
    ) -> None:
        level = request.isolation_level
        if not 0 <= level < len(_ISOLATION):
            # Only a partition that is there makes anybody look at it.
            if any(each.error not in UNKNOWN for each in wanted):
                raise UnknownServerError(f"isolation level {level} is unknown")
            level = 0
        max_bytes = min(request.max_bytes, context.config.fetch_max_bytes)
        self._request = request
        self._asked = asked
        self._context = context
        self._min_bytes = min(request.min_bytes, max_bytes)
        self._plan = FetchPlan(
            wanted=wanted,
            isolation=_ISOLATION[level],
            max_bytes=max_bytes,
            version=context.version,
            is_of_session=asked.is_of_session,
        )

    def start(self) -> Steps[FetchResponse | DelayedFetch]:
        """
        Answer, or begin to wait.
        """
        try:
            reading = yield from self._plan.find(nowait=True)
        except WouldBlock:
            delayed = DelayedFetch(self._context.fetches, self._complete)
            self._find_elsewhere(delayed, self._proceed)
            return delayed
        if self._is_enough(reading):
            return (yield from self._response(reading))
        delayed = DelayedFetch(self._context.fetches, self._complete)
        self._proceed(delayed, reading)
        return delayed

    def _is_enough(self, reading: LogReadResult) -> bool:
        return (
            reading.size >= self._min_bytes
            or reading.urgent
            or self._request.max_wait_ms <= 0
            or all(wanted.partition is None for wanted in self._plan.wanted)
            or self._is_behind(reading)
        )

    def _is_behind(self, reading: LogReadResult) -> bool:
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

    def _wait(self, delayed: DelayedFetch, reading: LogReadResult) -> None:
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

        def find() -> Steps[FetchResponse | None]:
            try:
                reading = yield from self._plan.find(nowait=True)
            except WouldBlock:
                self._find_elsewhere(delayed, self._answer)
                return None
            return (yield from self._response(reading))

        self._settle(delayed, find())

    def _answer(self, delayed: DelayedFetch, reading: LogReadResult) -> None:
        self._settle(delayed, self._response(reading))

    def _settle(self, delayed: DelayedFetch, steps: Steps[FetchResponse | None]) -> None:
        """
        Answer with what *steps* return, if that is an answer.
        """

        def settle() -> Steps[None]:
            try:
                response = yield from steps
            except Exception as error:  # the client gets an answer, whatever it is
                delayed.fail(error)
            else:
                if response is not None:
                    delayed.answer(response)

        self._context.turns.start(settle())

    def _find_elsewhere(
        self, delayed: DelayedFetch, then: Callable[[DelayedFetch, LogReadResult], None]
    ) -> None:
        """
        Look in the executor, where it does no harm to wait for the disk.
        """

        def found(future: asyncio.Future[LogReadResult]) -> None:
            if future.cancelled() or delayed.done:
                return
            error = future.exception()
            if error is None:
                then(delayed, future.result())
            else:
                delayed.fail(error if isinstance(error, Exception) else UnknownServerError())

        future = asyncio.get_running_loop().run_in_executor(
            self._context.reads, lambda: finished(self._plan.find(nowait=False))
        )
        future.add_done_callback(found)

    def _proceed(self, delayed: DelayedFetch, reading: LogReadResult) -> None:
        if self._is_enough(reading) or delayed.is_hurried:
            self._answer(delayed, reading)
        elif self._is_outdated(reading):
            self._complete(delayed)
        else:
            self._wait(delayed, reading)

    def _is_outdated(self, reading: LogReadResult) -> bool:
        """
        Whether something was appended since the first partition was looked at: no watch has seen
        it, and the executor or others may have come between.
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

    def _response(self, reading: LogReadResult) -> Steps[FetchResponse]:
        for code in reading.errors:
            self._context.metrics.count_error("Fetch", code)
        response = yield from self._asked.response(self._plan.wanted, reading.partitions)
        if self._plan.version >= FIRST_LEADER_VERSION and any(
            code in _NOT_LEADER for code in reading.errors
        ):
            self._name_leaders(reading)
            if _replica_id(self._request, self._plan.version) == NOBODY:
                response.node_endpoints = [self._endpoint()]
        return response

    def _name_leaders(self, reading: LogReadResult) -> None:
        """
        Whoever asked the wrong broker, or with an epoch of the past, is told who leads (KIP-951).
        """
        for wanted, data in zip(self._plan.wanted, reading.partitions, strict=True):
            if data.error_code in _NOT_LEADER:
                found = self._context.partitions.get(wanted.topic or "", wanted.request.partition)
                data.current_leader = LeaderIdAndEpoch(
                    leader_id=self._context.node_id,
                    leader_epoch=NO_EPOCH if found is None else found.leader_epoch,
                )

    def _endpoint(self) -> NodeEndpoint:
        listener = self._context.connection.listener
        return NodeEndpoint(
            node_id=self._context.node_id,
            host=listener.advertised_host,
            port=listener.advertised_port,
            rack=self._context.config.broker_rack,
        )


def _replica_id(request: FetchRequest, version: int) -> int:
    if version < FIRST_REPLICA_STATE_VERSION:
        return request.replica_id
    return request.replica_state.replica_id


def _locate(asked: FetchContext, context: Context, replica_id: int) -> Steps[list[CachedPartition]]:
    """
    Find the partitions; those that are not there come last, as Kafka answers for them.
    """
    wanted = list(asked.partitions.values())
    has_unknown = False
    for each in wanted:
        yield
        each.locate(context.partitions, replica_id)
        has_unknown |= each.error in UNKNOWN
    if has_unknown:
        wanted.sort(key=lambda each: each.error in UNKNOWN)
    return wanted
