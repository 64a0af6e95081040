"""
How far groups are in partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypedDict

from barnabas.coordination.share.keys import SharePartitionKey
from barnabas.coordination.steps import checkpoint
from barnabas.server.http.api.foreseen import Json, in_partition
from barnabas.server.http.metrics.lag import Lag, lag_behind

if TYPE_CHECKING:
    from uuid import UUID

    from barnabas.coordination.groups.groups import Group
    from barnabas.coordination.groups.offsets.offsets import CommittedOffset
    from barnabas.server.forecast.forecasts import Forecasts
    from barnabas.server.groups.shard import GroupShard
    from barnabas.server.requests.broker_parts import BrokerParts
    from barnabas.server.share.coordinator import ShareCoordinator

MOST_GROUPS: Final = 1000
"""So many groups are listed at a partition."""
_UNKNOWN: Final = -1


class PositionView(TypedDict):
    """
    The position of a group in a partition.
    """

    group: str
    type: str
    offset: int
    lag: Annotated[int, "records"]
    lag_bytes: Annotated[int, "about how many bytes they have"]
    forecast: Json | None


class GroupPosition(NamedTuple):
    """
    The offset from which a group goes on in a partition.
    """

    topic: str
    partition: int
    offset: int
    complete: int = 0
    """The records of a share group behind the offset that are done."""
    committed: CommittedOffset | None = None
    """None of a share group."""


def lag_of(parts: BrokerParts, position: GroupPosition) -> Lag | None:
    """
    The lag at a position; None if the partition is not served, or the position not known.
    """
    partition = parts.partitions.get(position.topic, position.partition)
    if partition is None or partition.error is not None or position.offset < 0:
        return None
    lag = lag_behind(partition.log, position.offset)
    return Lag(max(0, lag.records - position.complete), lag.size)


def shards_of(parts: BrokerParts) -> Iterator[GroupShard]:
    """
    The partitions of the group coordinator that are loaded.
    """
    coordinator = parts.coordinators.group_coordinator
    for shard in () if coordinator is None else coordinator.shards:
        if shard.log.is_open:
            yield shard


def positions_of(parts: BrokerParts, shard: GroupShard, group: Group) -> Iterator[GroupPosition]:
    """
    The positions of a group, by topic and partition.
    """
    yield from _committed(shard, group.group_id)
    yield from _shared(parts, group)


def _committed(shard: GroupShard, group_id: str) -> Iterator[GroupPosition]:
    for topic, offsets in sorted(shard.seen.offsets.committed.of_group(group_id).items()):
        for index, found in sorted(offsets.items()):
            yield GroupPosition(topic, index, found.offset, committed=found)


def _shared(parts: BrokerParts, group: Group) -> Iterator[GroupPosition]:
    coordinator = parts.coordinators.share_coordinator
    states = getattr(group, "known_states", None)
    if coordinator is None or states is None:
        return
    for topic_id, known in states.initialized.items():
        topic = parts.topics.get_by_id(topic_id)
        for index in () if topic is None else sorted(known.partitions):
            assert topic is not None
            found = _share_position(coordinator, group.group_id, topic_id, topic.name, index)
            if found is not None:
                yield found


def _share_position(
    coordinator: ShareCoordinator, group_id: str, topic_id: UUID, topic: str, index: int
) -> GroupPosition | None:
    key = SharePartitionKey(group_id, topic_id, index)
    for shard in coordinator.shards:
        known = shard.seen.known.get(key)
        if known is not None and known.value.start_offset != _UNKNOWN:
            complete = max(0, known.value.delivery_complete_count)
            return GroupPosition(topic, index, known.value.start_offset, complete)
    return None


async def positions_in(
    parts: BrokerParts, forecasts: Forecasts | None, topic: str, index: int
) -> list[PositionView]:
    """
    The groups with a position in a partition.
    """
    found: list[PositionView] = []
    for shard in shards_of(parts):
        for group in shard.seen.groups:
            position = _position_in(parts, shard, group, topic, index)
            lag = None if position is None else lag_of(parts, position)
            if position is not None and lag is not None and len(found) < MOST_GROUPS:
                found.append(
                    {
                        "group": group.group_id,
                        "type": group.type.value,
                        "offset": position.offset,
                        "lag": lag.records,
                        "lag_bytes": lag.size,
                        "forecast": in_partition(forecasts, group.group_id, topic, index),
                    }
                )
            await checkpoint()
    found.sort(key=lambda each: each["group"])
    return found


def _position_in(
    parts: BrokerParts, shard: GroupShard, group: Group, topic: str, index: int
) -> GroupPosition | None:
    committed = shard.seen.offsets.committed.get(group.group_id, topic, index)
    if committed is not None:
        return GroupPosition(topic, index, committed.offset, committed=committed)
    shared = parts.coordinators.share_coordinator
    known = parts.topics.get(topic)
    if shared is None or known is None:
        return None
    return _share_position(shared, group.group_id, known.id, topic, index)
