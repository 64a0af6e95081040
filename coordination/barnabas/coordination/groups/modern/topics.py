"""
The topics of the cluster, as coordinators of groups see them.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from struct import Struct
from typing import Final, Protocol, TypeVar
from uuid import UUID

from xxhash import xxh3_64_intdigest

from barnabas.coordination.java_strings import string_rank

_TOPIC_HEAD: Final = Struct("<BQQ")
_INT: Final = Struct("<i")
_LONG: Final = Struct("<q")
_LOW: Final = (1 << 64) - 1
_MAGIC: Final = 0

NO_TOPICS_HASH: Final = 0
MOST_FOLLOWED: Final = 1000
"""
How many names of a group are followed one by one. Those of a group with more are searched for each
topic that changes: to follow 100,000 names would hold up the event loop.
"""

P = TypeVar("P")


class ClusterTopic(Protocol):
    """
    A topic.
    """

    @property
    def name(self) -> str: ...
    @property
    def id(self) -> UUID: ...
    @property
    def partitions(self) -> Mapping[int, object]: ...


class ClusterTopics(Protocol):
    """
    All topics of the cluster, at this moment.
    """

    @property
    def version(self) -> int:
        """
        A number that grows with each change of the cluster's metadata, across restarts too.
        """

    def get(self, name: str) -> ClusterTopic | None:
        """
        The topic with that name.
        """

    def get_by_id(self, topic_id: UUID) -> ClusterTopic | None:
        """
        The topic with that id.
        """

    def existing(self, names: Iterable[str]) -> Set[str]:
        """
        Return the *names* for which there is a topic.
        """

    def __iter__(self) -> Iterator[ClusterTopic]: ...

    def racks(self, name: str, partition: int) -> Sequence[str]:
        """
        The racks of the nodes that have a replica of a partition, of those that have one.
        """


def topic_partitions(make: Callable[..., P], assigned: Mapping[UUID, Iterable[int]]) -> list[P]:
    """
    Partitions of topics as *make* makes them for a message or a record.
    """
    return [make(topic_id=each, partitions=list(found)) for each, found in assigned.items()]


def with_topics(
    assigned: Mapping[UUID, Iterable[int]], topics: ClusterTopics
) -> list[tuple[ClusterTopic, list[int]]]:
    """
    Partitions by their topics, without those of topics that do not exist any more.
    """
    found = ((topics.get_by_id(each), partitions) for each, partitions in assigned.items())
    return [(topic, list(partitions)) for topic, partitions in found if topic is not None]


class Subscriber(Protocol):
    """
    A group that subscribes to topics.
    """

    group_id: str

    @property
    def subscribed_topics(self) -> Set[str]:
        """
        The names of the topics that it subscribes to, whether they exist or not.
        """

    def request_metadata_refresh(self) -> None:
        """
        Let its next heartbeat look at the topics: one of them has changed.
        """


class SubscribedTopics:
    """
    The topics that groups subscribe to, with hashes that say whether they have changed.

    A group keeps the hash of its topics in its epoch record: another broker that leads it finds out
    from the hash whether topics were created, deleted or enlarged meanwhile (Kafka's
    ``Utils.computeGroupHash``: XXH3 of 64 bits).

    Invariants:

    1. A kept hash is that of the topic as it is, since ``changed`` drops it.
    2. ``_subscribers`` has each followed group under the topics in ``_followed``, and no others;
       ``_wide`` has the groups that follow too many names for this.

    Used on the event loop's thread only.
    """

    def __init__(self, topics: ClusterTopics) -> None:
        self.topics = topics
        self._hashes: dict[str, int] = {}
        self._subscribers: dict[str, dict[str, Subscriber]] = {}
        self._followed: dict[str, frozenset[str]] = {}
        self._wide: dict[str, tuple[Subscriber, frozenset[str]]] = {}
        self.version_with_new_topics = topics.version
        """The version of the metadata with which topics were created last."""

    def created(self, name: str) -> None:
        """
        Note that a topic was created.
        """
        self.version_with_new_topics = self.topics.version
        self.changed(name)

    def changed(self, name: str) -> None:
        """
        Note that a topic was deleted, or has more partitions.
        """
        self._hashes.pop(name, None)
        for group in self._subscribers.get(name, {}).values():
            group.request_metadata_refresh()
        for group, names in self._wide.values():
            if name in names:
                group.request_metadata_refresh()

    def follow(self, group: Subscriber) -> None:
        """
        Tell a group of changes of its topics; called again when its subscriptions change.
        """
        before = self._followed.get(group.group_id, frozenset())
        after = frozenset(group.subscribed_topics)
        self._wide.pop(group.group_id, None)
        if len(after) > MOST_FOLLOWED:
            self._wide[group.group_id] = (group, after)
            after = frozenset()
        self._followed[group.group_id] = after
        for name in after:
            self._subscribers.setdefault(name, {})[group.group_id] = group
        self._leave(group.group_id, before - after)

    def unfollow(self, group_id: str) -> None:
        """
        Tell a group of changes no more; without effect if it is not followed.
        """
        self._wide.pop(group_id, None)
        self._leave(group_id, self._followed.pop(group_id, frozenset()))

    def _leave(self, group_id: str, names: Iterable[str]) -> None:
        for name in names:
            groups = self._subscribers[name]
            del groups[group_id]
            if not groups:
                del self._subscribers[name]
                self._hashes.pop(name, None)

    def ids(self, names: Iterable[str]) -> set[UUID]:
        """
        The ids of those topics that exist.
        """
        found = map(self.topics.get, self.topics.existing(names))
        return {topic.id for topic in found if topic is not None}

    def hash(self, names: Iterable[str]) -> int:
        """
        The hash of those topics that exist, as a signed integer of 64 bits; 0 if there are none.
        """
        # A client may name very many topics that do not exist.
        existing = sorted(self.topics.existing(names), key=string_rank)
        hashes = [self._hash_of(name) for name in existing]
        known = [_LONG.pack(each) for each in hashes if each is not None]
        return _signed(xxh3_64_intdigest(b"".join(known))) if known else NO_TOPICS_HASH

    def _hash_of(self, name: str) -> int | None:
        known = self._hashes.get(name)
        if known is not None:
            return known
        topic = self.topics.get(name)
        if topic is None:
            return None
        racks = [self.topics.racks(name, index) for index in range(len(topic.partitions))]
        self._hashes[name] = topic_hash(topic.id, topic.name, racks)
        return self._hashes[name]


def topic_hash(topic_id: UUID, name: str, racks: Sequence[Sequence[str]]) -> int:
    """
    The hash of a topic, as a signed integer (Kafka's ``Utils.computeTopicHash``).

    Args:
        racks: of each partition.
    """
    hashed = [_TOPIC_HEAD.pack(_MAGIC, topic_id.int >> 64, topic_id.int & _LOW)]
    hashed += _text(name)
    hashed.append(_INT.pack(len(racks)))
    for index, of_partition in enumerate(racks):
        hashed.append(_INT.pack(index))
        for rack in sorted(of_partition, key=string_rank):
            hashed.append(_INT.pack(_units(rack)))
            hashed += _text(rack)
    return _signed(xxh3_64_intdigest(b"".join(hashed)))


def _text(text: str) -> tuple[bytes, bytes]:
    return text.encode("utf-16-le", "surrogatepass"), _INT.pack(_units(text))


def _units(text: str) -> int:
    """
    The length of *text* as Java counts it.
    """
    return len(string_rank(text)) // 2


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
