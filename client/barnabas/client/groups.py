"""
Groups of every type: list, describe, reset offsets and delete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from barnabas.client.cluster import GROUP, Cluster
from barnabas.client.errors import BrokerError
from barnabas.client.retries import MAY_PASS
from barnabas.protocol.codec.codec import decode
from barnabas.protocol.consumer_protocol import ConsumerProtocolAssignment
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from barnabas.storage.topic_partition import TopicPartition

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
TYPES: Final = (CLASSIC, CONSUMER, SHARE, STREAMS)

_CONSUMER_PROTOCOL: Final = "consumer"
_VERSION_SIZE: Final = 2
_NO_GENERATION: Final = -1
_NO_OFFSET: Final = -1


@dataclass(frozen=True)
class GroupListing:
    group_id: str
    type: str
    """One of ``TYPES``; empty from a broker that lacks KIP-848."""
    protocol_type: str
    state: str


@dataclass(frozen=True)
class GroupMember:
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...] = ()
    tasks: tuple[str, ...] = ()
    """Active tasks of a streams group, as ``<subtopology>_<partition>``."""


@dataclass(frozen=True)
class GroupDescription:
    group_id: str
    type: str
    state: str
    coordinator: str
    """``host:port``."""
    assignor: str
    members: tuple[GroupMember, ...]


def list_groups(
    cluster: Cluster, types: Sequence[str] = (), states: Sequence[str] = ()
) -> list[GroupListing]:
    """
    The groups of all brokers that have one of *types* and *states* (empty for any), sorted by id.
    """
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    found: dict[str, GroupListing] = {}
    for connection in cluster.retried(cluster.every):
        for listing in _listed(connection.ask(request)):
            found[listing.group_id] = listing
    return [found[name] for name in sorted(found)]


def _listed(answer: Any) -> list[GroupListing]:
    if answer.error_code:
        raise BrokerError.of(answer.error_code, "groups")
    return [
        GroupListing(each.group_id, each.group_type.lower(), each.protocol_type, each.group_state)
        for each in answer.groups
    ]


def find_group(cluster: Cluster, group_id: str) -> GroupListing:
    """
    Raises:
        BrokerError: the coordinator knows no such group (GROUP_ID_NOT_FOUND).
    """
    answer = _coordinator_asked(
        cluster, group_id, ListGroupsRequest(states_filter=[], types_filter=[])
    )
    for listing in _listed(answer):
        if listing.group_id == group_id:
            return listing
    raise BrokerError.of(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id}")


def describe_group(cluster: Cluster, group_id: str) -> GroupDescription:
    """
    Raises:
        BrokerError: the group does not exist, or this client may not see it.
    """
    kind = find_group(cluster, group_id).type or CLASSIC
    request, members_of = _DESCRIBES[kind]
    (group,) = _coordinator_asked(cluster, group_id, request(group_id)).groups
    if group.error_code:
        message = getattr(group, "error_message", None)
        raise BrokerError.of(group.error_code, f"group {group_id}", message)
    assignor = group.protocol_data if kind == CLASSIC else getattr(group, "assignor_name", "")
    return GroupDescription(
        group_id,
        kind,
        group.group_state,
        cluster.coordinator(GROUP, group_id).address,
        assignor,
        tuple(members_of(group)),
    )


def committed_offsets(cluster: Cluster, group_id: str, kind: str) -> dict[TopicPartition, int]:
    """
    The committed offsets of a group, or the start offsets of a share group (KIP-932).

    Args:
        kind: the group's type.

    Raises:
        BrokerError: this client may not see the group, or its offsets are still loading.
    """
    if kind == SHARE:
        group = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
        request = DescribeShareGroupOffsetsRequest(groups=[group])
        (answer,) = _coordinator_asked(cluster, group_id, request).groups
        topics = [(each.topic_name, each.partitions) for each in answer.topics]
    else:
        answer = _coordinator_asked(
            cluster, group_id, OffsetFetchRequest(group_id=group_id, topics=None)
        )
        topics = [(each.name, each.partitions) for each in answer.topics]
    if answer.error_code:
        raise BrokerError.of(answer.error_code, f"group {group_id}")
    found = {}
    for topic, partitions in topics:
        for each in partitions:
            if each.error_code:
                raise BrokerError.of(each.error_code, f"{topic}-{each.partition_index}")
            offset = each.start_offset if kind == SHARE else each.committed_offset
            if offset != _NO_OFFSET:
                found[TopicPartition(topic, each.partition_index)] = offset
    return dict(sorted(found.items()))


def commit_offsets(
    cluster: Cluster, group_id: str, kind: str, offsets: Mapping[TopicPartition, int]
) -> None:
    """
    Set the offsets of a group without active members.

    Raises:
        BrokerError: the group has active members, or refuses for another reason.
    """
    by_topic: dict[str, list[tuple[int, int]]] = {}
    for partition, offset in offsets.items():
        by_topic.setdefault(partition.topic, []).append((partition.partition, offset))
    if kind == SHARE:
        _alter_share_offsets(cluster, group_id, by_topic)
        return
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=_NO_GENERATION,
        member_id="",
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=offset, committed_metadata=""
                    )
                    for partition, offset in pairs
                ],
            )
            for topic, pairs in by_topic.items()
        ],
    )
    answer = _coordinator_asked(cluster, group_id, request)
    for topic in answer.topics:
        for each in topic.partitions:
            if each.error_code:
                _raise_refused_reset(
                    each.error_code, group_id, f"{topic.name}-{each.partition_index}"
                )


def _alter_share_offsets(
    cluster: Cluster, group_id: str, by_topic: Mapping[str, Iterable[tuple[int, int]]]
) -> None:
    request = AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[
            AlterShareGroupOffsetsRequestTopic(
                topic_name=topic,
                partitions=[
                    AlterShareGroupOffsetsRequestPartition(
                        partition_index=partition, start_offset=offset
                    )
                    for partition, offset in pairs
                ],
            )
            for topic, pairs in by_topic.items()
        ],
    )
    answer = _coordinator_asked(cluster, group_id, request)
    if answer.error_code:
        _raise_refused_reset(answer.error_code, group_id, "", answer.error_message)
    for topic in answer.responses:
        for each in topic.partitions:
            if each.error_code:
                where = f"{topic.topic_name}-{each.partition_index}"
                _raise_refused_reset(each.error_code, group_id, where, each.error_message)


def _raise_refused_reset(code: int, group_id: str, where: str, message: str | None = None) -> None:
    what = f"group {group_id}, {where}" if where else f"group {group_id}"
    if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NON_EMPTY_GROUP):
        message = "The group has active members. Stop its consumers, then reset the offsets."
    raise BrokerError.of(code, what, message)


def delete_group(cluster: Cluster, group_id: str) -> None:
    """
    Raises:
        BrokerError: the group does not exist or has active members.
    """
    (result,) = _coordinator_asked(
        cluster, group_id, DeleteGroupsRequest(groups_names=[group_id])
    ).results
    if result.error_code:
        raise BrokerError.of(result.error_code, f"group {group_id}")


def _coordinator_asked(cluster: Cluster, group_id: str, request: Any) -> Any:
    """
    The coordinator's response, retried while it has a retriable error. A group's coordinator may
    still be loading, or move, right after a start.
    """

    def attempt() -> Any:
        answer = cluster.coordinator(GROUP, group_id).ask(request)
        for code in _codes(answer):
            if code in MAY_PASS:
                raise BrokerError.of(code, f"group {group_id}")
        return answer

    return cluster.retried(attempt)


def _codes(answer: Any) -> Iterator[int]:
    yield getattr(answer, "error_code", 0)
    for name in ("groups", "results", "topics", "responses"):
        for each in getattr(answer, name, ()):
            yield getattr(each, "error_code", 0)
            yield from (partition.error_code for partition in getattr(each, "partitions", ()))


def _classic_members(group: Any) -> Iterable[GroupMember]:
    is_consumer = group.protocol_type == _CONSUMER_PROTOCOL
    for each in group.members:
        yield GroupMember(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            _assigned(each.member_assignment) if is_consumer else (),
        )


def _assigned(data: bytes) -> tuple[TopicPartition, ...]:
    """
    The partitions of a member of a classic group; none for bytes that no consumer wrote.
    """
    if not data:
        return ()
    try:
        # Later versions begin with the fields of version 0.
        assignment = decode(ConsumerProtocolAssignment, 0, data[_VERSION_SIZE:])
    except DecodeError:
        return ()
    return tuple(
        TopicPartition(each.topic, partition)
        for each in assignment.assigned_partitions
        for partition in sorted(each.partitions)
    )


def _modern_members(group: Any) -> Iterable[GroupMember]:
    for each in group.members:
        partitions = [
            TopicPartition(topic.topic_name, partition)
            for topic in each.assignment.topic_partitions
            for partition in topic.partitions
        ]
        instance_id = getattr(each, "instance_id", None)
        yield GroupMember(
            each.member_id, instance_id, each.client_id, each.client_host, tuple(sorted(partitions))
        )


def _streams_members(group: Any) -> Iterable[GroupMember]:
    for each in group.members:
        tasks = [
            f"{tasks.subtopology_id}_{partition}"
            for tasks in each.assignment.active_tasks
            for partition in tasks.partitions
        ]
        yield GroupMember(
            each.member_id, each.instance_id, each.client_id, each.client_host, tasks=tuple(tasks)
        )


def _describes(kind: Callable[..., Any], group_id: str) -> Any:
    return kind(group_ids=[group_id], include_authorized_operations=False)


_DESCRIBES: Final[
    Mapping[str, tuple[Callable[[str], Any], Callable[[Any], Iterable[GroupMember]]]]
] = {
    CLASSIC: (lambda group: DescribeGroupsRequest(groups=[group]), _classic_members),
    CONSUMER: (partial(_describes, ConsumerGroupDescribeRequest), _modern_members),
    SHARE: (partial(_describes, ShareGroupDescribeRequest), _modern_members),
    STREAMS: (partial(_describes, StreamsGroupDescribeRequest), _streams_members),
}
"""The request that describes a group of each type, and how to read the members of the answer."""
