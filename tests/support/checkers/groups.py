"""
Committed offsets change only by requests and by expiry, and the epochs of a group only grow.

Legitimate exceptions:

* A client may commit any offset, also an earlier one (Kafka ``OffsetMetadataManager.commitOffset``
  compares nothing): a change is allowed to what a request has asked for.
* An offset disappears by OffsetDelete, DeleteGroups, the deletion of its topic (Kafka
  ``GroupCoordinatorService.onMetadataUpdate``) or its expiry (KIP-211).
* A group whose last member left may be deleted and begin again at the first epoch, and the protocol
  of a group may change (KIP-848): another object then, which is not compared with the old one.
* The next generation of a classic group counts before its record is written, and is taken back if
  that fails (Kafka ``GroupMetadataManager.completeClassicGroupJoin``): only if its partition of
  ``__consumer_offsets`` is lost here, with the group.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

Key = tuple[str, str, int]
"""
A group, a topic and a partition.
"""


class Asked:
    """
    A request that may commit or delete offsets.
    """

    __slots__ = ("is_done", "keys", "names", "values")

    def __init__(self) -> None:
        self.is_done = False
        self.values: dict[Key, int] = {}
        """What it commits."""
        self.keys: set[Key] = set()
        """What it deletes."""
        self.names: set[str] = set()
        """The groups that it deletes."""


class Seen(NamedTuple):
    """
    An offset at the last look.
    """

    offset: int
    expires_ms: int
    topic_id: Any
    shard: Any


class Groups:
    """
    The groups of a broker and their offsets, as they were when they were last looked at.
    """

    def __init__(
        self,
        report: Callable[[str], None],
        *,
        now_ms: Callable[[], int],
        retention_ms: Callable[[], int],
        topic_id: Callable[[str], Any],
    ) -> None:
        """
        Args:
            topic_id: returns the id of a topic, None if it does not exist.
        """
        self._report = report
        self._now_ms = now_ms
        self._retention_ms = retention_ms
        self._topic_id = topic_id
        self._asked: deque[Asked] = deque()
        self._pending: dict[Key, set[int]] = {}
        self._offsets: dict[Key, Seen] = {}
        self._epochs: dict[str, tuple[Any, int]] = {}

    def asks(self) -> Asked:
        """
        A request that begins; ``is_done`` has to be set when it is answered.
        """
        asked = Asked()
        self._asked.append(asked)
        return asked

    def asks_in_transaction(self, key: Key, offset: int) -> None:
        """
        A transaction is going to commit an offset, if it does.
        """
        self._pending.setdefault(key, set()).add(offset)

    def acknowledge(self, key: Key, offset: int) -> None:
        """
        A commit of *key* is answered, and the offset is this one now.
        """
        if offset in self._pending.get(key, ()):
            return
        if not any(asked.values.get(key) == offset for asked in self._asked):
            self._report(
                f"group {key[0]}: a commit for {key[1]}-{key[2]} is answered, and the offset is"
                f" {offset}, which no request has asked for"
            )

    def look(self, shards: Iterable[Any]) -> None:
        """
        Compare the groups of each partition of ``__consumer_offsets``, and their offsets.
        """
        loaded = [shard for shard in shards if shard.log.is_open]
        for shard in loaded:
            self._look_at_groups(shard.state.groups)
            # A transaction may have begun before the last restart.
            for offsets in shard.state.offsets._pending.values():
                for group, topic, partition, offset in offsets:
                    self.asks_in_transaction((group, topic, partition), offset.offset)
        found: dict[Key, Seen] = {}
        for shard in loaded:
            for group, topic, partition, offset in shard.state.offsets.committed:
                key = (group, topic, partition)
                begins = max(offset.commit_timestamp_ms, 0)
                expires = offset.expire_timestamp_ms
                if expires < 0:
                    expires = begins + self._retention_ms()
                topic_id = self._topic_id(topic)
                seen = found[key] = Seen(offset.offset, expires, topic_id, shard)
                before = self._offsets.get(key)
                if before is not None and before.offset != seen.offset:
                    self._changed(key, before, seen)
        for key in self._offsets.keys() - found.keys():
            self._disappeared(key, self._offsets[key])
        self._offsets = found
        # An earlier request may be answered later: the offset is already that of this one then.
        while self._asked and self._asked[0].is_done:
            self._asked.popleft()

    def _changed(self, key: Key, before: Seen, now: Seen) -> None:
        if before.shard is not now.shard:
            return
        if now.offset in self._pending.get(key, ()):
            return
        if any(asked.values.get(key) == now.offset for asked in self._asked):
            return
        self._report(
            f"group {key[0]}: the offset of {key[1]}-{key[2]} became {now.offset} instead of"
            f" {before.offset}, which no request has asked for"
        )

    def _disappeared(self, key: Key, before: Seen) -> None:
        group, topic, _ = key
        if not before.shard.log.is_open:
            return
        if any(group in asked.names or key in asked.keys for asked in self._asked):
            return
        topic_id = self._topic_id(topic)
        if topic_id is None or topic_id != before.topic_id:
            return
        if self._now_ms() >= before.expires_ms:
            return
        self._report(
            f"group {group}: the offset {before.offset} of {topic}-{key[2]} disappeared, neither"
            " deleted nor expired"
        )

    def _look_at_groups(self, groups: Iterable[Any]) -> None:
        for group in groups:
            epoch = epoch_of(group)
            known = self._epochs.get(group.group_id)
            if known is not None and known[0] is group and epoch < known[1]:
                self._report(
                    f"group {group.group_id}: its epoch went back from {known[1]} to {epoch}"
                )
            self._epochs[group.group_id] = (group, epoch)
            if getattr(group, "assignment_epoch", epoch) > epoch:
                self._report(
                    f"group {group.group_id}: its assignment is of epoch {group.assignment_epoch},"
                    f" the group is at {epoch}"
                )


def epoch_of(group: Any) -> int:
    """
    The epoch of a group, or the generation of a classic one.
    """
    epoch = getattr(group, "group_epoch", None)
    return int(group.generation_id if epoch is None else epoch)


def commits(request: Any, name_of: Callable[[Any], str | None]) -> Iterator[tuple[Key, int]]:
    """
    What OffsetCommit and TxnOffsetCommit commit.

    Args:
        name_of: returns the name of a topic by its id.
    """
    for topic in request.topics:
        # TxnOffsetCommit has no ids.
        topic_id = getattr(topic, "topic_id", None)
        name: str | None = topic.name or (None if topic_id is None else name_of(topic_id))
        if name:
            for partition in topic.partitions:
                key = (request.group_id, name, partition.partition_index)
                yield key, partition.committed_offset
