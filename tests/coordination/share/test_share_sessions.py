"""
Share sessions: whose they are, when they end, and how many there may be.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from barnabas.coordination.share import sessions as module
from barnabas.coordination.share.sessions import (
    FINAL_EPOCH,
    LAST_EPOCH,
    CachedSharePartition,
    ShareSession,
    ShareSessionKey,
    ShareSessions,
    TopicIdPartition,
)
from barnabas.protocol.errors import (
    InvalidRequest,
    InvalidShareSessionEpoch,
    ShareSessionLimitReached,
    ShareSessionNotFound,
)
from tests.support.coordination import CoordinatorConfig
from tests.support.limits import stated

TOPIC = UUID(int=1)
ONE, OTHER = ShareSessionKey("g", "one"), ShareSessionKey("g", "other")


class Connection:
    """
    A connection that a test closes.
    """

    def __init__(self) -> None:
        self.listeners: list[Callable[[], None]] = []

    def when_closed(self, listener: Callable[[], None]) -> None:
        self.listeners.append(listener)

    def close(self) -> None:
        for listener in self.listeners:
            listener()


class World:
    """
    Sessions, and what was told of them.
    """

    def __init__(self, most: int = 10) -> None:
        self.ended: list[ShareSessionKey] = []
        self.emptied: list[str] = []
        self.sessions = ShareSessions(
            most,
            ended=lambda session: self.ended.append(session.key),
            emptied=self.emptied.append,
        )

    def begin(self, key: ShareSessionKey, connection: Connection, *indexes: int) -> ShareSession:
        return self.sessions.begin(
            key, partitions(*indexes), connection, has_acknowledgements=False
        )


def partitions(*indexes: int) -> dict[TopicIdPartition, CachedSharePartition]:
    return {(TOPIC, index): CachedSharePartition("t", is_news=False) for index in indexes}


def test_share_session_epoch_wraps_after_the_maximum() -> None:
    world = World()
    session = world.begin(ONE, Connection())

    assert 1 == session.epoch
    world.sessions.use(ONE, 1)
    with pytest.raises(InvalidShareSessionEpoch):
        world.sessions.use(ONE, 1)
    session.epoch = LAST_EPOCH
    world.sessions.use(ONE, LAST_EPOCH)
    assert 1 == session.epoch
    with pytest.raises(ShareSessionNotFound):
        world.sessions.use(OTHER, 1)


def test_final_epoch_requires_a_session_and_closes_it() -> None:
    world = World()
    with pytest.raises(ShareSessionNotFound):
        world.sessions.use(ONE, FINAL_EPOCH)
    session = world.begin(ONE, Connection())

    assert session is world.sessions.use(ONE, FINAL_EPOCH)
    assert 1 == session.epoch


def test_first_share_request_cannot_acknowledge() -> None:
    with pytest.raises(InvalidRequest):
        World().sessions.begin(ONE, {}, Connection(), has_acknowledgements=True)


def test_closed_connection_closes_its_sessions() -> None:
    world, first, second = World(), Connection(), Connection()
    world.begin(ONE, first)
    world.begin(OTHER, first)
    session = world.begin(ONE, second)

    first.close()

    assert [OTHER] == world.ended
    assert session is world.sessions.get(ONE)
    assert [] == world.emptied
    second.close()
    assert [OTHER, ONE] == world.ended
    assert ["g"] == world.emptied
    assert 0 == len(world.sessions)


def test_group_is_empty_once_the_connection_of_its_last_session_closes() -> None:
    world, connection = World(), Connection()
    world.begin(ONE, connection)
    world.sessions.remove(ONE)
    assert [] == world.emptied

    connection.close()

    assert [] == world.ended
    assert ["g"] == world.emptied


def test_session_beyond_the_limit_is_refused() -> None:
    world = World(most=1)
    world.begin(ONE, Connection())
    with pytest.raises(ShareSessionLimitReached):
        world.begin(OTHER, Connection())

    world.begin(ONE, Connection())
    assert 1 == len(world.sessions)


def test_partitions_of_all_share_sessions_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stated("share-session-partitions") == module.MOST_PARTITIONS
    assert stated("share-sessions") == CoordinatorConfig().group_share_max_share_sessions
    monkeypatch.setattr(module, "MOST_PARTITIONS", 3)
    world = World()
    session = world.begin(ONE, Connection(), 0, 1)
    with pytest.raises(ShareSessionLimitReached):
        world.begin(OTHER, Connection(), 0, 1)
    world.sessions.update(session, partitions(2), [(TOPIC, 0)])
    assert [(TOPIC, 1), (TOPIC, 2)] == [*session.partitions]

    with pytest.raises(ShareSessionNotFound):
        world.sessions.update(session, partitions(3, 4), [])
    assert [ONE] == world.ended
    assert world.sessions.get(ONE) is None


def test_number_of_remembered_empty_groups_is_limited() -> None:
    world, connection = World(most=3), Connection()
    for number in range(10):
        key = ShareSessionKey(f"g{number}", "m")
        world.begin(key, connection)
        world.sessions.remove(key)

    assert 7 <= len(world.emptied)


def test_error_is_returned_when_it_occurs_and_when_it_ends() -> None:
    cached = CachedSharePartition("t", is_news=True)

    told = [
        cached.must_respond(has_records=records, has_error=error)
        for records, error in [(False, False), (False, False), (True, False), (False, True)]
    ]
    over = [cached.must_respond(has_records=False, has_error=False) for _ in range(2)]

    assert [True, False, True, True] == told
    assert [True, False] == over
