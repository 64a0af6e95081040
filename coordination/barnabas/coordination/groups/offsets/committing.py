"""
OffsetCommit and TxnOffsetCommit (Kafka's ``OffsetMetadataManager``).

The handlers have found out which topics and partitions exist: a request here has both the name and
the id of each topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from functools import partial
from typing import Final, Protocol, TypeAlias, TypeVar
from uuid import UUID

from barnabas.coordination.config.coordinators import GroupOptions
from barnabas.coordination.coordinator_runtime.producer import ProducerIdAndEpoch
from barnabas.coordination.coordinator_runtime.result import CoordinatorResult
from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.classic.rebalance import Rebalance
from barnabas.coordination.groups.classic.state import GroupState
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.modern.topics import ClusterTopics
from barnabas.coordination.groups.offsets.answers import NO_METADATA
from barnabas.coordination.groups.records import (
    NO_EXPIRY,
    GroupResult,
    OffsetRecord,
    encode_record,
)
from barnabas.coordination.steps import checkpoint, map_in_turns
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import (
    ErrorCode,
    GroupIdNotFound,
    IllegalGeneration,
    StaleMemberEpoch,
)
from barnabas.protocol.internal_topics.group_records import OffsetCommitValue
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.storage.producers.entry import VerificationGuard

DEFAULT_RETENTION: Final = -1
GROUP_ID_NOT_FOUND_SINCE: Final = 9

CommittedTopic: TypeAlias = OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic
CommittedPartition: TypeAlias = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition

P = TypeVar("P", OffsetCommitResponsePartition, TxnOffsetCommitResponsePartition)


class CommitCheck(Protocol):
    """
    Decides which offsets a member may commit with an epoch that it has left (KIP-1251).
    """

    def check_all(self, partitions: Iterable[tuple[str, UUID, int]]) -> None:
        """
        See whether the member may commit all of these: topics by name and id, and partitions.

        Raises:
            StaleMemberEpoch, IllegalGeneration: it may not.
        """


class Committing:
    """
    Commits offsets of the groups of one partition.
    """

    def __init__(
        self,
        groups: Groups,
        rebalance: Rebalance,
        topics: ClusterTopics,
        options: GroupOptions,
    ) -> None:
        self._groups = groups
        self._rebalance = rebalance
        self._topics = topics
        self._options = options

    async def commit(
        self, request: OffsetCommitRequest, version: int, now_ms: int
    ) -> tuple[GroupResult, OffsetCommitResponse]:
        """
        Commit offsets.

        Raises:
            KafkaError: the sender may not commit to the group now.
        """
        self._validate(request, version)
        expires = request.retention_time_ms != DEFAULT_RETENTION
        value = partial(
            _value,
            now_ms=now_ms,
            expire_timestamp=_sum(now_ms, request.retention_time_ms) if expires else NO_EXPIRY,
        )
        records: list[OffsetRecord] = []
        topics = []
        for topic in request.topics:
            # A record with an expiry has no field for the topic id.
            of_topic = partial(value, topic_id=ZERO_UUID if expires else topic.topic_id)
            partitions = await self._examine(
                request.group_id, topic, of_topic, OffsetCommitResponsePartition, records
            )
            topics.append(
                OffsetCommitResponseTopic(
                    name=topic.name, topic_id=topic.topic_id, partitions=partitions
                )
            )
        encoded = await map_in_turns(encode_record, records)
        # Requests that ran between the steps may have changed the members of the group.
        check = self._validate(request, version)
        if check is not None:
            ids = {topic.name: topic.topic_id for topic in request.topics}
            check.check_all((each.topic, ids[each.topic], each.partition) for each in records)
        self._create_without_records(request.group_id, records, now_ms)
        result = CoordinatorResult(records=records, encoded=encoded)
        return result, OffsetCommitResponse(topics=topics)

    async def commit_in_transaction(
        self,
        request: TxnOffsetCommitRequest,
        guard: VerificationGuard,
        version: int,
        now_ms: int,
    ) -> tuple[GroupResult, TxnOffsetCommitResponse]:
        """
        Commit offsets that count once the transaction of their producer is committed.

        Args:
            guard: what the log handed out for the verification of the transaction (KIP-890).

        Raises:
            KafkaError: the sender may not commit to the group now.
        """
        self._validate_in_transaction(request, version)
        # Neither Kafka's request nor its record has topic ids.
        value = partial(_value, now_ms=now_ms, expire_timestamp=NO_EXPIRY, topic_id=ZERO_UUID)
        records: list[OffsetRecord] = []
        topics = []
        for topic in request.topics:
            partitions = await self._examine(
                request.group_id, topic, value, TxnOffsetCommitResponsePartition, records
            )
            topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions))
        encoded = await map_in_turns(encode_record, records)
        check = self._validate_in_transaction(request, version)
        if check is not None:
            self._check_in_transaction(check, records)
        self._create_without_records(request.group_id, records, now_ms)
        producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        result = CoordinatorResult(records=records, encoded=encoded, producer=producer, guard=guard)
        return result, TxnOffsetCommitResponse(topics=topics)

    async def _examine(
        self,
        group_id: str,
        topic: CommittedTopic,
        value: Callable[[CommittedPartition], OffsetCommitValue],
        answer: Callable[..., P],
        records: list[OffsetRecord],
    ) -> list[P]:
        """
        The answers for the partitions of a topic; the records of accepted offsets go to *records*.
        """
        answers = []
        for partition in topic.partitions:
            await checkpoint()
            index = partition.partition_index
            error = self._metadata_error(partition)
            if error is ErrorCode.NONE:
                records.append(OffsetRecord(group_id, topic.name, index, value(partition)))
            answers.append(answer(partition_index=index, error_code=error))
        return answers

    def _create_without_records(self, group_id: str, records: Sized, now_ms: int) -> None:
        """
        Create the group also where all its offsets are refused, as in Kafka.

        Raises:
            CoordinatorNotAvailable: there is no memory for it.
        """
        if not records:
            self._groups.check_room(group_id)
            self._groups.hold_offsets(group_id, now_ms)

    def _validate_in_transaction(
        self, request: TxnOffsetCommitRequest, version: int
    ) -> CommitCheck | None:
        group = self._groups.get(request.group_id)
        if group is None:
            if request.generation_id < 0:
                return None
            raise IllegalGeneration
        try:
            return group.validate_commit(
                request.member_id,
                request.group_instance_id,
                request.generation_id,
                version=version,
                is_transactional=True,
            )
        except StaleMemberEpoch as error:
            raise IllegalGeneration from error

    def _check_in_transaction(self, check: CommitCheck, records: Iterable[OffsetRecord]) -> None:
        """
        Raises:
            IllegalGeneration: the member did not have some partition at its epoch.
        """
        wanted = []
        for record in records:
            topic = self._topics.get(record.topic)
            if topic is None:
                raise IllegalGeneration
            wanted.append((record.topic, topic.id, record.partition))
        try:
            check.check_all(wanted)
        except StaleMemberEpoch as error:
            raise IllegalGeneration from error

    def _validate(self, request: OffsetCommitRequest, version: int) -> CommitCheck | None:
        generation_id = request.generation_id_or_member_epoch
        group = self._groups.get(request.group_id)
        if group is None:
            if generation_id < 0:
                # The admin client, or a consumer that assigns partitions to itself: the first
                # offset creates the group.
                return None
            if version >= GROUP_ID_NOT_FOUND_SINCE:
                raise GroupIdNotFound(f"Group {request.group_id} not found.")
            raise IllegalGeneration
        check = group.validate_commit(
            request.member_id, request.group_instance_id, generation_id, version=version
        )
        if isinstance(group, ClassicGroup) and group.state in {
            GroupState.STABLE,
            GroupState.PREPARING_REBALANCE,
        }:
            self._rebalance.prolong_session(group, group.members[request.member_id])
        return check

    def _metadata_error(self, partition: CommittedPartition) -> ErrorCode:
        metadata = partition.committed_metadata
        if metadata is None:
            return ErrorCode.NONE
        most = self._options.offset_metadata_max_bytes
        # Kafka's limit is of bytes, but it counts UTF-16 code units.
        is_too_long = len(metadata) > most or (
            not metadata.isascii() and len(metadata.encode("utf-16-le")) > 2 * most
        )
        return ErrorCode.OFFSET_METADATA_TOO_LARGE if is_too_long else ErrorCode.NONE


def _sum(time_ms: int, period_ms: int) -> int:
    """
    The sum of two Java longs, which overflows: an expiry too far ahead lies in the past.
    """
    return (time_ms + period_ms + 2**63) % 2**64 - 2**63


def _value(
    partition: CommittedPartition, *, now_ms: int, expire_timestamp: int, topic_id: UUID
) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or NO_METADATA,
        commit_timestamp=now_ms,
        expire_timestamp=expire_timestamp,
        topic_id=topic_id,
    )
