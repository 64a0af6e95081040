"""
The places for fetch sessions, and who loses one to whom.
"""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from barnabas.protocol.errors import FetchSessionIdNotFound, UnknownServerError
from barnabas.protocol.messages.fetch import FetchPartition
from barnabas.server.config import BrokerConfig
from barnabas.server.fetch.cached_partition import CachedPartition, Key
from barnabas.server.fetch.sessions import (
    EVICTION_MS,
    IDS_OF_SHARD,
    MOST_PARTITIONS,
    SHARDS,
    FetchSession,
    FetchSessions,
    next_epoch,
)
from barnabas.server.metrics import Metrics
from tests.support.limits import stated

TOPIC = UUID(int=1)


def partitions(count: int) -> dict[Key, CachedPartition]:
    wanted: dict[Key, CachedPartition] = {}
    for index in range(count):
        request = FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1)
        wanted["orders", index] = CachedPartition(("orders", index), "orders", TOPIC, request)
    return wanted


class Cache:
    """
    The sessions of a broker with one place in each part, and what is counted.
    """

    def __init__(self, slots: int = SHARDS) -> None:
        self.metrics = Metrics()
        self.sessions = FetchSessions(slots, self.metrics, chance=random.Random(1))

    def create(self, size: int = 1, *, at_ms: int = 0, privileged: bool = False) -> int:
        return self.sessions.create(
            partitions(size), is_privileged=privileged, uses_topic_ids=False, now_ms=at_ms
        )

    def fill(self, size: int = 1, *, at_ms: int = 0, privileged: bool = False) -> list[int]:
        return [self.create(size, at_ms=at_ms, privileged=privileged) for _ in range(SHARDS)]

    def session(self, session_id: int) -> FetchSession:
        session = self.sessions.get(session_id)
        assert session is not None
        return session

    def use_all(self, at_ms: int) -> None:
        for session in self.sessions:
            session.use(at_ms)

    def value(self, name: str) -> float:
        return self.metrics.value(name)


