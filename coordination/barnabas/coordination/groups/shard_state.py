"""
The state of one partition of ``__consumer_offsets``.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from typing import Final

from barnabas.coordination.config.coordinators import CoordinationOptions
from barnabas.coordination.config.groups import GroupConfigOf
from barnabas.coordination.coordinator_runtime.executor import Executor
from barnabas.coordination.coordinator_runtime.result import NOTHING, EncodedRecord
from barnabas.coordination.coordinator_runtime.timers import Timers
from barnabas.coordination.groups.answers import join_error, sync_error
from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.classic.joining import Joining
from barnabas.coordination.groups.classic.membership import Membership
from barnabas.coordination.groups.classic.rebalance import Rebalance
from barnabas.coordination.groups.classic.state import GroupState
from barnabas.coordination.groups.classic_protocol import ClassicProtocol
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.consumer.protocol import ConsumerProtocol
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.kept_memory import KeptState
from barnabas.coordination.groups.member_memory import HeldRecords
from barnabas.coordination.groups.memory import GroupMemory
from barnabas.coordination.groups.modern.records import ModernRecord, Role
from barnabas.coordination.groups.modern.topics import SubscribedTopics
from barnabas.coordination.groups.offsets.committing import Committing
from barnabas.coordination.groups.offsets.deleting import Deleting
from barnabas.coordination.groups.offsets.offsets import OffsetStore
from barnabas.coordination.groups.records import (
    CoordinatorRecord,
    GroupRecord,
    GroupResult,
    OffsetRecord,
    decode_record,
    encode_record,
)
from barnabas.coordination.groups.share.group import ShareGroup
from barnabas.coordination.groups.share.heartbeats import ShareHeartbeats
from barnabas.coordination.groups.streams.group import StreamsGroup
from barnabas.coordination.groups.streams.protocol import StreamsProtocol
from barnabas.coordination.groups.timeouts import Timeout
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import NO_PRODUCER_ID, RecordBatch
from barnabas.protocol.records.control import ControlRecordType

log = logging.getLogger(__name__)

_ROLES_OF_SUBSCRIPTIONS: Final = frozenset({Role.EPOCH, Role.MEMBER, Role.REGEX, Role.TOPOLOGY})
"""
The records after which a group may subscribe to other topics, or not exist.
"""


class ShardState:
    """
    The groups and offsets of one partition, and the handlers of their requests.

    Loading a partition is the ``replay`` of all its batches, then ``loaded``. Afterwards ``apply``
    follows each append, unless ``GroupResult.replay_records`` is false.
    """

    def __init__(
        self,
        timers: Timers,
        options: CoordinationOptions,
        *,
        executor: Executor,
        topics: SubscribedTopics,
        config_of: GroupConfigOf,
        memory: GroupMemory,
    ) -> None:
        """
        Args:
            topics: those of the cluster, common to all partitions.
            config_of: returns the configuration of a group.
            memory: the budgets of all groups of the broker.
        """
        self._timers = timers
        self._options = options
        self._executor = executor
        self._topics = topics
        self._held = HeldRecords(memory.members)
        self._is_loaded = False
        self.groups = Groups(memory.kept)
        self.offsets = OffsetStore(memory.kept)
        self._kept = KeptState(
            memory.kept,
            self.groups,
            self.offsets,
            most_metadata=options.offset_metadata_max_bytes,
        )
        self.rebalance = Rebalance(self.groups, timers, options)
        self.consumers = ConsumerProtocol(
            self.groups,
            timers=timers,
            executor=executor,
            topics=topics,
            config_of=config_of,
            rebalance=self.rebalance,
            options=options,
        )
        self.shares = ShareHeartbeats(
            self.groups, timers=timers, topics=topics, config_of=config_of, options=options
        )
        self.streams = StreamsProtocol(
            self.groups, timers=timers, topics=topics, config_of=config_of, options=options
        )
        self.classic = ClassicProtocol(
            self.groups,
            Joining(self.groups, self.rebalance, options, memory.members),
            Membership(self.groups, self.rebalance, memory.members),
            self.consumers.classic_members,
        )
        self.committing = Committing(self.groups, self.rebalance, topics.topics, options)
        self.deleting = Deleting(self.groups, self.offsets, options)

    @staticmethod
    def encode(record: CoordinatorRecord) -> EncodedRecord:
        """
        The key and the value of a record.
        """
        return encode_record(record)

    def check_room(self, result: GroupResult) -> None:
        """
        See whether the broker has memory for what clients want it to keep.

        Raises:
            CoordinatorNotAvailable: it has not.
        """
        self._held.check_room(result.records)
        self._kept.check_room(result.records, result.producer.producer_id)

    def forget_stranger(self, group_id: str, member_id: str) -> None:
        """
        End the timeouts that a heartbeat has begun whose records were refused, unless the sender is
        a member all the same.
        """
        group = self.groups.get(group_id)
        if group is None or member_id not in group.members:
            for timeout in (Timeout.SESSION, Timeout.REBALANCE):
                self._timers.cancel((timeout, group_id, member_id))

    def apply(self, record: CoordinatorRecord, record_offset: int, producer_id: int) -> None:
        """
        Apply a record that is in the log.

        Raises:
            ValueError: the record contradicts earlier ones.
        """
        match record:
            case OffsetRecord(group_id=group_id, value=value):
                if value is not None:
                    self.groups.hold_offsets(group_id, value.commit_timestamp)
                self.offsets.apply(record, record_offset, producer_id)
            case GroupRecord():
                self.groups.apply_classic(record)
            case ModernRecord():
                self.groups.apply_modern(record)
                if self._is_loaded:
                    self._held.apply(record)
                    if record.role in _ROLES_OF_SUBSCRIPTIONS:
                        self._follow_topics(record.group_id)

    def replay(self, batch: RecordBatch) -> None:
        """
        Apply the records of a batch, or end the transaction whose marker it has.

        Raises:
            DecodeError, KafkaError, ValueError: no coordinator writes this batch.
        """
        if batch.is_control:
            for marker in batch.records():
                kind = ControlRecordType.of(marker.key)
                if kind in {ControlRecordType.ABORT, ControlRecordType.COMMIT}:
                    is_commit = kind is ControlRecordType.COMMIT
                    self.offsets.end_transaction(batch.producer_id, committed=is_commit)
            return
        for stored in batch.records():
            self.replay_record(stored.key, stored.value, stored.offset, batch.producer_id)

    def replay_record(
        self,
        key: bytes | None,
        value: bytes | None,
        record_offset: int,
        producer_id: int = NO_PRODUCER_ID,
    ) -> None:
        """
        Decode a record, and apply it.

        Raises:
            DecodeError, ValueError: no coordinator writes this record.
        """
        try:
            record = decode_record(key, value)
            if record is not None:
                self.apply(record, record_offset, producer_id)
                return
        except Exception as error:
            error.add_note(f"record at offset {record_offset}, key {key!r}")
            raise
        log.warning("The record at offset %d is of no known type: %r", record_offset, key)

    def loaded(self, now_ms: int) -> None:
        """
        Begin the sessions of all members: the log is replayed.
        """
        self._is_loaded = True
        for group in self.groups:
            match group:
                case ConsumerGroup():
                    self.consumers.sessions.loaded(group)
                case ShareGroup():
                    self.shares.sessions.loaded(group)
                case StreamsGroup():
                    self.streams.sessions.loaded(group)
                case _:
                    self._loaded_classic(group, now_ms)
                    continue
            self._topics.follow(group)

    def _loaded_classic(self, group: ClassicGroup, now_ms: int) -> None:
        self.rebalance.watch_all(group)
        if len(group.members) > self._options.group_max_size:
            # The limit was lowered: the last members to rejoin are refused.
            changes = self.rebalance.begin(group, "group.max.size was lowered", now_ms)
            assert changes is NOTHING, "no member has joined yet"

    def unloaded(self, now_ms: int) -> None:
        """
        Answer all parked requests with ``NOT_COORDINATOR``: the shard resigns.
        """
        error = ErrorCode.NOT_COORDINATOR
        self._executor.cancel_all()
        for group in self.groups:
            self._topics.unfollow(group.group_id)
            if isinstance(group, ClassicGroup):
                group.become(GroupState.DEAD, now_ms)
                for member in group.members.values():
                    group.answer_join(member, join_error(member.member_id, error))
                    group.answer_sync(member, sync_error(error))

    def _follow_topics(self, group_id: str) -> None:
        group = self.groups.get(group_id)
        if not isinstance(group, ClassicGroup | None):
            self._topics.follow(group)
        else:
            self._topics.unfollow(group_id)
            self.streams.deleted(group_id)
