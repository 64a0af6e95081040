"""
The states of share-partitions that one partition of ``__share_group_state`` has (Kafka's
``ShareCoordinatorShard``).

Requests decide on records; only records change the states.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias
from uuid import UUID

from barnabas.coordination.coordinator_runtime.memory import MemoryBudget
from barnabas.coordination.coordinator_runtime.result import (
    NOTHING,
    CoordinatorResult,
    EncodedRecord,
)
from barnabas.coordination.share.coordinator.batches import combine
from barnabas.coordination.share.coordinator.records import (
    ShareRecord,
    decode_record,
    encode_record,
)
from barnabas.coordination.share.keys import SharePartitionKey
from barnabas.coordination.text_memory import text_bytes
from barnabas.protocol.errors import (
    DecodeError,
    FencedLeaderEpoch,
    FencedStateEpoch,
    InvalidRequest,
    UnknownTopicOrPartition,
)
from barnabas.protocol.internal_topics.share_state_records import (
    ShareSnapshotValue,
    ShareUpdateValue,
    StateBatch,
)
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.structs import replace, struct

logger = logging.getLogger(__name__)

ShareResult: TypeAlias = CoordinatorResult[ShareRecord]

STATE_BYTES: Final = 540
"""
The memory of the state of a share-partition, without its batches.
"""
BATCH_BYTES: Final = 150
MOST_BATCHES: Final = 2000
"""
As many offsets are in flight, see ``group.share.partition.max.record.locks``.
"""

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1
NO_COUNT: Final = -1


@struct(kw_only=True)
class StateToWrite:
    """
    What the leader of a partition has to say of it.
    """

    state_epoch: int
    leader_epoch: int
    start_offset: int  # -1: as before
    delivery_complete_count: int
    batches: Sequence[StateBatch]


class KnownState:
    """
    The state of a share-partition (Kafka ``ShareGroupOffset``), and what its next record depends
    on.
    """

    __slots__ = ("leader_epoch", "record_offset", "state_epoch", "updates", "value")

    def __init__(self, value: ShareSnapshotValue) -> None:
        self.value = value
        self.leader_epoch = value.leader_epoch
        """The highest that was seen, which fences lower ones."""
        self.state_epoch = value.state_epoch
        """Likewise."""
        self.updates = 0
        """How many followed the last snapshot that they made necessary."""
        self.record_offset = NO_OFFSET
        """Of the last snapshot, -1 if there was none."""


class ShareCoordinatorState:
    """
    The states of one shard.
    """

    def __init__(
        self,
        exists: Callable[[UUID, int], bool],
        *,
        updates_per_snapshot: int,
        memory: MemoryBudget,
    ) -> None:
        """
        Args:
            exists: whether a partition of a topic exists.
            memory: the budget of all states of the broker.
        """
        self._exists = exists
        self._updates_per_snapshot = updates_per_snapshot
        self._memory = memory
        self._held = memory.hold(0)
        self.known: dict[SharePartitionKey, KnownState] = {}
        self._last_tombstone_offset = NO_OFFSET

    def check_room(self, result: ShareResult) -> None:
        """
        See whether there is memory for new states. Those that are known may always change, within
        what the leader of a partition has to say of it.

        Raises:
            CoordinatorNotAvailable: there is none.
        """
        more = 0
        for key, value in result.records:
            if value is not None:
                batches = len(value.state_batches)
                if key not in self.known:
                    more += STATE_BYTES + text_bytes(key.group_id) + batches * BATCH_BYTES
                elif batches > MOST_BATCHES:
                    more += batches * BATCH_BYTES
        self._memory.check_room(more)

    # Requests

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int
    ) -> ShareResult:
        """
        Begin to keep the state of a share-partition, or begin it again.

        Args:
            start_offset: -1 if it depends on ``share.auto.offset.reset``.

        Raises:
            InvalidRequest: there is no partition with a negative number.
            FencedStateEpoch: a later state has begun.
            UnknownTopicOrPartition: the partition does not exist.
        """
        _check_partition(key)
        known = self.known.get(key)
        if known is not None and NO_EPOCH != state_epoch < known.state_epoch:
            raise FencedStateEpoch
        self._check_exists(key)
        snapshot = ShareSnapshotValue(
            snapshot_epoch=0 if known is None else known.value.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=0,
            start_offset=start_offset,
            delivery_complete_count=NO_COUNT if start_offset == NO_OFFSET else 0,
            create_timestamp=now_ms,
            write_timestamp=now_ms,
            state_batches=[],
        )
        return CoordinatorResult(records=[ShareRecord(key, snapshot)])

    def write(self, key: SharePartitionKey, state: StateToWrite, now_ms: int) -> ShareResult:
        """
        Add to the state of a share-partition.

        Raises:
            InvalidRequest: the state was never initialized.
            FencedLeaderEpoch, FencedStateEpoch: there is a later leader, or state.
            UnknownTopicOrPartition: the partition does not exist.
        """
        known = self._checked(key, state.leader_epoch)
        if NO_EPOCH != state.state_epoch < known.state_epoch:
            raise FencedStateEpoch
        self._check_exists(key)
        record = self._next_record(key, known.value.leader_epoch, state, now_ms)
        return CoordinatorResult(records=[record])

    def read(
        self, key: SharePartitionKey, leader_epoch: int, now_ms: int
    ) -> tuple[ShareResult, ShareSnapshotValue]:
        """
        The state of a share-partition, and the record that a new leader makes necessary.

        Raises:
            InvalidRequest: the state was never initialized.
            FencedLeaderEpoch: there is a later leader.
            UnknownTopicOrPartition: the partition does not exist.
        """
        known = self._checked(key, leader_epoch)
        self._check_exists(key)
        value = known.value
        if leader_epoch in (NO_EPOCH, known.leader_epoch):
            return NOTHING, value
        unchanged = StateToWrite(
            state_epoch=value.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=value.start_offset,
            delivery_complete_count=value.delivery_complete_count,
            batches=(),
        )
        record = self._next_record(key, leader_epoch, unchanged, now_ms)
        return CoordinatorResult(records=[record]), value

    def summary(self, key: SharePartitionKey) -> ShareSnapshotValue | None:
        """
        The state of a share-partition, None if it was never initialized.

        Raises:
            InvalidRequest: there is no partition with a negative number.
            UnknownTopicOrPartition: the partition does not exist.
        """
        _check_partition(key)
        self._check_exists(key)
        known = self.known.get(key)
        return None if known is None else known.value

    def delete(self, key: SharePartitionKey) -> ShareResult:
        """
        Keep the state of a share-partition no longer.

        Raises:
            InvalidRequest: there is no partition with a negative number.
            UnknownTopicOrPartition: the partition does not exist.
        """
        _check_partition(key)
        self._check_exists(key)
        if key not in self.known:
            return NOTHING
        return CoordinatorResult(records=[ShareRecord(key, None)])

    def _checked(self, key: SharePartitionKey, leader_epoch: int) -> KnownState:
        _check_partition(key)
        known = self.known.get(key)
        if known is None:
            raise InvalidRequest(f"{key.coordinator_key} was not initialized")
        if NO_EPOCH != leader_epoch < known.leader_epoch:
            raise FencedLeaderEpoch
        return known

    def _check_exists(self, key: SharePartitionKey) -> None:
        if not self._exists(key.topic_id, key.partition):
            raise UnknownTopicOrPartition

    def _next_record(
        self, key: SharePartitionKey, leader_epoch: int, state: StateToWrite, now_ms: int
    ) -> ShareRecord:
        """
        An update, or a snapshot if there were many updates.
        """
        known = self.known[key]
        value = known.value
        if known.updates < self._updates_per_snapshot:
            update = ShareUpdateValue(
                snapshot_epoch=value.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=state.start_offset,
                delivery_complete_count=state.delivery_complete_count,
                state_batches=combine(state.batches, state.start_offset),
            )
            return ShareRecord(key, update)
        start_offset = value.start_offset if state.start_offset == NO_OFFSET else state.start_offset
        snapshot = ShareSnapshotValue(
            snapshot_epoch=value.snapshot_epoch + 1,
            state_epoch=value.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=state.delivery_complete_count,
            create_timestamp=now_ms,
            write_timestamp=now_ms,
            state_batches=combine([*value.state_batches, *state.batches], start_offset),
        )
        return ShareRecord(key, snapshot)

    # Upkeep

    def snapshot_cold(self, now_ms: int, interval_ms: int) -> ShareResult:
        """
        Snapshots of all states whose last one is older than the interval, so that older records can
        be deleted; none if all states have such snapshots.
        """
        states = self.known.values()
        if all(each.value.create_timestamp != each.value.write_timestamp for each in states):
            return NOTHING
        records = [
            ShareRecord(
                key,
                replace(
                    known.value,
                    snapshot_epoch=known.value.snapshot_epoch + 1,
                    write_timestamp=now_ms,
                ),
            )
            for key, known in self.known.items()
            if now_ms - known.value.write_timestamp >= interval_ms
        ]
        return CoordinatorResult(records=records, is_atomic=False)

    def forget_topics(self, topic_ids: Sequence[UUID]) -> ShareResult:
        """
        Keep no states of deleted topics.
        """
        deleted = frozenset(topic_ids)
        records = [ShareRecord(key, None) for key in self.known if key.topic_id in deleted]
        return CoordinatorResult(records=records, is_atomic=False)

    @property
    def first_needed_offset(self) -> int:
        """
        The offset below which no record is needed (Kafka ``ShareCoordinatorOffsetsManager``).
        """
        needed = [known.record_offset for known in self.known.values()]
        return min(needed, default=self._last_tombstone_offset)

    # Records

    @staticmethod
    def encode(record: ShareRecord) -> EncodedRecord:
        """
        The key and the value of a record.
        """
        return encode_record(record)

    def apply(self, record: ShareRecord, record_offset: int, producer_id: int) -> None:
        """
        Apply a record that is in the log.
        """
        key, value = record
        before = self._bytes_of(key)
        self._apply(key, value, record_offset)
        self._held.grow(self._bytes_of(key) - before)

    def _bytes_of(self, key: SharePartitionKey) -> int:
        known = self.known.get(key)
        if known is None:
            return 0
        return STATE_BYTES + text_bytes(key.group_id) + len(known.value.state_batches) * BATCH_BYTES

    def _apply(
        self,
        key: SharePartitionKey,
        value: ShareSnapshotValue | ShareUpdateValue | None,
        record_offset: int,
    ) -> None:
        if value is None:
            self.known.pop(key, None)
            self._last_tombstone_offset = record_offset
        elif isinstance(value, ShareSnapshotValue):
            self._apply_snapshot(key, value, record_offset)
        else:
            self._apply_update(key, value)

    def _apply_snapshot(
        self, key: SharePartitionKey, value: ShareSnapshotValue, record_offset: int
    ) -> None:
        known = self.known.get(key)
        if known is None:
            known = self.known[key] = KnownState(value)
        known.value = value
        known.leader_epoch = max(known.leader_epoch, value.leader_epoch)
        known.state_epoch = max(known.state_epoch, value.state_epoch)
        known.record_offset = record_offset
        if known.updates >= self._updates_per_snapshot:
            known.updates = 0

    def _apply_update(self, key: SharePartitionKey, value: ShareUpdateValue) -> None:
        known = self.known.get(key)
        if known is None:
            # Its snapshot is lost. Kafka begins with what there is.
            first = ShareSnapshotValue(
                snapshot_epoch=value.snapshot_epoch,
                state_epoch=0,
                leader_epoch=value.leader_epoch,
                start_offset=value.start_offset,
                delivery_complete_count=value.delivery_complete_count,
                create_timestamp=0,
                write_timestamp=0,
                state_batches=value.state_batches,
            )
            known = self.known[key] = KnownState(first)
        else:
            before = known.value
            start_offset = value.start_offset
            if start_offset == NO_OFFSET:
                start_offset = before.start_offset
            leader_epoch = value.leader_epoch
            known.value = replace(
                before,
                leader_epoch=before.leader_epoch if leader_epoch == NO_EPOCH else leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=value.delivery_complete_count,
                state_batches=combine([*before.state_batches, *value.state_batches], start_offset),
            )
        known.leader_epoch = max(known.leader_epoch, value.leader_epoch)
        known.updates += 1

    def replay(self, batch: RecordBatch) -> None:
        """
        Apply the records of a batch; control batches mean nothing in this topic.

        Raises:
            DecodeError: see ``replay_record``.
        """
        if not batch.is_control:
            for record in batch.records():
                self.replay_record(record.key, record.value, record.offset)

    def replay_record(self, key: bytes | None, value: bytes | None, record_offset: int) -> None:
        """
        Decode a record, and apply it.

        Raises:
            DecodeError: no coordinator writes this record.
        """
        try:
            record = decode_record(key, value)
        except DecodeError as error:
            error.add_note(f"record at offset {record_offset}, key {key!r}")
            raise
        if record is None:
            logger.warning("The record at offset %d is of no known type: %r", record_offset, key)
        else:
            self.apply(record, record_offset, -1)

    def loaded(self, now_ms: int) -> None:
        """
        Do nothing: no state waits for anything.
        """

    def unloaded(self, now_ms: int) -> None:
        """
        Do nothing: no request waits here.
        """


def _check_partition(key: SharePartitionKey) -> None:
    if key.partition < 0:
        raise InvalidRequest("The partition must not be negative")
