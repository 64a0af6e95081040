"""
In which session a ShareFetch is, which share-partitions it is about, and which of them its answer
has (Kafka ``ShareFetchContext``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from barnabas.coordination.share.acquiring import BATCH_OPTIMIZED, RECORD_LIMIT
from barnabas.coordination.share.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    CachedSharePartition,
    Connected,
    ShareSession,
    ShareSessionKey,
    ShareSessions,
    TopicIdPartition,
    next_epoch,
)
from barnabas.coordination.steps import ENTRIES_PER_STEP, checkpoint
from barnabas.protocol.errors import (
    ErrorCode,
    InvalidRequest,
    InvalidShareSessionEpoch,
    KafkaError,
    UnknownServerError,
)
from barnabas.protocol.messages.share_fetch import ShareFetchRequest
from barnabas.server.share.fetching import ShareFetchPlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.share.manager import SharePartitionManager
    from barnabas.server.share.served import ServedSharePartition
    from barnabas.storage.log.fetch_isolation import FetchIsolation

MayRead: TypeAlias = "Callable[[str], bool]"
"""
Returns whether the client may read a topic.
"""


class ShareFetchContext:
    """
    One ShareFetch request in its session.
    """

    __slots__ = ("_epoch", "_request", "errors", "session")

    def __init__(self, request: ShareFetchRequest, session: ShareSession) -> None:
        self._request = request
        self._epoch = request.share_session_epoch
        self.session = session
        self.errors: dict[TopicIdPartition, ErrorCode] = {}
        """The partitions that ``locate`` has not found, and why."""

    @property
    def has_acknowledgements(self) -> bool:
        """
        Whether the request acknowledges something: the first one of a session does not.
        """
        return self._epoch != INITIAL_EPOCH and _acknowledges(self._request)

    @property
    def acquires(self) -> bool:
        """
        Whether the request may acquire records.
        """
        return self._epoch != FINAL_EPOCH and not self._request.is_renew_ack

    @property
    def is_final(self) -> bool:
        """
        Whether the session ends with the answer.
        """
        return self._epoch == FINAL_EPOCH

    async def locate(
        self, manager: SharePartitionManager, partitions: Partitions, may_read: MayRead
    ) -> list[ServedSharePartition]:
        """
        The share-partitions of the session, in the order in which they are read; the others go to
        ``errors``.
        """
        request, errors = self._request, self.errors
        assert request.group_id is not None
        found: list[ServedSharePartition] = []
        for number, (where, cached) in enumerate(tuple(self.session.partitions.items()), 1):
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
            name, index = cached.name(where[0], partitions.name_of), where[1]
            if name is None:
                errors[where] = ErrorCode.UNKNOWN_TOPIC_ID
            elif not may_read(name):
                errors[where] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif not partitions.knows(name, index):
                errors[where] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                try:
                    partition = partitions.expect_by_id(*where)
                except KafkaError as error:
                    errors[where] = error.code
                else:
                    found.append(manager.get_or_load(request.group_id, partition))
        # Each of them is the first one now and then.
        at = max(0, self._epoch) % len(found) if found else 0
        return found[at:] + found[:at]

    def plan(
        self, partitions: list[ServedSharePartition], isolation: FetchIsolation, max_bytes: int
    ) -> ShareFetchPlan:
        """
        What is to be acquired of *partitions*.

        Args:
            max_bytes: what the broker and the client's quota let the answer have at most.

        Raises:
            UnknownServerError: the mode of acquisition is unknown, and something is to be acquired.
        """
        request = self._request
        assert request.member_id is not None
        if partitions and request.share_acquire_mode not in (BATCH_OPTIMIZED, RECORD_LIMIT):
            raise UnknownServerError(f"acquire mode {request.share_acquire_mode} is unknown")
        return ShareFetchPlan(
            partitions,
            request.member_id,
            isolation=isolation,
            max_wait_ms=request.max_wait_ms,
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            max_records=request.max_records,
            batch_size=request.batch_size,
            is_record_limit=request.share_acquire_mode == RECORD_LIMIT,
        )

    def check_epoch(self) -> None:
        """
        See whether the session is still where the request has left it.

        Raises:
            InvalidShareSessionEpoch: another request came meanwhile.
        """
        if self._epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            return
        if self.session.epoch != next_epoch(self._epoch):
            raise InvalidShareSessionEpoch

    def must_respond(self, where: TopicIdPartition, *, has_records: bool, has_error: bool) -> bool:
        """
        Whether the answer has the partition: an incremental one leaves out those without news. A
        partition that gives records is read last from now on.
        """
        if self._epoch <= INITIAL_EPOCH:
            return True
        session = self.session
        cached = session.partitions.get(where)
        if cached is not None and not cached.must_respond(
            has_records=has_records, has_error=has_error
        ):
            return False
        if has_records:
            session.put_last(where)
        return True


def check_renewal(request: ShareFetchRequest) -> None:
    """
    A request that renews acquisitions waits for nothing and fetches nothing (KIP-1222).

    Raises:
        InvalidRequest: this one does.
    """
    wrong = [
        name
        for name in ("max_bytes", "min_bytes", "max_records", "max_wait_ms")
        if getattr(request, name)
    ]
    if wrong:
        raise InvalidRequest(f"{', '.join(wrong)} must be 0 in a request that renews")


async def context_of(
    request: ShareFetchRequest,
    key: ShareSessionKey,
    sessions: ShareSessions,
    partitions: Partitions,
    client: Connected,
) -> ShareFetchContext:
    """
    The context of a request, whose session is begun or updated by it.

    Raises:
        InvalidRequest, ShareSessionLimitReached: no session can be begun so.
        ShareSessionNotFound, InvalidShareSessionEpoch: it is not what the client thinks.
    """
    epoch = request.share_session_epoch
    if epoch == FINAL_EPOCH:
        return ShareFetchContext(request, sessions.use(key, epoch))
    asked: dict[TopicIdPartition, CachedSharePartition] = {}
    is_first = epoch == INITIAL_EPOCH
    for topic in request.topics:
        await checkpoint()
        name = partitions.name_of(topic.topic_id)
        for number, partition in enumerate(topic.partitions, 1):
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
            where = (topic.topic_id, partition.partition_index)
            asked[where] = CachedSharePartition(name, is_news=not is_first)
    if is_first:
        session = sessions.begin(key, asked, client, has_acknowledgements=_acknowledges(request))
        return ShareFetchContext(request, session)
    session = sessions.use(key, epoch)
    forgotten = [
        (topic.topic_id, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    sessions.update(session, asked, forgotten)
    return ShareFetchContext(request, session)


def _acknowledges(request: ShareFetchRequest) -> bool:
    return any(
        partition.acknowledgement_batches
        for topic in request.topics
        for partition in topic.partitions
    )
