"""
A streams group as StreamsGroupDescribe shows it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from barnabas.coordination.groups.streams.configured_topology import (
    ConfiguredInternalTopic,
    ConfiguredSubtopology,
)
from barnabas.coordination.groups.streams.group import StreamsGroup
from barnabas.coordination.groups.streams.member import StreamsGroupMember
from barnabas.coordination.groups.streams.records import in_order
from barnabas.coordination.java_strings import string_rank
from barnabas.coordination.steps import map_in_turns
from barnabas.protocol.errors import ErrorCode, UnknownServerError
from barnabas.protocol.internal_topics.group_records import streams as schemas
from barnabas.protocol.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)


async def describe(group: StreamsGroup) -> DescribedGroup:
    """
    A group with its members, and its topology with the numbers of partitions once they are known.

    Raises:
        UnknownServerError: the group has no topology; no coordinator writes that.
    """
    members = await map_in_turns(
        lambda member: _described(group, member), tuple(group.members.values())
    )
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group),
        members=members,
    )


def described_error(group_id: str, error: ErrorCode, sentence: str | None = None) -> DescribedGroup:
    """
    A group that cannot be described.
    """
    return DescribedGroup(
        error_code=error,
        error_message=sentence,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        members=[],
    )


def topics_of(topology: Topology) -> set[str]:
    """
    The topics that the description of a topology names.
    """
    return {
        name
        for each in topology.subtopologies or ()
        for name in (
            *each.source_topics,
            *each.repartition_sink_topics,
            *(topic.name for topic in each.repartition_source_topics),
            *(topic.name for topic in each.state_changelog_topics),
        )
    }


def _topology(group: StreamsGroup) -> Topology:
    configured = group.configured_topology
    if configured is not None and configured.is_ready and configured.subtopologies is not None:
        return Topology(
            epoch=configured.epoch,
            subtopologies=[
                _configured(subtopology_id, each)
                for subtopology_id, each in configured.subtopologies.items()
            ],
        )
    if group.topology is None:
        raise UnknownServerError("There should always be a topology for a streams group.")
    subtopologies = group.topology.subtopologies
    return Topology(
        epoch=group.topology.epoch,
        subtopologies=[
            _as_sent(subtopologies[each]) for each in sorted(subtopologies, key=string_rank)
        ],
    )


def _configured(subtopology_id: str, subtopology: ConfiguredSubtopology) -> Subtopology:
    def topics(configured: Mapping[str, ConfiguredInternalTopic]) -> list[TopicInfo]:
        return [
            TopicInfo(
                name=name,
                partitions=configured[name].partitions,
                replication_factor=configured[name].replication_factor,
                topic_configs=[
                    KeyValue(key=key, value=value)
                    for key, value in configured[name].configs.items()
                ],
            )
            for name in sorted(configured, key=string_rank)
        ]

    return Subtopology(
        subtopology_id=subtopology_id,
        source_topics=sorted(subtopology.source_topics, key=string_rank),
        repartition_sink_topics=sorted(subtopology.repartition_sink_topics, key=string_rank),
        state_changelog_topics=topics(subtopology.changelogs),
        repartition_source_topics=topics(subtopology.repartition_source_topics),
    )


def _as_sent(subtopology: schemas.Subtopology) -> Subtopology:
    def topics(infos: Collection[schemas.TopicInfo]) -> list[TopicInfo]:
        return [
            TopicInfo(
                name=info.name,
                partitions=info.partitions,
                replication_factor=info.replication_factor,
                topic_configs=[
                    KeyValue(key=config.key, value=config.value) for config in info.topic_configs
                ],
            )
            for info in sorted(infos, key=lambda info: string_rank(info.name))
        ]

    return Subtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=sorted(subtopology.source_topics, key=string_rank),
        repartition_sink_topics=sorted(subtopology.repartition_sink_topics, key=string_rank),
        state_changelog_topics=topics(subtopology.state_changelog_topics),
        repartition_source_topics=topics(subtopology.repartition_source_topics),
    )


def _described(group: StreamsGroup, member: StreamsGroupMember) -> Member:
    endpoint = member.user_endpoint
    return Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[KeyValue(key=key, value=value) for key, value in member.client_tags.items()],
        task_offsets=[],
        task_end_offsets=[],
        assignment=_assignment(*member.assigned.by_role),
        target_assignment=_assignment(*group.target_of(member.member_id)),
        is_classic=False,
    )


def _assignment(*by_role: Mapping[str, Collection[int]]) -> Assignment:
    active, standby, warmup = (
        [TaskIds(subtopology_id=each, partitions=numbers) for each, numbers in in_order(tasks)]
        for tasks in by_role
    )
    return Assignment(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)
