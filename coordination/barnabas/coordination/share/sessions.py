"""
Share sessions: what members fetch, remembered between their requests (KIP-932).

A session belongs to the connection over which it was begun (Kafka ``ShareSessionCache``). It ends
with that, when its member says so, and when the member begins another one. The rules for epochs are
those of ``SharePartitionManager``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol, TypeAlias
from uuid import UUID

from barnabas.coordination.text_memory import is_short, text_bytes
from barnabas.protocol.errors import (
    InvalidRequest,
    InvalidShareSessionEpoch,
    ShareSessionLimitReached,
    ShareSessionNotFound,
)
from barnabas.protocol.structs import NamedTuple

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
LAST_EPOCH: Final = 2**31 - 1

MOST_PARTITIONS: Final = 200_000
"""
The partitions of all sessions together, whether they exist or not.
"""

MOST_NAME_BYTES: Final = 16 * 1024 * 1024
"""
The names of groups and members of all sessions together.
"""

TopicIdPartition: TypeAlias = tuple[UUID, int]


def next_epoch(epoch: int) -> int:
    """
    The epoch that the request after one of that epoch has.
    """
    return INITIAL_EPOCH + 1 if epoch == LAST_EPOCH else epoch + 1


class Connected(Protocol):
    """
    A client at the other end of a connection.
    """

    def when_closed(self, listener: Callable[[], None], /) -> None:
        """
        Call *listener* when the connection is closed.
        """


class ShareSessionKey(NamedTuple):
    """
    A member of a group.
    """

    group_id: str
    member_id: str


def _name_bytes(key: ShareSessionKey) -> int:
    return text_bytes(key.group_id) + text_bytes(key.member_id)


class CachedSharePartition:
    """
    A partition of a session (Kafka's class of this name).
    """

    __slots__ = ("is_news", "topic")

    def __init__(self, topic: str | None, *, is_news: bool) -> None:
        """
        Args:
            topic: its name, None if no topic has that id so far.
            is_news: the next answer has the partition, whatever there is to say of it.
        """
        self.topic = topic
        self.is_news = is_news

    def name(self, topic_id: UUID, name_of: Callable[[UUID], str | None]) -> str | None:
        """
        The name of its topic, None if there is none. Clients hear of a topic that is being created
        before its partitions can be found, and add a partition to their session once only: what was
        unknown then is looked for again.
        """
        if self.topic is None:
            self.topic = name_of(topic_id)
        return self.topic

    def must_respond(self, *, has_records: bool, has_error: bool) -> bool:
        """
        Whether an answer has the partition. After an error the next one has it, too.
        """
        responds = has_records or has_error or self.is_news
        self.is_news = has_error
        return responds


class ShareSession:
    """
    The partitions that one member fetches over one connection.

    Invariants:

    1. ``partitions`` has them in the order in which they are read: one that gave records goes to
       the end.
    2. ``epoch`` is that of the next request.
    """

    __slots__ = ("client", "epoch", "key", "partitions")

    def __init__(
        self,
        key: ShareSessionKey,
        partitions: dict[TopicIdPartition, CachedSharePartition],
        client: Connected,
    ) -> None:
        self.key = key
        self.partitions = partitions
        self.client = client
        self.epoch = next_epoch(INITIAL_EPOCH)

    def put_last(self, where: TopicIdPartition) -> None:
        """
        Read that partition after all others from now on.
        """
        cached = self.partitions.pop(where, None)
        if cached is not None:
            self.partitions[where] = cached


class ShareSessions:
    """
    All share sessions.

    Invariants:

    1. There is one session of a member.
    2. There are no more sessions, and no more partitions in them, than there may be.
    """

    def __init__(
        self,
        most: int,
        *,
        ended: Callable[[ShareSession], None],
        emptied: Callable[[str], None],
    ) -> None:
        """
        Args:
            ended: is told of a session that ended with its connection.
            emptied: is told of a group without sessions, when a connection is closed or there are
                many of them.
        """
        self._sessions: dict[ShareSessionKey, ShareSession] = {}
        self._members: dict[str, int] = {}  # of each group, the number of sessions
        self._followed: dict[Connected, set[ShareSessionKey]] = {}
        self._partitions = 0
        self._name_bytes = 0  # of the keys of all sessions
        self._most = most
        self._is_stopping = False
        self._ended = ended
        self._emptied = emptied

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[ShareSession]:
        return iter(tuple(self._sessions.values()))

    @property
    def partitions(self) -> int:
        """
        The number of partitions in all sessions.
        """
        return self._partitions

    def get(self, key: ShareSessionKey) -> ShareSession | None:
        """
        The session of a member.
        """
        return self._sessions.get(key)

    def begin(
        self,
        key: ShareSessionKey,
        partitions: dict[TopicIdPartition, CachedSharePartition],
        client: Connected,
        *,
        has_acknowledgements: bool,
    ) -> ShareSession:
        """
        Begin a session of a member, whose old one ends.

        Raises:
            InvalidRequest: nothing was acquired yet that could be acknowledged.
            ShareSessionLimitReached: there are as many sessions, or partitions, as there may be, or
                the names of groups and members have taken the memory for them.
        """
        if has_acknowledgements:
            raise InvalidRequest("The first request of a session acknowledges nothing")
        self.remove(key)
        if (
            len(self._sessions) >= self._most
            or self._partitions + len(partitions) > MOST_PARTITIONS
            or self._name_bytes + _name_bytes(key) > MOST_NAME_BYTES
        ):
            raise ShareSessionLimitReached
        self._name_bytes += _name_bytes(key)
        session = self._sessions[key] = ShareSession(key, partitions, client)
        self._members[key.group_id] = self._members.get(key.group_id, 0) + 1
        self._partitions += len(partitions)
        followed = self._followed.get(client)
        if followed is not None:
            followed.add(key)
        else:
            self._followed[client] = {key}
            client.when_closed(lambda: self._closed(client))
        return session

    def use(self, key: ShareSessionKey, epoch: int) -> ShareSession:
        """
        The session of a member, which has sent a request of that epoch. The final one ends no
        session yet.

        Raises:
            ShareSessionNotFound: there is none.
            InvalidShareSessionEpoch: another epoch was expected.
        """
        session = self._sessions.get(key)
        if session is None:
            raise ShareSessionNotFound
        if epoch != FINAL_EPOCH:
            if epoch != session.epoch:
                raise InvalidShareSessionEpoch
            session.epoch = next_epoch(epoch)
        return session

    def update(
        self,
        session: ShareSession,
        added: dict[TopicIdPartition, CachedSharePartition],
        forgotten: Iterable[TopicIdPartition],
    ) -> None:
        """
        Take over what a request has changed.

        Raises:
            ShareSessionNotFound: there is no room for its partitions, and the session has ended.
        """
        partitions = session.partitions
        before = len(partitions)
        for where, cached in added.items():
            partitions.setdefault(where, cached)
        for where in forgotten:
            partitions.pop(where, None)
        self._partitions += len(partitions) - before
        if self._partitions > MOST_PARTITIONS:
            self.remove(session.key)
            self._ended(session)
            raise ShareSessionNotFound

    def remove(self, key: ShareSessionKey) -> ShareSession | None:
        """
        End the session of a member, if there is one.
        """
        session = self._sessions.pop(key, None)
        if session is not None:
            self._partitions -= len(session.partitions)
            self._name_bytes -= _name_bytes(key)
            self._members[key.group_id] -= 1
            if len(self._members) > self._most or not is_short(key.group_id):
                self._forget_empty_groups()
            followed = self._followed.get(session.client)
            if followed is not None:
                followed.discard(key)
        return session

    def stop(self) -> None:
        """
        End no session with its connection any more: the broker closes them all. What members have
        acquired is released by the next start, and that delivery does not count, as in Kafka.
        """
        self._is_stopping = True

    def _closed(self, client: Connected) -> None:
        """
        A connection is closed.
        """
        if self._is_stopping:
            return
        keys = self._followed.pop(client, set())
        for key in keys:
            session = self.remove(key)
            if session is not None:
                self._ended(session)
        self._forget_empty_groups()

    def _forget_empty_groups(self) -> None:
        for group_id, count in tuple(self._members.items()):
            if count == 0:
                del self._members[group_id]
                self._emptied(group_id)
