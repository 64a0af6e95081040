"""
OffsetCommit, OffsetFetch and OffsetDelete, and whatever else deletes offsets.

Follows Kafka's ``OffsetMetadataManager``, the half that answers requests. Whether topics and
partitions exist has been seen to by the handlers; what arrives here has both name and id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Final, TypeAlias, TypeVar
from uuid import UUID

from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import (
    ErrorCode,
    GroupIdNotFound,
    IllegalGeneration,
    KafkaError,
    StaleMemberEpoch,
)
from barnabas.protocol.internal_topics.group_records import OffsetCommitValue
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.protocol.named_tuple import NamedTuple
from barnabas.server.config.coordinators import GroupOptions
from barnabas.server.groups.changes import Changes, Producer
from barnabas.server.groups.classic.group import ClassicGroup
from barnabas.server.groups.classic.rebalance import Rebalance
from barnabas.server.groups.classic.state import GroupState
from barnabas.server.groups.group_type import GroupType
from barnabas.server.groups.groups import Group, Groups
from barnabas.server.groups.offsets.answers import NO_METADATA, no_offset
from barnabas.server.groups.offsets.expiry import expired_offsets
from barnabas.server.groups.offsets.offsets import CommittedOffset, OffsetStore
from barnabas.server.groups.persistence import group_tombstones
from barnabas.server.groups.records import NO_EXPIRY, OffsetRecord, Record, encode_record
from barnabas.server.turns import Steps, map_in_steps
from barnabas.storage.producers.entry import VerificationGuard

DEFAULT_RETENTION: Final = -1
GROUP_ID_NOT_FOUND_SINCE: Final = 9

CommittedPartition: TypeAlias = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition


T = TypeVar("T")

GROUPS_AT_ONCE: Final = 200
"""
How many groups are looked through before others may come between.
"""


class DeletedTopic(NamedTuple):
    """
    A topic that is no more.
    """

    name: str
    topic_id: UUID


class Committing:
    """
    Takes requests about offsets to the groups of one partition.
    """

    def __init__(
        self, groups: Groups, offsets: OffsetStore, rebalance: Rebalance, options: GroupOptions
    ) -> None:
        self._groups = groups
        self._offsets = offsets
        self._rebalance = rebalance
        self._options = options

    # OffsetCommit

    def commit(
        self, request: OffsetCommitRequest, version: int, now_ms: int
    ) -> Steps[tuple[Changes, OffsetCommitResponse]]:
        """
        Commit offsets.

        Raises:
            KafkaError: this committer may not, as of now.
        """
        self._validate_commit(request, version)
        expires = request.retention_time_ms != DEFAULT_RETENTION
        expire_timestamp = _sum(now_ms, request.retention_time_ms) if expires else NO_EXPIRY
        records: list[Record] = []
        topics: list[OffsetCommitResponseTopic] = []
        for topic in request.topics:
            # A record with an expiry has no room for the id.
            topic_id = ZERO_UUID if expires else topic.topic_id
            partitions: list[OffsetCommitResponsePartition] = []
            for partition in topic.partitions:
                yield
                index = partition.partition_index
                error = self._metadata_error(partition)
                if error is ErrorCode.NONE:
                    value = _value(partition, now_ms, expire_timestamp, topic_id)
                    records.append(OffsetRecord(request.group_id, topic.name, index, value))
                partitions.append(
                    OffsetCommitResponsePartition(partition_index=index, error_code=error)
                )
            topics.append(
                OffsetCommitResponseTopic(
                    name=topic.name, topic_id=topic.topic_id, partitions=partitions
                )
            )
        encoded = yield from map_in_steps(encode_record, records)
        # Others may have come between: the members of the group may be others by now.
        self._validate_commit(request, version)
        if not records:
            # The group comes into being all the same, as in Kafka.
            self._groups.hold_offsets(request.group_id, now_ms)
        return Changes(records=records, encoded=encoded), OffsetCommitResponse(topics=topics)

    def commit_in_transaction(
        self,
        request: TxnOffsetCommitRequest,
        guard: VerificationGuard,
        version: int,
        now_ms: int,
    ) -> Steps[tuple[Changes, TxnOffsetCommitResponse]]:
        """
        Commit offsets that count once the transaction of their producer is committed.

        Args:
            guard: what the log handed out when the coordinator of transactions was asked.

        Raises:
            KafkaError: this committer may not, as of now.
        """
        self._validate_transactional_commit(request, version)
        records: list[Record] = []
        topics: list[TxnOffsetCommitResponseTopic] = []
        for topic in request.topics:
            partitions: list[TxnOffsetCommitResponsePartition] = []
            for partition in topic.partitions:
                yield
                index = partition.partition_index
                error = self._metadata_error(partition)
                if error is ErrorCode.NONE:
                    # As in Kafka, whose request has no topic ids either.
                    value = _value(partition, now_ms, NO_EXPIRY, ZERO_UUID)
                    records.append(OffsetRecord(request.group_id, topic.name, index, value))
                partitions.append(
                    TxnOffsetCommitResponsePartition(partition_index=index, error_code=error)
                )
            topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions))
        encoded = yield from map_in_steps(encode_record, records)
        # Others may have come between.
        self._validate_transactional_commit(request, version)
        if not records:
            self._groups.hold_offsets(request.group_id, now_ms)
        producer = Producer(request.producer_id, request.producer_epoch)
        changes = Changes(records=records, encoded=encoded, producer=producer, guard=guard)
        return changes, TxnOffsetCommitResponse(topics=topics)

    def _validate_transactional_commit(self, request: TxnOffsetCommitRequest, version: int) -> None:
        group = self._groups.get(request.group_id)
        if group is None:
            if request.generation_id < 0:
                return
            raise IllegalGeneration
        try:
            group.validate_commit(
                request.member_id,
                request.group_instance_id,
                request.generation_id,
                version=version,
                is_transactional=True,
            )
        except StaleMemberEpoch as error:
            raise IllegalGeneration from error

    def _validate_commit(self, request: OffsetCommitRequest, version: int) -> None:
        generation_id = request.generation_id_or_member_epoch
        group = self._groups.get(request.group_id)
        if group is None:
            if generation_id < 0:
                # The admin client, or a consumer that assigns partitions to itself: the group comes
                # into being with its first offset.
                return
            if version >= GROUP_ID_NOT_FOUND_SINCE:
                raise GroupIdNotFound(f"Group {request.group_id} not found.")
            raise IllegalGeneration
        group.validate_commit(
            request.member_id, request.group_instance_id, generation_id, version=version
        )
        if isinstance(group, ClassicGroup) and group.state in {
            GroupState.STABLE,
            GroupState.PREPARING_REBALANCE,
        }:
            self._rebalance.prolong_session(group, group.members[request.member_id])

    def _metadata_error(self, partition: CommittedPartition) -> ErrorCode:
        metadata = partition.committed_metadata
        if metadata is None:
            return ErrorCode.NONE
        most = self._options.offset_metadata_max_bytes
        # Kafka means bytes and counts UTF-16.
        is_too_long = len(metadata) > most or (
            not metadata.isascii() and len(metadata.encode("utf-16-le")) > 2 * most
        )
        return ErrorCode.OFFSET_METADATA_TOO_LARGE if is_too_long else ErrorCode.NONE

    # OffsetFetch

    def fetch(
        self, request: OffsetFetchRequestGroup, *, require_stable: bool
    ) -> Steps[OffsetFetchResponseGroup]:
        """
        Read committed offsets: the ones asked for, or all of them.

        What was never committed is no error: its offset is -1.

        Raises:
            KafkaError: the member is none, or is behind.
        """
        group_id = request.group_id
        try:
            self._groups.expect(group_id).validate_fetch(request.member_id, request.member_epoch)
            committed = self._offsets.committed.of_group(group_id)
        except GroupIdNotFound:
            committed = {}
        unstable = self._offsets.pending_partitions(group_id) if require_stable else {}
        topics: list[OffsetFetchResponseTopics] = []
        if request.topics is None:
            for name, offsets in tuple(committed.items()):
                partitions = []
                for index, offset in tuple(offsets.items()):
                    yield
                    is_unstable = (name, index) in unstable
                    partitions.append(_fetched(index, offset, is_unstable=is_unstable))
                topics.append(_fetched_topic(name, ZERO_UUID, partitions))
        else:
            nothing: Mapping[int, CommittedOffset] = {}
            for topic in request.topics:
                yield
                offsets = committed.get(topic.name, nothing)
                partitions = []
                for index in topic.partition_indexes:
                    yield
                    known = _of_topic_id(offsets.get(index), topic.topic_id)
                    is_unstable = (topic.name, index) in unstable
                    partitions.append(_fetched(index, known, is_unstable=is_unstable))
                topics.append(_fetched_topic(topic.name, topic.topic_id, partitions))
        return OffsetFetchResponseGroup(group_id=group_id, topics=topics, error_code=ErrorCode.NONE)

    # OffsetDelete, DeleteGroups, and deletion for other reasons

    def delete(self, request: OffsetDeleteRequest) -> Steps[tuple[Changes, OffsetDeleteResponse]]:
        """
        Delete offsets of topics that nobody in the group subscribes to.

        Raises:
            GroupIdNotFound: there is no such group.
            NonEmptyGroup: nobody knows what its members subscribe to.
        """
        group = self._groups.expect(request.group_id)
        group.validate_offset_delete()
        records: list[Record] = []
        topics: list[OffsetDeleteResponseTopic] = []
        for topic in request.topics:
            yield
            is_subscribed = group.is_subscribed_to(topic.name)
            error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed else ErrorCode.NONE
            indexes = [partition.partition_index for partition in topic.partitions]
            if not is_subscribed:
                for index in indexes:
                    yield
                    if self._offsets.is_known(group.group_id, topic.name, index):
                        records.append(OffsetRecord(group.group_id, topic.name, index, None))
            partitions = yield from map_in_steps(partial(_deleted, error), indexes)
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
        encoded = yield from map_in_steps(encode_record, records)
        # Others may have come between: the group may have members by now.
        self._groups.expect(request.group_id).validate_offset_delete()
        response = OffsetDeleteResponse(error_code=ErrorCode.NONE, topics=topics)
        return Changes(records=records, encoded=encoded), response

    def delete_groups(
        self, group_ids: Iterable[str]
    ) -> tuple[Changes, list[tuple[str, ErrorCode]]]:
        """
        Delete groups without members, and all their offsets; tell for each what became of it.
        """
        records: list[Record] = []
        results: list[tuple[str, ErrorCode]] = []
        for group_id in group_ids:
            try:
                group = self._groups.expect(group_id)
                group.validate_delete()
            except KafkaError as error:
                results.append((group_id, error.code))
                continue
            records += self._all_offsets(group)
            records += group_tombstones(group)
            results.append((group_id, ErrorCode.NONE))
        return Changes(records=records), results

    def _all_offsets(self, group: Group) -> list[OffsetRecord]:
        group_id = group.group_id
        committed = self._offsets.committed.of_group(group_id)
        partitions = [(topic, index) for topic, offsets in committed.items() for index in offsets]
        for topic, index in self._offsets.pending_partitions(group_id):
            if index not in committed.get(topic, {}):
                partitions.append((topic, index))
        return [OffsetRecord(group_id, topic, index, None) for topic, index in partitions]

    def forget_topics(self, topics: Iterable[DeletedTopic]) -> Iterator[Changes]:
        """
        Delete the offsets of topics that are no more, those of some groups at a time. Others may
        come between.

        A topic of the same name may exist by now: offsets that name another topic id stay.
        """
        ids = dict(topics)
        for groups in _some(self._offsets.groups()):
            yield Changes(
                records=[
                    OffsetRecord(group_id, topic, partition, None)
                    for group_id, offsets in groups
                    for topic, partitions in offsets.items()
                    if topic in ids
                    for partition, offset in partitions.items()
                    if offset.topic_id in {ZERO_UUID, ids[topic]}
                ],
                divisible=True,
            )

    def expire(self, now_ms: int) -> Iterator[Changes]:
        """
        Delete offsets past their retention, and empty groups that are left without any, some groups
        at a time. Others may come between.
        """
        for groups in _some(self._groups):
            records: list[Record] = []
            for group in groups:
                if self._groups.get(group.group_id) is group:
                    records += self._expired(group, now_ms)
            yield Changes(records=records, divisible=True)

    def _expired(self, group: Group, now_ms: int) -> list[Record]:
        if group.type is GroupType.SHARE:
            return []
        retention_ms = self._options.offsets_retention_minutes * 60_000
        records: list[Record] = []
        expired, is_all = expired_offsets(
            group, self._offsets, now_ms=now_ms, retention_ms=retention_ms
        )
        records += expired
        if is_all and group.is_empty:
            records += group_tombstones(group)
        return records


def _some(items: Iterable[T]) -> Iterator[tuple[T, ...]]:
    """
    The *items*, ``GROUPS_AT_ONCE`` at a time.
    """
    left = iter(items)
    while some := tuple(islice(left, GROUPS_AT_ONCE)):
        yield some


def _deleted(error: ErrorCode, index: int) -> OffsetDeleteResponsePartition:
    return OffsetDeleteResponsePartition(partition_index=index, error_code=error)


def _sum(time_ms: int, period_ms: int) -> int:
    """
    As a sum of Java's longs: what is too far ahead has been long ago.
    """
    return (time_ms + period_ms + 2**63) % 2**64 - 2**63


def _value(
    partition: CommittedPartition, now_ms: int, expire_timestamp: int, topic_id: UUID
) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or NO_METADATA,
        commit_timestamp=now_ms,
        expire_timestamp=expire_timestamp,
        topic_id=topic_id,
    )


def _of_topic_id(offset: CommittedOffset | None, topic_id: UUID) -> CommittedOffset | None:
    """
    The offset, unless it is known to belong to an earlier topic of the same name.
    """
    if offset is None or ZERO_UUID in {offset.topic_id, topic_id} or offset.topic_id == topic_id:
        return offset
    return None


def _fetched(
    partition: int, offset: CommittedOffset | None, *, is_unstable: bool
) -> OffsetFetchResponsePartitions:
    if is_unstable:
        return no_offset(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    if offset is None:
        return no_offset(partition)
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        error_code=ErrorCode.NONE,
    )


def _fetched_topic(
    name: str, topic_id: UUID, partitions: list[OffsetFetchResponsePartitions]
) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions)
