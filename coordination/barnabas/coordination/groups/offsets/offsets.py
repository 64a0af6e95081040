"""
Committed offsets, and pending ones of open transactions.

::

                         outside a transaction
    OffsetCommit record ------------------------------------------------> committed
          |                                                                   ^
          |  in a transaction                        COMMIT marker, unless    |
          +-------------------> pending, by producer ------------------------ +
                                          |           a later commit is there
                                          |  ABORT marker
                                          +----------------> gone

Only records change them, so that they are the same after a restart (the replay in Kafka's
``OffsetMetadataManager``).
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Final
from uuid import UUID

from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.groups.records import OffsetRecord
from barnabas.coordination.text_memory import text_bytes
from barnabas.protocol.records.batch import NO_PRODUCER_ID
from barnabas.protocol.structs import NamedTuple

OFFSET_BYTES: Final = 540
"""
The memory of an offset, without its metadata.
"""
TOPIC_BYTES: Final = 200
"""
The memory of a topic of which a group has offsets, without its name.
"""
PENDING_BYTES: Final = 190
"""
What an offset of an open transaction takes beside that.
"""
PRODUCER_BYTES: Final = 600
"""
The memory of a producer with offsets in an open transaction.
"""


NO_PRODUCERS: Final[Set[int]] = frozenset()


class CommittedOffset(NamedTuple):
    """
    The committed offset of a group in one partition.
    """

    offset: int
    leader_epoch: int  # -1: the client did not say
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int  # -1: as the broker's retention has it
    topic_id: UUID  # zero: the writer did not say
    record_offset: int  # of the record, in the partition of the coordinator


class Offsets:
    """
    Offsets by group, topic and partition; no group or topic is without offsets.
    """

    __slots__ = ("_groups", "_held", "_offset_bytes")

    def __init__(
        self, memory: MemoryBudget, *, bytes_of_all: int = 0, offset_bytes: int = OFFSET_BYTES
    ) -> None:
        """
        Args:
            bytes_of_all: what these offsets take beside each offset and topic.
            offset_bytes: what one of these offsets takes, without its metadata.
        """
        self._groups: dict[str, dict[str, dict[int, CommittedOffset]]] = {}
        self._offset_bytes = offset_bytes
        self._held = memory.hold(bytes_of_all)

    def __iter__(self) -> Iterator[tuple[str, str, int, CommittedOffset]]:
        for group_id, topics in self._groups.items():
            for topic, partitions in topics.items():
                for partition, offset in partitions.items():
                    yield group_id, topic, partition, offset

    def __bool__(self) -> bool:
        return bool(self._groups)

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, CommittedOffset]]:
        """
        The offsets of a group, by topic and partition.
        """
        return self._groups.get(group_id, {})

    def groups(self) -> Iterator[tuple[str, Mapping[str, Mapping[int, CommittedOffset]]]]:
        """
        Each group with its offsets, by topic and partition. Groups may be changed between two.
        """
        yield from tuple(self._groups.items())

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self._groups.get(group_id, {}).get(topic, {}).get(partition)

    def put(self, group_id: str, topic: str, partition: int, offset: CommittedOffset) -> None:
        topics = self._groups.setdefault(group_id, {})
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
            self._held.grow(TOPIC_BYTES + text_bytes(topic))
        before = partitions.get(partition)
        partitions[partition] = offset
        if before is None:
            self._held.grow(self._offset_bytes + text_bytes(offset.metadata))
        elif offset.metadata or before.metadata:
            self._held.grow(text_bytes(offset.metadata) - text_bytes(before.metadata))

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """
        Remove one offset; without effect if it does not exist.
        """
        topics = self._groups.get(group_id, {})
        partitions = topics.get(topic, {})
        offset = partitions.pop(partition, None)
        if offset is None:
            return
        self._held.grow(-self._offset_bytes - text_bytes(offset.metadata))
        if not partitions:
            del topics[topic]
            self._held.grow(-TOPIC_BYTES - text_bytes(topic))
        if not topics:
            del self._groups[group_id]


class OffsetStore:
    """
    All offsets of one partition of ``__consumer_offsets``.

    Invariants:

    1. A partition of a group is in ``_open`` under the producers that have a pending offset for it,
       and only those.
    2. Of two commits the record with the higher offset counts, in a transaction or not, so that
       the result does not depend on compaction.
    """

    __slots__ = ("_memory", "_open", "_pending", "committed")

    def __init__(self, memory: MemoryBudget) -> None:
        self._memory = memory
        self.committed = Offsets(memory)
        self._pending: dict[int, Offsets] = {}  # by producer id
        self._open: dict[str, dict[tuple[str, int], set[int]]] = {}  # by group

    def pending_partitions(self, group_id: str) -> Mapping[tuple[str, int], Set[int]]:
        """
        The partitions with pending offsets, and the producers of these.
        """
        return self._open.get(group_id, {})

    def groups(self) -> Iterator[tuple[str, Mapping[str, Mapping[int, CommittedOffset]]]]:
        """
        Each group with its offsets, by topic and partition.

        Pending offsets come first, since a transaction that ends meanwhile commits them.
        """
        for offsets in tuple(self._pending.values()):
            yield from offsets.groups()
        yield from self.committed.groups()

    def is_known(self, group_id: str, topic: str, partition: int) -> bool:
        """
        Whether there is a committed or pending offset to delete.
        """
        return self.committed.get(group_id, topic, partition) is not None or (
            topic,
            partition,
        ) in self.pending_partitions(group_id)

    def growth(self, records: Iterable[OffsetRecord], producer_id: int) -> int:
        """
        The memory that records of a producer's transaction, or of none (-1), take beyond what there
        is, in bytes. An offset that moves takes no more, also once in a transaction.
        """
        more = 0
        topics: set[tuple[str, str]] = set()
        in_transaction = producer_id != NO_PRODUCER_ID
        for group_id, topic, partition, value in records:
            if value is None:
                continue
            known = self.committed.get(group_id, topic, partition)
            producers = self.pending_partitions(group_id).get((topic, partition), NO_PRODUCERS)
            if known is not None and not (in_transaction and producers - {producer_id}):
                more += max(0, text_bytes(value.metadata) - text_bytes(known.metadata))
                continue
            more += OFFSET_BYTES + text_bytes(value.metadata)
            if (group_id, topic) not in topics:
                topics.add((group_id, topic))
                more += TOPIC_BYTES + text_bytes(topic)
            if in_transaction:
                more += PENDING_BYTES
        if more and in_transaction and producer_id not in self._pending:
            more += PRODUCER_BYTES
        return more

    def apply(self, record: OffsetRecord, record_offset: int, producer_id: int) -> None:
        """
        Apply a record of a producer's transaction, or of none (-1).
        """
        group_id, topic, partition, value = record
        if value is None:
            self.committed.remove(group_id, topic, partition)
            for producer in self._close(group_id, topic, partition):
                self._pending[producer].remove(group_id, topic, partition)
            return
        offset = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            value.topic_id,
            record_offset,
        )
        if producer_id == NO_PRODUCER_ID:
            self.committed.put(group_id, topic, partition, offset)
            return
        pending = self._pending.get(producer_id)
        if pending is None:
            pending = Offsets(
                self._memory,
                bytes_of_all=PRODUCER_BYTES,
                offset_bytes=OFFSET_BYTES + PENDING_BYTES,
            )
            self._pending[producer_id] = pending
        pending.put(group_id, topic, partition, offset)
        opened = self._open.setdefault(group_id, {})
        opened.setdefault((topic, partition), set()).add(producer_id)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """
        Commit or drop the pending offsets of a producer: the marker of its transaction is written.
        """
        for group_id, topic, partition, offset in self._pending.pop(producer_id, ()):
            producers = self._open[group_id][topic, partition]
            producers.discard(producer_id)
            if not producers:
                self._close(group_id, topic, partition)
            if committed:
                known = self.committed.get(group_id, topic, partition)
                if known is None or offset.record_offset > known.record_offset:
                    self.committed.put(group_id, topic, partition, offset)

    def _close(self, group_id: str, topic: str, partition: int) -> set[int]:
        opened = self._open.get(group_id, {})
        producers = opened.pop((topic, partition), set())
        if group_id in self._open and not opened:
            del self._open[group_id]
        return producers
