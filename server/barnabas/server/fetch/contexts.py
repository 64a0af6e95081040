"""
In which context a fetch is: on its own, as the first of a session, or as a further one.

What a request asks for is settled when it arrives; what of the reading is told, and what the
session remembers of that, when it is answered (Kafka ``FetchContext``).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from barnabas.coordination.cluster.topic_names import MAX_NAME_LENGTH
from barnabas.coordination.steps import ENTRIES_PER_STEP, checkpoint
from barnabas.protocol.errors import (
    ErrorCode,
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
    KafkaError,
)
from barnabas.protocol.hot_messages.fetch import fetch_response
from barnabas.protocol.messages.fetch import (
    FIRST_TOPIC_ID_VERSION,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.server.fetch.cached_partition import (
    CachedPartition,
    CachedPartitionKey,
    asked_for,
    by_topic,
    forgotten_by,
)
from barnabas.server.fetch.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    FetchSessions,
)

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock

FULL: Final = (INITIAL_EPOCH, FINAL_EPOCH)


class FetchContext(Protocol):
    """
    What becomes of a request, and of its reading.
    """

    is_of_session: ClassVar[bool]

    @property
    def partitions(self) -> Mapping[CachedPartitionKey, CachedPartition]:
        """
        All that is to be read, in order.
        """

    async def response(
        self, wanted: Sequence[CachedPartition], data: Sequence[PartitionData]
    ) -> FetchResponse:
        """
        The answer with those of the *data* that have to be told.
        """

    async def selected(
        self, wanted: Sequence[CachedPartition], data: Sequence[PartitionData]
    ) -> list[tuple[CachedPartition, PartitionData]]:
        """
        What the answer would tell. Nobody remembers it.
        """

    def nothing(self) -> FetchResponse:
        """
        An answer that tells nothing, after which the client may ask the same again.
        """


class Sessionless:
    """
    A fetch that names all its partitions and is told of all of them.
    """

    __slots__ = ("partitions",)
    is_of_session: ClassVar[bool] = False

    def __init__(self, partitions: Mapping[CachedPartitionKey, CachedPartition]) -> None:
        self.partitions = partitions

    async def response(
        self, wanted: Sequence[CachedPartition], data: Sequence[PartitionData]
    ) -> FetchResponse:
        return fetch_response(await by_topic(wanted, data))

    async def selected(
        self, wanted: Sequence[CachedPartition], data: Sequence[PartitionData]
    ) -> list[tuple[CachedPartition, PartitionData]]:
        return _all(wanted, data)

    def nothing(self) -> FetchResponse:
        return fetch_response([])


class First:
    """
    A fetch that a session shall begin with, which holds what the answer has told, in its order.
    """

    __slots__ = ("_clock", "_is_privileged", "_sessions", "_uses_topic_ids", "partitions")
    is_of_session: ClassVar[bool] = True

    def __init__(
        self,
        partitions: Mapping[CachedPartitionKey, CachedPartition],
        sessions: FetchSessions,
        clock: ServerClock,
        *,
        is_privileged: bool,
        uses_topic_ids: bool,
    ) -> None:
        self.partitions = partitions
        self._sessions = sessions
        self._clock = clock
        self._is_privileged = is_privileged
        self._uses_topic_ids = uses_topic_ids

    async def response(
        self, wanted: Sequence[CachedPartition], data: Sequence[PartitionData]
    ) -> FetchResponse:
        for each, told in zip(wanted, data, strict=True):
            each.told(told.high_watermark, told.log_start_offset)
        session_id = self._sessions.create(
            {each.key: each for each in wanted},
            is_privileged=self._is_privileged,
            uses_topic_ids=self._uses_topic_ids,
            now_ms=self._clock.now_ms(),
        )
        topics = await by_topic(wanted, data)
        return fetch_response(topics, session_id=session_id)

    async def selected(
        self, wanted: Sequence[CachedPartition], data: Sequence[PartitionData]
    ) -> list[tuple[CachedPartition, PartitionData]]:
        return _all(wanted, data)

    def nothing(self) -> FetchResponse:
        return fetch_response([])


class Incremental:
    """
    A further fetch of a session: what it does not name is as it was, and what did not change is
    not told.
    """

    __slots__ = ("_epoch", "_session", "partitions")
    is_of_session: ClassVar[bool] = True

    def __init__(self, session: FetchSession) -> None:
        self._session = session
        self._epoch = session.epoch
        self.partitions = session.partitions

    async def response(
        self, wanted: Sequence[CachedPartition], data: Sequence[PartitionData]
    ) -> FetchResponse:
        session = self._session
        if self._is_outdated:
            return self._refusal()
        news = [
            (each, told) for each, told in zip(wanted, data, strict=True) if each.has_news(told)
        ]
        for each, told in news:
            if told.records:
                session.put_last(each)
        topics = await by_topic([each for each, _ in news], [told for _, told in news])
        return fetch_response(topics, session_id=session.id)

    @property
    def _is_outdated(self) -> bool:
        """
        Whether another request of this session came meanwhile, which is going to tell it all.
        """
        return self._session.epoch != self._epoch

    def _refusal(self) -> FetchResponse:
        return fetch_response(
            [], session_id=self._session.id, error_code=InvalidFetchSessionEpoch.code
        )

    async def selected(
        self, wanted: Sequence[CachedPartition], data: Sequence[PartitionData]
    ) -> list[tuple[CachedPartition, PartitionData]]:
        if self._is_outdated:
            return []
        news = []
        for number, each in enumerate(wanted, 1):
            if number % ENTRIES_PER_STEP == 0:
                await checkpoint()
            if each.is_news(data[number - 1]):
                news.append((each, data[number - 1]))
        return news

    def nothing(self) -> FetchResponse:
        if self._is_outdated:
            return self._refusal()
        return fetch_response([], session_id=self._session.id)


def _all(
    wanted: Sequence[CachedPartition], data: Sequence[PartitionData]
) -> list[tuple[CachedPartition, PartitionData]]:
    return list(zip(wanted, data, strict=True))


async def context_of(
    request: FetchRequest,
    version: int,
    sessions: FetchSessions,
    clock: ServerClock,
    *,
    is_follower: bool,
) -> FetchContext:
    """
    The context of a request that has just arrived. A session that it names has changed as told.

    Raises:
        FetchSessionIdNotFound, InvalidFetchSessionEpoch, FetchSessionTopicIdError: the session is
            not there, expects another request, or has topics by name and the request by id, or
            the reverse.
        UnknownServerError: there never are sessions of that number.
    """
    session_id, epoch = request.session_id, request.session_epoch
    if epoch not in FULL:
        return await _further(request, version, sessions, clock)
    asked = await asked_for(request, version)
    if session_id != NO_SESSION:
        sessions.remove(session_id)
    if epoch == FINAL_EPOCH or not _names_topics(request, version):
        return Sessionless(asked)
    return First(
        asked,
        sessions,
        clock,
        is_privileged=is_follower,
        uses_topic_ids=version >= FIRST_TOPIC_ID_VERSION,
    )


async def _further(
    request: FetchRequest, version: int, sessions: FetchSessions, clock: ServerClock
) -> FetchContext:
    # First, for others may come between, also others of this session.
    asked = await asked_for(request, version)
    session = sessions.get(request.session_id)
    if session is None:
        raise FetchSessionIdNotFound
    if session.epoch != request.session_epoch:
        raise InvalidFetchSessionEpoch
    if session.uses_topic_ids != (version >= FIRST_TOPIC_ID_VERSION):
        raise FetchSessionTopicIdError
    if not _names_topics(request, version):
        sessions.remove(session.id)
        raise FetchSessionIdNotFound
    sessions.update(session, asked, forgotten_by(request, version))
    if not session.partitions:
        sessions.remove(session.id)
        return Sessionless(asked)
    session.use(clock.now_ms())
    return Incremental(session)


def _names_topics(request: FetchRequest, version: int) -> bool:
    """
    Return True if topics may have all names in a request. A session keeps no other names, because
    its limit counts partitions, not bytes.
    """
    return version >= FIRST_TOPIC_ID_VERSION or all(
        len(topic.topic) <= MAX_NAME_LENGTH and topic.topic.isascii() for topic in request.topics
    )


SESSION_ERRORS: Final[tuple[type[KafkaError], ...]] = (
    FetchSessionIdNotFound,
    InvalidFetchSessionEpoch,
    FetchSessionTopicIdError,
)


def refusal(code: ErrorCode) -> FetchResponse:
    """
    The answer to a request whose session is not what it thinks: the client begins a new one.
    """
    return FetchResponse(error_code=code, session_id=NO_SESSION, responses=[])
