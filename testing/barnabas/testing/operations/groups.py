"""
Consumer groups: their members and their committed offsets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from struct import Struct

from barnabas.protocol.codec.codec import decode
from barnabas.protocol.consumer_protocol import ConsumerProtocolAssignment
from barnabas.protocol.errors import CoordinatorLoadInProgress, DecodeError
from barnabas.server.cluster.topic_names import GROUP_METADATA_TOPIC
from barnabas.server.groups.classic.group import ClassicGroup
from barnabas.server.groups.groups import Group as StoredGroup
from barnabas.server.groups.offsets.offsets import CommittedOffset
from barnabas.server.groups.shard_state import GroupShard, ShardState
from barnabas.testing.hosts.embedded import Embedded
from barnabas.testing.views import Group, Member

_VERSION = Struct(">h")


async def groups(broker: Embedded) -> list[Group]:
    """
    All groups, by id.
    """
    if GROUP_METADATA_TOPIC not in broker.parts.topics:
        return []
    found = []
    for shard in broker.parts.groups.shards:
        state = await _loaded(shard)
        for group in state.groups:
            found.append(_view(broker, group, state.offsets.committed.of_group(group.group_id)))
    return sorted(found, key=lambda group: group.id)


async def _loaded(shard: GroupShard) -> ShardState:
    while True:
        try:
            return shard.state
        except CoordinatorLoadInProgress:
            await asyncio.sleep(0.001)


def _view(
    broker: Embedded,
    group: StoredGroup,
    committed: Mapping[str, Mapping[int, CommittedOffset]],
) -> Group:
    offsets = {
        (topic, index): position.offset
        for topic, partitions in committed.items()
        for index, position in partitions.items()
    }
    lags = {}
    for (topic, index), offset in offsets.items():
        partition = broker.parts.partitions.get(topic, index)
        if partition is not None:
            lags[topic, index] = max(0, partition.log.high_watermark - offset)
    members = _members(group) if isinstance(group, ClassicGroup) else ()
    return Group(group.group_id, group.state_name, members, offsets, lags)


def _members(group: ClassicGroup) -> tuple[Member, ...]:
    return tuple(
        Member(
            id=member.member_id,
            client_id=member.client_id,
            host=member.client_host,
            partitions=_assigned(member.assignment),
        )
        for member in group.members.values()
    )


def _assigned(assignment: bytes) -> tuple[tuple[str, int], ...]:
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
