"""
The places for fetch sessions, and who loses one to whom.
"""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.errors import FetchSessionIdNotFound, UnknownServerError
from barnabas.protocol.messages.fetch import FetchPartition
from barnabas.server.config import BrokerConfig
from barnabas.server.fetch.cached_partition import CachedPartition, CachedPartitionKey
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


def partitions(count: int) -> dict[CachedPartitionKey, CachedPartition]:
    wanted: dict[CachedPartitionKey, CachedPartition] = {}
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


OLD = EVICTION_MS + 1
"""
The age of a session beyond which it may be evicted.
"""
CLIENT, FOLLOWER = False, True


@pytest.mark.parametrize(
    ("there", "used_ms", "new", "at_ms", "is_evicted"),
    [
        pytest.param((2, CLIENT), OLD - 1, (1, CLIENT), OLD - 1, False, id="young"),
        pytest.param((2, CLIENT), OLD - 1, (100, CLIENT), OLD - 1, False, id="young and smaller"),
        pytest.param((2, CLIENT), OLD - 1, (9, CLIENT), OLD + 4, False, id="old since its use"),
        pytest.param((50, CLIENT), 0, (1, CLIENT), OLD - 1, False, id="nearly idle for too long"),
        pytest.param((50, CLIENT), 0, (1, CLIENT), OLD, True, id="idle for too long"),
        pytest.param((2, CLIENT), OLD, (1, CLIENT), OLD, False, id="old and larger"),
        pytest.param((2, CLIENT), OLD, (2, CLIENT), OLD, False, id="old and as large"),
        pytest.param((2, CLIENT), OLD, (3, CLIENT), OLD, True, id="old and smaller"),
        pytest.param((50, CLIENT), 0, (1, FOLLOWER), 1, True, id="young client for a follower"),
        pytest.param((1, FOLLOWER), 0, (9, FOLLOWER), 1, False, id="young follower"),
        pytest.param((2, FOLLOWER), OLD, (2, FOLLOWER), OLD, False, id="old follower, as large"),
        pytest.param((2, FOLLOWER), OLD, (3, FOLLOWER), OLD, True, id="old follower, smaller"),
        pytest.param((1, FOLLOWER), OLD, (100, CLIENT), OLD, False, id="follower for a client"),
    ],
)
def test_session_is_evicted_by_rank_age_and_size(
    there: tuple[int, bool], used_ms: int, new: tuple[int, bool], at_ms: int, is_evicted: bool
) -> None:
    cache = Cache()
    (first, *_) = cache.fill(there[0], privileged=there[1])
    cache.use_all(used_ms)

    created = cache.create(new[0], at_ms=at_ms, privileged=new[1])

    assert is_evicted == bool(created) == (cache.sessions.get(first) is None)
    assert is_evicted == cache.value("fetch_session_evictions")


@pytest.mark.parametrize(
    ("there", "used_ms", "new", "evicted"),
    [
        ([{"size": 9}, {"at_ms": 10}], None, {"at_ms": OLD + 19}, 0),
        ([{"size": 3}, {"size": 2}], OLD, {"size": 9, "at_ms": OLD}, 1),
        (
            [{"privileged": True}, {"size": 50}],
            OLD,
            {"size": 2, "at_ms": OLD, "privileged": True},
            1,
        ),
    ],
    ids=["least recently used", "smallest of the old ones", "client before follower"],
)
def test_first_of_several_sessions_is_evicted(
    there: list[dict[str, Any]], used_ms: int | None, new: dict[str, Any], evicted: int
) -> None:
    cache = Cache(2 * SHARDS)
    created = [cache.fill(**facts)[0] for facts in there]
    if used_ms is not None:
        cache.use_all(used_ms)

    assert cache.create(**new)

    assert [at != evicted for at in range(2)] == [
        cache.sessions.get(each) is not None for each in created
    ]


class TestPartitionsOfAllSessions:
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

        assert cache.create(1, at_ms=OLD)

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
    slots = BrokerConfig().max_incremental_fetch_session_cache_slots
    cache = Cache(slots)

    created = [cache.create() for _ in range(slots + SHARDS)]

    assert stated("fetch-sessions") == slots == sum(1 for number in created if number)
