"""
Fetch sessions: what clients fetch, remembered between their requests (KIP-227).

A client that asked for all of its partitions once is given a session, and from then on names only
what changed; the answers, in turn, leave out the partitions of which there is nothing new. The
rules are those of Kafka's ``FetchSessionCacheShard`` and ``FetchManager``. A client
may use its session over any connection. The session ends when its client says so, when it has no
partition left, or when another one needs its place.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.protocol.errors import FetchSessionIdNotFound, UnknownServerError
from barnabas.server.metrics import Metrics

if TYPE_CHECKING:
    import random

    from barnabas.server.fetch.cached_partition import CachedPartition, CachedPartitionKey

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
LAST_EPOCH: Final = 2**31 - 1
SHARDS: Final = 8
"""
The parts of the cache: a session competes only with those of its own part for a place.
"""
IDS_OF_SHARD: Final = (2**31 - 1) // SHARDS
EVICTION_MS: Final = 120_000
"""
A session that was not used for longer may be replaced by any other; one that is younger, by none.
"""

MOST_PARTITIONS: Final = 200_000
"""
The partitions of all sessions together. Each takes about 360 bytes, whether it exists or not.
"""

_Worth: TypeAlias = tuple[bool, int, int]  # privileged, number of partitions, id


def next_epoch(epoch: int) -> int:
    """
    The epoch that the request after one of that epoch has.
    """
    return INITIAL_EPOCH + 1 if epoch == LAST_EPOCH else epoch + 1


class FetchSession:
    """
    The partitions that one client fetches.

    Invariants:

    1. ``partitions`` has them in the order in which they are read: one that gave records goes to
       the end, so that each gets its turn where an answer has no room for all.
    2. ``epoch`` is that of the next request. It moves when a request arrives, not when it is
       answered, so that of two requests with one epoch the second is refused.
    """

    __slots__ = (
        "created_ms",
        "epoch",
        "id",
        "is_privileged",
        "last_used_ms",
        "partitions",
        "uses_topic_ids",
    )

    def __init__(
        self,
        session_id: int,
        partitions: dict[CachedPartitionKey, CachedPartition],
        *,
        is_privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> None:
        self.id = session_id
        self.partitions = partitions
        self.is_privileged = is_privileged  # of a broker that follows
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)

    def update(
        self,
        asked: Mapping[CachedPartitionKey, CachedPartition],
        forgotten: Iterable[CachedPartitionKey],
    ) -> None:
        """
        Take over what a request has changed.
        """
        partitions = self.partitions
        for key, wanted in asked.items():
            known = partitions.setdefault(key, wanted)
            known.request = wanted.request
        for key in forgotten:
            partitions.pop(key, None)

    def use(self, now_ms: int) -> None:
        """
        A request of this session's epoch is here.
        """
        self.last_used_ms = now_ms
        self.epoch = next_epoch(self.epoch)

    def put_last(self, wanted: CachedPartition) -> None:
        """
        Read that partition after all others from now on.
        """
        key = wanted.key
        del self.partitions[key]
        self.partitions[key] = wanted

    @property
    def worth(self) -> _Worth:
        """
        What is compared when another session wants the place.
        """
        return self.is_privileged, len(self.partitions), self.id

    def has_aged(self) -> bool:
        """
        Whether it existed for long enough, when it was last used, to be compared at all.
        """
        return self.last_used_ms - self.created_ms > EVICTION_MS


class FetchSessions:
    """
    All sessions, in parts that have their numbers and their places to themselves.

    A part that is full, or whose new session has more partitions than there is room for in all
    parts together, looks for a victim among all its sessions.

    Args:
        slots: how many sessions there may be; what 8 does not divide is lost.
    """

    def __init__(
        self, slots: int, metrics: Metrics, *, chance: random.Random | None = None
    ) -> None:
        self._shards: list[dict[int, FetchSession]] = [{} for _ in range(SHARDS)]
        self._places = slots // SHARDS
        self._partitions = 0  # of all sessions
        self._turns = count()
        self._chance = chance
        self._evictions = metrics.counter(
            "fetch_session_evictions", "Fetch sessions that lost their place to others."
        )
        metrics.gauge("fetch_sessions", "Incremental fetch sessions.", lambda: len(self))
        metrics.gauge(
            "fetch_session_partitions",
            "Partitions in incremental fetch sessions.",
            lambda: self._partitions,
        )

    def __len__(self) -> int:
        return sum(map(len, self._shards))

    def __iter__(self) -> Iterator[FetchSession]:
        for shard in self._shards:
            yield from shard.values()

    def get(self, session_id: int) -> FetchSession | None:
        """
        The session with that number.

        Raises:
            UnknownServerError: no part has such numbers; Kafka stumbles there, too.
        """
        return self._shard_of(session_id).get(session_id)

    def remove(self, session_id: int) -> None:
        """
        End a session, if it is there.

        Raises:
            UnknownServerError: no part has such numbers.
        """
        session = self._shard_of(session_id).pop(session_id, None)
        if session is not None:
            self._partitions -= len(session.partitions)

    def update(
        self,
        session: FetchSession,
        asked: Mapping[CachedPartitionKey, CachedPartition],
        forgotten: Iterable[CachedPartitionKey],
    ) -> None:
        """
        Take over what a request has changed of *session*.

        Raises:
            FetchSessionIdNotFound: there is no room for its partitions, and the session has ended.
        """
        self._partitions -= len(session.partitions)
        session.update(asked, forgotten)
        self._partitions += len(session.partitions)
        if self._partitions > MOST_PARTITIONS:
            self.remove(session.id)
            raise FetchSessionIdNotFound

    def create(
        self,
        partitions: dict[CachedPartitionKey, CachedPartition],
        *,
        is_privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> int:
        """
        The number of a new session, or 0 if there is no place for it.
        """
        number = next(self._turns) % SHARDS
        shard = self._shards[number]
        most_others = MOST_PARTITIONS - len(partitions)
        while len(shard) >= self._places or self._partitions > most_others:
            victim = None
            if most_others >= 0:
                victim = _victim(shard, (is_privileged, len(partitions), NO_SESSION), now_ms)
            if victim is None:
                return NO_SESSION
            self.remove(victim.id)
            self._evictions.value += 1
        self._partitions += len(partitions)
        session_id = self._new_id(number)
        shard[session_id] = FetchSession(
            session_id,
            partitions,
            is_privileged=is_privileged,
            uses_topic_ids=uses_topic_ids,
            now_ms=now_ms,
        )
        return session_id

    def _new_id(self, number: int) -> int:
        if self._chance is None:
            import random  # noqa: PLC0415  # the first session asks for it

            self._chance = random.Random()
        first = number * IDS_OF_SHARD
        while True:
            session_id = self._chance.randrange(max(1, first), first + IDS_OF_SHARD)
            if session_id not in self._shards[number]:
                return session_id

    def _shard_of(self, session_id: int) -> dict[int, FetchSession]:
        number = abs(session_id) // IDS_OF_SHARD
        if number >= SHARDS or (number and session_id < 0):
            raise UnknownServerError(f"no fetch session has the number {session_id}")
        return self._shards[number]


def _victim(
    shard: Mapping[int, FetchSession], proposed: _Worth, now_ms: int
) -> FetchSession | None:
    """
    Who goes for a new session: the one that was idle for longest, if that was too long; else the
    one that is worth least, if it is worth less. Only broker's sessions replace young ones, and
    those only of clients.
    """
    oldest = min(shard.values(), key=lambda each: (each.last_used_ms, each.id), default=None)
    if oldest is None or now_ms - oldest.last_used_ms > EVICTION_MS:
        return oldest
    is_privileged = proposed[0]
    comparable = (
        each
        for each in shard.values()
        if each.has_aged() or (is_privileged and not each.is_privileged)
    )
    least = min(comparable, key=lambda each: each.worth, default=None)
    return None if least is None or proposed < least.worth else least
