"""
Groups of all types: their members and their offsets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from struct import Struct
from typing import Any, TypeAlias
from uuid import UUID

from barnabas.coordination.cluster.topic_names import GROUP_METADATA_TOPIC
from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.groups import Group as StoredGroup
from barnabas.coordination.groups.share.group import ShareGroup
from barnabas.coordination.groups.streams.configured_topology import configured
from barnabas.coordination.groups.streams.group import StreamsGroup
from barnabas.coordination.groups.streams.member import StreamsGroupMember
from barnabas.protocol.codec.codec import decode
from barnabas.protocol.consumer_protocol import ConsumerProtocolAssignment
from barnabas.protocol.errors import CoordinatorLoadInProgress, DecodeError
from barnabas.server.groups.shard import GroupShard
from barnabas.server.http.api.positions import positions_of
from barnabas.testing.errors import hides_frame
from barnabas.testing.hosts.embedded import Embedded
from barnabas.testing.views import Group, Member

__tracebackhide__ = hides_frame

Partitions: TypeAlias = tuple[tuple[str, int], ...]

_VERSION = Struct(">h")


async def groups(broker: Embedded) -> list[Group]:
    """
    All groups, by id.
    """
    if GROUP_METADATA_TOPIC not in broker.parts.topics:
        return []
    found = []
    for shard in broker.parts.groups.shards:
        await _load(shard)
        for group in shard.seen.groups:
            found.append(_view(broker, shard, group))
    return sorted(found, key=lambda group: group.id)


async def _load(shard: GroupShard) -> None:
    while True:
        try:
            _ = shard.state  # and timers that are due
            return
        except CoordinatorLoadInProgress:
            await asyncio.sleep(0.001)


def _view(broker: Embedded, shard: GroupShard, group: StoredGroup) -> Group:
    offsets, lags = {}, {}
    for position in positions_of(broker.parts, shard, group):
        offsets[position.topic, position.partition] = position.offset
        partition = broker.parts.partitions.get(position.topic, position.partition)
        if partition is not None:
            # Records of a share group may be done beyond its offset.
            done = position.offset + position.complete
            lags[position.topic, position.partition] = max(0, partition.log.high_watermark - done)
    members = _members(broker, group)
    for topic, index in {each for member in members for each in member.partitions}:
        partition = broker.parts.partitions.get(topic, index)
        if (topic, index) not in lags and partition is not None:
            # Nothing is committed yet: the member may have everything before it.
            log = partition.log
            lags[topic, index] = max(0, log.high_watermark - log.log_start_offset)
    return Group(group.group_id, group.state_name, members, offsets, lags)


def _members(broker: Embedded, group: StoredGroup) -> tuple[Member, ...]:
    return tuple(
        Member(
            id=member.member_id,
            client_id=member.client_id,
            host=member.client_host,
            partitions=_partitions(broker, group, member),
        )
        for member in group.members.values()
    )


def _partitions(broker: Embedded, group: StoredGroup, member: Any) -> Partitions:
    if isinstance(group, ClassicGroup):
        return _decoded(member.assignment)
    if isinstance(group, ConsumerGroup):
        # A member has the partitions that it is to give up until it has given them up.
        return (
            *_named(broker, member.assigned),
            *_named(broker, member.pending_revocation),
        )
    if isinstance(group, ShareGroup):
        return tuple(_named(broker, member.assigned))
    return tuple(_read_by_tasks(broker, group, member))


def _decoded(assignment: bytes) -> Partitions:
    """
    The partitions of an assignment; none if it is not one of consumers, as of Kafka Connect.
    """
    if len(assignment) < _VERSION.size:
        return ()
    try:
        # Every version begins like version 0.
        found = decode(ConsumerProtocolAssignment, 0, assignment[_VERSION.size :])
    except DecodeError:
        return ()
    return tuple(
        (topic.topic, index) for topic in found.assigned_partitions for index in topic.partitions
    )


def _named(broker: Embedded, assigned: Mapping[UUID, Iterable[int]]) -> Iterator[tuple[str, int]]:
    for topic_id, indexes in assigned.items():
        topic = broker.parts.topics.get_by_id(topic_id)
        for index in () if topic is None else sorted(indexes):
            assert topic is not None
            yield topic.name, index


def _read_by_tasks(
    broker: Embedded, group: StreamsGroup, member: StreamsGroupMember
) -> Iterator[tuple[str, int]]:
    """
    The partitions that the active tasks of a member read: a task with number *n* reads partition
    *n* of each source topic of its subtopology that has one.
    """
    topology = group.configured_topology
    if topology is None and group.topology is not None:
        # No heartbeat since the start of the broker.
        topology = configured(group.topology, broker.parts.topics)
    subtopologies = {} if topology is None else topology.subtopologies or {}
    tasks = (member.assigned.active, member.pending_revocation.active)
    for subtopology_id, numbers in (each for active in tasks for each in active.items()):
        subtopology = subtopologies.get(subtopology_id)
        for name in () if subtopology is None else sorted(subtopology.all_sources):
            topic = broker.parts.topics.get(name)
            for number in sorted(numbers):
                if topic is not None and number in topic.partitions:
                    yield name, number