def test_fetch_session_ids_are_allocated_within_their_shard() -> None:
    cache = Cache(slots=3 * SHARDS)

    numbers = [cache.create() for _ in range(3 * SHARDS)]

    assert [*range(SHARDS)] * 3 == [number // IDS_OF_SHARD for number in numbers]
    assert 3 * SHARDS == len(set(numbers)) == len(cache.sessions)
    assert 0 not in numbers


@pytest.mark.parametrize(("slots", "places"), [(0, 0), (7, 0), (8, 8), (15, 8), (1000, 1000)])
def test_session_slots_are_divided_equally_among_shards(slots: int, places: int) -> None:
    cache = Cache(slots)

    numbers = [cache.create() for _ in range(1100)]

    assert places == len(cache.sessions) == sum(number != 0 for number in numbers)
    assert 0 == cache.value("fetch_session_evictions")


def test_session_metrics_follow_the_cache() -> None:
    cache = Cache()
    first, *_ = cache.fill(3)
    cache.sessions.update(cache.session(first), partitions(5), [("orders", 0)])

    assert (8, 4 + 7 * 3) == (
        cache.value("fetch_sessions"),
        cache.value("fetch_session_partitions"),
    )

    cache.sessions.remove(first)
    cache.sessions.remove(first)

    assert (7, 7 * 3) == (cache.value("fetch_sessions"), cache.value("fetch_session_partitions"))
    assert cache.sessions.get(first) is None


@pytest.mark.parametrize(("size", "privileged"), [(1, False), (100, False)])
def test_young_client_sessions_are_not_evicted(size: int, privileged: bool) -> None:
    cache = Cache()
    cache.fill(2)
    cache.use_all(EVICTION_MS)

    assert 0 == cache.create(size, at_ms=EVICTION_MS, privileged=privileged)
    assert 0 == cache.value("fetch_session_evictions")


@pytest.mark.parametrize(("idle_ms", "goes"), [(EVICTION_MS, False), (EVICTION_MS + 1, True)])
def test_session_idle_for_too_long_is_evicted_whatever_its_size(idle_ms: int, goes: bool) -> None:
    cache = Cache()
    (first, *_) = cache.fill(50)

    created = cache.create(1, at_ms=idle_ms)

    assert goes == bool(created)
    assert goes == (cache.sessions.get(first) is None)
    assert goes == cache.value("fetch_session_evictions")


@pytest.mark.parametrize(("size", "goes"), [(1, False), (2, False), (3, True)])
def test_old_session_in_use_is_evicted_only_for_a_larger_one(size: int, goes: bool) -> None:
    cache = Cache()
    (first, *_) = cache.fill(2)
    cache.use_all(EVICTION_MS + 1)

    created = cache.create(size, at_ms=EVICTION_MS + 1)

    assert goes == bool(created)
    assert goes == (cache.sessions.get(first) is None)


def test_session_age_is_checked_from_its_next_use_on() -> None:
    cache = Cache()
    cache.fill(2)
    cache.use_all(EVICTION_MS)

    assert 0 == cache.create(9, at_ms=EVICTION_MS + 5)


def test_least_recently_used_session_is_evicted_first() -> None:
    cache = Cache(2 * SHARDS)
    first = cache.fill(9)[0]
    second = cache.fill(1, at_ms=10)[0]

    assert cache.create(1, at_ms=EVICTION_MS + 20)

    assert cache.sessions.get(first) is None
    assert cache.sessions.get(second) is not None


def test_smallest_of_several_old_sessions_is_evicted() -> None:
    cache = Cache(2 * SHARDS)
    large, small = cache.fill(3)[0], cache.fill(2)[0]
    cache.use_all(EVICTION_MS + 1)

    assert cache.create(9, at_ms=EVICTION_MS + 1)

    assert cache.sessions.get(large) is not None
    assert cache.sessions.get(small) is None


class TestBrokers:
    """
    Brokers that follow have precedence.
    """

    def test_follower_session_evicts_a_young_client_session(self) -> None:
        cache = Cache()
        (first, *_) = cache.fill(50)

        assert cache.create(1, at_ms=1, privileged=True)
        assert cache.sessions.get(first) is None

    def test_follower_session_does_not_evict_a_young_follower_session(self) -> None:
        cache = Cache()
        cache.fill(1, privileged=True)

        assert 0 == cache.create(9, at_ms=1, privileged=True)

    @pytest.mark.parametrize(("size", "goes"), [(2, False), (3, True)])
    def test_follower_session_evicts_a_smaller_old_follower_session(
        self, size: int, goes: bool
    ) -> None:
        cache = Cache()
        cache.fill(2, privileged=True)
        cache.use_all(EVICTION_MS + 1)

        assert goes == bool(cache.create(size, at_ms=EVICTION_MS + 1, privileged=True))

    def test_client_session_does_not_evict_a_follower_session_in_use(self) -> None:
        cache = Cache()
        cache.fill(1, privileged=True)
        cache.use_all(EVICTION_MS + 1)

        assert 0 == cache.create(100, at_ms=EVICTION_MS + 1)

    def test_client_sessions_are_evicted_before_follower_sessions(self) -> None:
        cache = Cache(2 * SHARDS)
        broker, client = cache.fill(1, privileged=True)[0], cache.fill(50)[0]
        cache.use_all(EVICTION_MS + 1)

        assert cache.create(2, at_ms=EVICTION_MS + 1, privileged=True)

        assert cache.sessions.get(broker) is not None
        assert cache.sessions.get(client) is None


class TestPartitionsOfAllSessions:
    """
    How many partitions all sessions have together.
    """

    def test_limit_of_session_partitions_matches_the_documentation(self) -> None:
        assert stated("session-partitions") == MOST_PARTITIONS

    def test_fetch_beyond_the_partition_limit_leaves_sessions_as_they_are(self) -> None:
        cache = Cache()
        cache.fill(1)

        assert 0 == cache.create(MOST_PARTITIONS + 1, at_ms=2 * EVICTION_MS)

        assert SHARDS == cache.value("fetch_sessions")

    def test_partition_limit_is_reached_with_the_last_partition(self) -> None:
        cache = Cache(2 * SHARDS)
        cache.create(MOST_PARTITIONS - 3)

        assert 0 == cache.create(4)
        assert cache.create(3)
        assert 0 == cache.create(1)
        assert MOST_PARTITIONS == cache.value("fetch_session_partitions")

    def test_idle_sessions_are_evicted_to_meet_the_partition_limit(self) -> None:
        cache = Cache(2 * SHARDS)
        first = cache.create(MOST_PARTITIONS)
        for _ in range(SHARDS - 1):
            assert 0 == cache.create(1)

        assert cache.create(1, at_ms=EVICTION_MS + 1)

        assert cache.sessions.get(first) is None
        assert 1 == cache.value("fetch_session_partitions")
        assert 1 == cache.value("fetch_session_evictions")

    def test_session_that_grows_beyond_the_partition_limit_is_closed(self) -> None:
        cache = Cache()
        session = cache.session(cache.create(1))
        most = partitions(MOST_PARTITIONS + 1)

        cache.sessions.update(session, most, [("orders", 0)])
        with pytest.raises(FetchSessionIdNotFound):
            cache.sessions.update(session, partitions(1), [])

        assert cache.sessions.get(session.id) is None
        assert 0 == cache.value("fetch_session_partitions")


@pytest.mark.parametrize("session_id", [-IDS_OF_SHARD, SHARDS * IDS_OF_SHARD, 2**31 - 1, -(2**31)])
def test_session_id_of_no_shard_is_an_error_of_the_broker(session_id: int) -> None:
    sessions = Cache().sessions

    with pytest.raises(UnknownServerError):
        sessions.get(session_id)
    with pytest.raises(UnknownServerError):
        sessions.remove(session_id)


@pytest.mark.parametrize("session_id", [-IDS_OF_SHARD + 1, -1, 0, 1, SHARDS * IDS_OF_SHARD - 1])
def test_unknown_session_ids_belong_to_no_session(session_id: int) -> None:
    assert Cache().sessions.get(session_id) is None


def test_session_epoch_wraps_to_1_after_the_maximum() -> None:
    assert [1, 2, 2**31 - 1, 1] == [next_epoch(each) for each in (0, 1, 2**31 - 2, 2**31 - 1)]


def test_number_of_session_slots_matches_the_documentation() -> None:
    """
    The page states the default of ``max.incremental.fetch.session.cache.slots``.
    """
    slots = BrokerConfig().max_incremental_fetch_session_cache_slots
    cache = Cache(slots)

    created = [cache.create() for _ in range(slots + SHARDS)]

    assert stated("fetch-sessions") == slots == sum(1 for number in created if number)
