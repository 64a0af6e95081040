"""
Groups of all types: their members, their offsets, and how far they are behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict

from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.share.group import ShareGroup
from barnabas.coordination.groups.streams.group import StreamsGroup
from barnabas.coordination.steps import checkpoint
from barnabas.coordination.text_memory import text_bytes
from barnabas.protocol.codec.codec import decode
from barnabas.protocol.consumer_protocol import ConsumerProtocolAssignment
from barnabas.protocol.errors import DecodeError
from barnabas.server.http.api.context import ApiContext
from barnabas.server.http.api.foreseen import NOTHING_UNREAD, Json, in_sum
from barnabas.server.http.api.pages import listed
from barnabas.server.http.api.positions import GroupPosition, lag_of, positions_of, shards_of
from barnabas.server.http.guard import Refused
from barnabas.server.http.json_api import Answer, Operation
from barnabas.server.http.pages import Entry, Page
from barnabas.storage.explain.wording.forecast import forecast_json

if TYPE_CHECKING:
    from uuid import UUID

    from barnabas.coordination.groups.consumer.member import ConsumerGroupMember
    from barnabas.coordination.groups.groups import Group
    from barnabas.coordination.groups.share.member import ShareGroupMember
    from barnabas.coordination.groups.streams.member import StreamsGroupMember
    from barnabas.server.groups.shard import GroupShard
    from barnabas.server.requests.broker_parts import BrokerParts
    from barnabas.server.topics.topics import Topics
    from barnabas.storage.forecast.forecast import Forecast

    Foreseen = Mapping[str, Mapping[int, Forecast]]

POSITIONS_PER_STEP: Final = 8
VIEW_BYTES: Final = 300
"""About the bytes of a group in JSON without its id."""
MOST_MEMBERS: Final = 1000
"""So many members of a group are listed."""
_VERSION: Final = Struct(">h")


@dataclass(frozen=True, slots=True)
class GroupPage(Page):
    """
    Which groups.
    """

    contains: Annotated[str, "a part of the ids"] = ""


@dataclass(frozen=True, slots=True)
class OneGroup(Page):
    """
    A group, and which of its offsets.
    """

    id: Annotated[str, "of the group"] = ""


class GroupView(TypedDict):
    """
    A group, and the sums of its lags.
    """

    id: str
    type: str
    state: str
    protocol_type: str
    members: int
    partitions: Annotated[int, "with an offset of the group"]
    lag: int
    lag_bytes: int
    forecast: Json | None


class GroupsView(TypedDict):
    """
    Groups.
    """

    groups: list[GroupView]
    next: int | None
    total: int
    loading: Annotated[int, "partitions of coordinators whose groups are not known yet"]


class AssignedView(TypedDict):
    """
    Partitions of a topic.
    """

    topic: str
    partitions: list[int]


class TasksView(TypedDict):
    """
    Tasks of a subtopology.
    """

    subtopology: str
    partitions: list[int]


class MemberTasksView(TypedDict):
    """
    The tasks of a member of a streams group.
    """

    active: list[TasksView]
    standby: list[TasksView]
    warmup: list[TasksView]


class MemberView(TypedDict):
    """
    A member of a group.
    """

    id: str
    instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    epoch: int | None
    topics: Annotated[list[str], "to which it subscribes"]
    partitions: list[AssignedView]
    target: list[AssignedView] | None
    tasks: MemberTasksView | None


class OffsetView(TypedDict):
    """
    The position of a group in a partition.
    """

    topic: str
    partition: int
    offset: int
    lag: int | None
    lag_bytes: int | None
    committed_ms: int | None
    metadata: Annotated[str | None, "None without barnabas.http.records=true"]
    leader_epoch: int
    log_start_offset: int | None
    high_watermark: int | None
    forecast: Json | None


class WholeGroupView(TypedDict):
    """
    A group with its members and offsets.
    """

    id: str
    type: str
    state: str
    protocol_type: str
    protocol: Annotated[str | None, "or the assignor"]
    epoch: Annotated[int, "or the generation"]
    assignment_epoch: int | None
    member_count: int
    members: list[MemberView]
    offsets: list[OffsetView]
    next: int | None
    total: int
    lag: int
    lag_bytes: int
    forecast: Json | None


async def list_groups(api: ApiContext, given: GroupPage) -> Answer:
    parts = api.parts
    found = await api.in_turns(_all(parts, given.contains))
    # Objects are made of the groups of the page alone.
    answer = await api.in_thread(partial(_page, found, given))
    answer.content["groups"] = await api.in_turns(_views(parts, answer.content["groups"]))
    # The lag is that of the groups of the page alone: each of its offsets takes a look at a log.
    for view in answer.content["groups"]:
        await api.in_turns(_add_lag(api, view))
    answer.content["loading"] = parts.coordinators.loading
    return answer


async def _all(parts: BrokerParts, contains: str) -> list[str]:
    found = []
    for shard in shards_of(parts):
        for group in shard.seen.groups:
            if contains in group.group_id:
                found.append(group.group_id)
            await checkpoint()
    return found


def _page(found: list[str], given: GroupPage) -> Answer:
    found.sort()
    return listed("groups", found, given, lambda each: Entry(each, VIEW_BYTES + text_bytes(each)))


async def _views(parts: BrokerParts, group_ids: list[str]) -> list[GroupView]:
    views = []
    for group_id in group_ids:
        await checkpoint()
        found = _find(parts, group_id)
        if found is not None:  # it may be gone
            views.append(_view(found[1]))
    return views


def _view(group: Group) -> GroupView:
    return {
        "id": group.group_id,
        "type": group.type.value,
        "state": group.state_name,
        "protocol_type": group.listed_protocol_type,
        "members": len(group.members),
        "partitions": 0,
        "lag": 0,
        "lag_bytes": 0,
        "forecast": None,
    }


def _find(parts: BrokerParts, group_id: str) -> tuple[GroupShard, Group] | None:
    for shard in shards_of(parts):
        group = shard.seen.groups.get(group_id)
        if group is not None:
            return shard, group
    return None


async def _add_lag(api: ApiContext, view: GroupView) -> None:
    parts, forecasts = api.parts, api.broker.forecasts
    found = _find(parts, view["id"])
    foreseen = []
    for number, position in enumerate(() if found is None else positions_of(parts, *found)):
        if number % POSITIONS_PER_STEP == 0:
            await checkpoint()
        lag = lag_of(parts, position)
        view["partitions"] += 1
        if lag is not None:
            view["lag"] += lag.records
            view["lag_bytes"] += lag.size
        if forecasts is not None:
            foreseen.append(forecasts.get(view["id"], position.topic, position.partition))
    # What has been read to its end is not followed.
    has_read_all = view["partitions"] and not view["lag"]
    view["forecast"] = in_sum(foreseen) or (NOTHING_UNREAD if has_read_all else None)


async def show(api: ApiContext, given: OneGroup) -> Answer:
    parts = api.parts
    found = _find(parts, given.id)
    if found is None:
        raise Refused(404, f"there is no group {given.id!r}: GET /api/v1/groups lists all")
    forecasts = api.broker.forecasts
    foreseen: Foreseen = {} if forecasts is None else await forecasts.of_group(given.id)
    whole = await api.in_turns(_whole(parts, *found, given, foreseen))
    if not api.are_records_allowed:
        # Clients put data of theirs into it, as Kafka Streams does.
        for offset in whole["offsets"]:
            offset["metadata"] = None
    return Answer(whole)


async def _whole(
    parts: BrokerParts, shard: GroupShard, group: Group, given: OneGroup, foreseen: Foreseen
) -> WholeGroupView:
    """
    Args:
        foreseen: the forecasts by topic and partition.
    """
    members = []
    for member in list(group.members.values())[:MOST_MEMBERS]:
        members.append(_member(parts.topics, group, member))
        await checkpoint()
    end = given.start + given.limit
    offsets: list[OffsetView] = []
    total = lag = lag_bytes = 0
    for position in positions_of(parts, shard, group):
        forecast = foreseen.get(position.topic, {}).get(position.partition)
        offset = _offset(parts, position, forecast)
        if given.start <= total < end:
            offsets.append(offset)
        total += 1
        lag += offset["lag"] or 0
        lag_bytes += offset["lag_bytes"] or 0
        await checkpoint()
    return {
        "id": group.group_id,
        "type": group.type.value,
        "state": group.state_name,
        "protocol_type": group.listed_protocol_type,
        "protocol": _protocol(group),
        "epoch": group.generation_id if isinstance(group, ClassicGroup) else group.group_epoch,
        "assignment_epoch": None if isinstance(group, ClassicGroup) else group.assignment_epoch,
        "member_count": len(group.members),
        "members": members,
        "offsets": offsets,
        "next": end if end < total else None,
        "total": total,
        "lag": lag,
        "lag_bytes": lag_bytes,
        "forecast": in_sum(each for known in foreseen.values() for each in known.values()),
    }


def _protocol(group: Group) -> str | None:
    if isinstance(group, ClassicGroup):
        return group.protocol_name
    return group.preferred_assignor if isinstance(group, ConsumerGroup) else None


def _offset(parts: BrokerParts, position: GroupPosition, forecast: Forecast | None) -> OffsetView:
    lag = lag_of(parts, position)
    partition = parts.partitions.get(position.topic, position.partition)
    committed = position.committed
    return {
        "topic": position.topic,
        "partition": position.partition,
        "offset": position.offset,
        "lag": None if lag is None else lag.records,
        "lag_bytes": None if lag is None else lag.size,
        "committed_ms": None if committed is None else committed.commit_timestamp_ms,
        "metadata": "" if committed is None else committed.metadata,
        "leader_epoch": -1 if committed is None else committed.leader_epoch,
        "log_start_offset": None if partition is None else partition.log.log_start_offset,
        "high_watermark": None if partition is None else partition.log.high_watermark,
        "forecast": None if forecast is None else forecast_json(forecast),
    }


def _member(topics: Topics, group: Group, member: Any) -> MemberView:
    if isinstance(group, ClassicGroup):
        return _classic_member(group, member)
    if isinstance(group, StreamsGroup):
        return _streams_member(group, member)
    return _modern_member(topics, group, member)


def _classic_member(group: ClassicGroup, member: Any) -> MemberView:
    return {
        "id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.client_host,
        "rack": None,
        "epoch": None,
        "topics": sorted(group.subscribed_topics or ()),
        "partitions": _decoded(member.assignment),
        "target": None,
        "tasks": None,
    }


def _decoded(assignment: bytes) -> list[AssignedView]:
    """
    The partitions of an assignment; none if it is not one of consumers, as of Kafka Connect.
    """
    if len(assignment) < _VERSION.size:
        return []
    try:
        # Every version begins like version 0.
        found = decode(ConsumerProtocolAssignment, 0, assignment[_VERSION.size :])
    except DecodeError:
        return []
    return [
        {"topic": topic.topic, "partitions": list(topic.partitions)}
        for topic in found.assigned_partitions
    ]


def _modern_member(
    topics: Topics,
    group: ConsumerGroup | ShareGroup,
    member: ConsumerGroupMember | ShareGroupMember,
) -> MemberView:
    target = None
    if isinstance(group, ConsumerGroup):
        target = _named(topics, group.target_of(member.member_id))
    return {
        "id": member.member_id,
        "instance_id": getattr(member, "instance_id", None),
        "client_id": member.client_id,
        "host": member.client_host,
        "rack": member.rack_id,
        "epoch": member.member_epoch,
        "topics": sorted(member.topic_names),
        "partitions": _named(topics, member.assigned),
        "target": target,
        "tasks": None,
    }


def _named(topics: Topics, assigned: Mapping[UUID, Iterable[int]]) -> list[AssignedView]:
    found = ((topics.get_by_id(topic_id), indexes) for topic_id, indexes in assigned.items())
    return [
        {"topic": topic.name, "partitions": sorted(indexes)}
        for topic, indexes in found
        if topic is not None
    ]


def _streams_member(group: StreamsGroup, member: StreamsGroupMember) -> MemberView:
    return {
        "id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.client_host,
        "rack": member.rack_id,
        "epoch": member.member_epoch,
        "topics": sorted(group.subscribed_topics),
        "partitions": [],
        "target": None,
        "tasks": {
            "active": _tasks(member.assigned.active),
            "standby": _tasks(member.assigned.standby),
            "warmup": _tasks(member.assigned.warmup),
        },
    }


def _tasks(by_subtopology: Mapping[str, Iterable[int]]) -> list[TasksView]:
    return [
        {"subtopology": name, "partitions": sorted(partitions)}
        for name, partitions in sorted(by_subtopology.items())
    ]


OPERATIONS: Final[Sequence[Operation]] = (
    Operation("GET", "/groups", "the groups", list_groups, GroupPage, GroupsView),
    Operation("GET", "/group", "a group: members, offsets and lag", show, OneGroup, WholeGroupView),
)
