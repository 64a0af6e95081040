"""
Deletion of offsets: OffsetDelete, DeleteGroups, deleted topics, and expiry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final, TypeVar
from uuid import UUID

from barnabas.coordination.config.coordinators import GroupOptions
from barnabas.coordination.coordinator_runtime.result import CoordinatorResult
from barnabas.coordination.groups.group_type import GroupType
from barnabas.coordination.groups.groups import Group, Groups
from barnabas.coordination.groups.offsets.expiry import expired_offsets
from barnabas.coordination.groups.offsets.offsets import OffsetStore
from barnabas.coordination.groups.persistence import group_tombstones
from barnabas.coordination.groups.records import (
    CoordinatorRecord,
    GroupResult,
    OffsetRecord,
    encode_record,
)
from barnabas.coordination.groups.share.group import ShareGroup
from barnabas.coordination.groups.share.records import state_partitions_record
from barnabas.coordination.steps import checkpoint, map_in_turns
from barnabas.protocol.codec.schema import ZERO_UUID
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.protocol.structs import NamedTuple

T = TypeVar("T")

GROUPS_AT_ONCE: Final = 200
"""
The groups of one step of a deletion.
"""


class DeletedTopic(NamedTuple):
    """
    A topic that does not exist any more.
    """

    name: str
    topic_id: UUID


class Deleting:
    """
    Deletes offsets of the groups of one partition.
    """

    def __init__(self, groups: Groups, offsets: OffsetStore, options: GroupOptions) -> None:
        self._groups = groups
        self._offsets = offsets
        self._options = options

    async def delete(
        self, request: OffsetDeleteRequest
    ) -> tuple[GroupResult, OffsetDeleteResponse]:
        """
        Delete offsets of topics that no member of the group subscribes to.

        Raises:
            GroupIdNotFound: the group does not exist.
            NonEmptyGroup: it has members, whose subscriptions the coordinator cannot read.
        """
        group = self._groups.expect(request.group_id)
        group.validate_offset_delete()
        records: list[CoordinatorRecord] = []
        topics: list[OffsetDeleteResponseTopic] = []
        for topic in request.topics:
            await checkpoint()
            is_subscribed = group.is_subscribed_to(topic.name)
            error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed else ErrorCode.NONE
            indexes = [partition.partition_index for partition in topic.partitions]
            if not is_subscribed:
                for index in indexes:
                    await checkpoint()
                    if self._offsets.is_known(group.group_id, topic.name, index):
                        records.append(OffsetRecord(group.group_id, topic.name, index, None))
            partitions = await map_in_turns(partial(_deleted, error), indexes)
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
        encoded = await map_in_turns(encode_record, records)
        # A request that ran between the steps may have added members.
        self._groups.expect(request.group_id).validate_offset_delete()
        response = OffsetDeleteResponse(error_code=ErrorCode.NONE, topics=topics)
        return CoordinatorResult(records=records, encoded=encoded), response

    def delete_groups(
        self, group_ids: Iterable[str]
    ) -> tuple[GroupResult, list[tuple[str, ErrorCode]]]:
        """
        Delete groups without members, and all their offsets.

        Returns:
            The records, and an error code for each group.
        """
        records: list[CoordinatorRecord] = []
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
        return CoordinatorResult(records=records), results

    def _all_offsets(self, group: Group) -> list[OffsetRecord]:
        group_id = group.group_id
        committed = self._offsets.committed.of_group(group_id)
        partitions = [(topic, index) for topic, offsets in committed.items() for index in offsets]
        for topic, index in self._offsets.pending_partitions(group_id):
            if index not in committed.get(topic, {}):
                partitions.append((topic, index))
        return [OffsetRecord(group_id, topic, index, None) for topic, index in partitions]

    def forget_topics(self, topics: Iterable[DeletedTopic]) -> Iterator[GroupResult]:
        """
        Delete the offsets of deleted topics, and forget their partitions in share groups, in
        results for ``GROUPS_AT_ONCE`` groups each.

        A topic of the same name may have been created since: offsets with another topic id stay.
        """
        ids = dict(topics)
        gone = set(ids.values())
        for some in _some(self._groups):
            yield CoordinatorResult(
                records=[
                    state_partitions_record(group.group_id, group.states.without(gone))
                    for group in some
                    if isinstance(group, ShareGroup)
                    and group.states is not None
                    and group.states.knows_any(gone)
                ],
                is_atomic=False,
            )
        for groups in _some(self._offsets.groups()):
            yield CoordinatorResult(
                records=[
                    OffsetRecord(group_id, topic, partition, None)
                    for group_id, offsets in groups
                    for topic, partitions in offsets.items()
                    if topic in ids
                    for partition, offset in partitions.items()
                    if offset.topic_id in {ZERO_UUID, ids[topic]}
                ],
                is_atomic=False,
            )

    def expire(self, now_ms: int) -> Iterator[GroupResult]:
        """
        Delete the offsets past their retention, and empty groups whose last offset is among them,
        in results for ``GROUPS_AT_ONCE`` groups each.
        """
        for groups in _some(self._groups):
            records: list[CoordinatorRecord] = []
            for group in groups:
                if self._groups.get(group.group_id) is group:
                    records += self._expired(group, now_ms)
            yield CoordinatorResult(records=records, is_atomic=False)

    def _expired(self, group: Group, now_ms: int) -> list[CoordinatorRecord]:
        if group.type is GroupType.SHARE:
            return []
        retention_ms = self._options.offsets_retention_minutes * 60_000
        expired, is_all = expired_offsets(
            group, self._offsets, now_ms=now_ms, retention_ms=retention_ms
        )
        return [*expired, *(group_tombstones(group) if is_all and group.is_empty else ())]


def _some(items: Iterable[T]) -> Iterator[tuple[T, ...]]:
    """
    The *items*, ``GROUPS_AT_ONCE`` at a time.
    """
    left = iter(items)
    while some := tuple(islice(left, GROUPS_AT_ONCE)):
        yield some


def _deleted(error: ErrorCode, index: int) -> OffsetDeleteResponsePartition:
    return OffsetDeleteResponsePartition(partition_index=index, error_code=error)
