"""
Members of groups as their clients know them, over the wire of a broker that may crash.

A client does at once what an answer asks of it, and joins again when the broker does not know it.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Self
from uuid import UUID

from barnabas.coordination.groups.classic.subscriptions import assignment_bytes
from barnabas.protocol.codec.codec import decode
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.consumer_protocol import ConsumerProtocolAssignment
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Topology,
)
from tests.support.consumer_groups import offer
from tests.support.coordination import GROUP
from tests.support.group_requests import (
    commit_request,
    heartbeat_request,
    join_request,
    leave_request,
    sync_request,
)
from tests.support.streams_groups import task_ids
from tests.support.streams_programs import COUNTER
from tests.support.wire_client import WireClient

LEAVING: Final = -1
LEAVING_FOR_A_WHILE: Final = -2
REBALANCE_TIMEOUT_MS: Final = 60_000

UNKNOWN: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.ILLEGAL_GENERATION,
    }
)
"""
The errors after which a client joins again.
"""


class KnownTopic(NamedTuple):
    """
    A topic as metadata has it.
    """

    topic_id: UUID
    partition_count: int


Topics = Mapping[str, KnownTopic]
Part = tuple[str, int]
"""
A partition by its topic's name, or a task by its subtopology.
"""


async def known_topics(wire: WireClient) -> Topics:
    """
    The topics of users.
    """
    answer = await wire.ask(MetadataRequest(topics=None), 12)
    return {
        str(topic.name): KnownTopic(topic.topic_id, len(topic.partitions))
        for topic in answer.topics
        if not topic.is_internal
    }


class GroupClient(ABC):
    """
    A client, and what it knows of its membership.
    """

    is_exclusive = True
    """Whether no other member may have what it has."""
    appends = 1
    """How many batches of records a heartbeat leads to at most."""
    version = 1
    """The version of its heartbeats."""
    commit_version = 9
    survives_lost_answers = True
    """Whether the broker takes the epoch before the one that it has told last."""

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.epoch = 0
        """The member epoch, or the generation; 0 before it has joined."""
        self.is_disconnected = False
        """
        Whether an answer may be lost, so that the next heartbeat says everything, and is told
        everything.
        """

    @abstractmethod
    async def beat(self, wire: WireClient) -> ErrorCode:
        """
        Send a heartbeat, or join, and do what the answer says.
        """

    async def leave(self, wire: WireClient, epoch: int = LEAVING) -> ErrorCode:
        """
        Leave for ever, or for a while.
        """
        answer = await wire.ask(self.request(epoch), self.version)
        return ErrorCode(answer.error_code)

    async def commit(self, wire: WireClient, topic: str, offsets: Mapping[int, int]) -> ErrorCode:
        """
        Commit offsets as a member.
        """
        request = commit_request(
            GROUP,
            topic,
            offsets,
            member_id=self.member_id,
            generation_id_or_member_epoch=self.epoch,
        )
        return code_of_commit(await wire.ask(request, self.commit_version))

    @abstractmethod
    def request(self, epoch: int) -> Message:
        """
        The heartbeat with this epoch, or the request to leave.
        """

    @abstractmethod
    def wants(self, topics: Topics) -> set[Part]:
        """
        What the group has to assign because of this member.
        """

    @abstractmethod
    def has(self, topics: Topics) -> list[Part]:
        """
        What is assigned to it.
        """

    @abstractmethod
    def forget(self) -> None:
        """
        Begin again as a client that is not a member.
        """

    @property
    @abstractmethod
    def knowledge(self) -> object:
        """
        What changes if the broker says something new.
        """

    def copied(self) -> Self:
        """
        The client as it is now.
        """
        return copy.copy(self)

    def disconnected(self) -> Self:
        """
        The client as it is when its broker has gone.
        """
        found = self.copied()
        found.is_disconnected = True
        return found

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.member_id} epoch {self.epoch}: {self.knowledge}>"


class _PartitionClient(GroupClient):
    """
    A member that is assigned partitions of topics by their ids.
    """

    def __init__(self, member_id: str, topics: Iterable[str]) -> None:
        super().__init__(member_id)
        self.topics = [*topics]
        self.owned: Mapping[UUID, list[int]] = {}

    @property
    def knowledge(self) -> object:
        return self.epoch, self.owned

    def forget(self) -> None:
        self.epoch, self.owned = 0, {}

    def wants(self, topics: Topics) -> set[Part]:
        return _partitions(topics, [name for name in topics if self.subscribes_to(name)])

    def subscribes_to(self, topic: str) -> bool:
        return topic in self.topics

    def has(self, topics: Topics) -> list[Part]:
        names = {topic.topic_id: name for name, topic in topics.items()}
        return [(names[each], index) for each, indexes in self.owned.items() for index in indexes]

    async def beat(self, wire: WireClient) -> ErrorCode:
        answer = await wire.ask(self.request(self.epoch), self.version)
        code = ErrorCode(answer.error_code)
        self.is_disconnected = False
        if code is ErrorCode.NONE:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                parts = answer.assignment.topic_partitions
                self.owned = {each.topic_id: sorted(each.partitions) for each in parts}
        return code


class ConsumerClient(_PartitionClient):
    """
    A member of a consumer group that subscribes to topics, or to those that match a pattern.
    """

    def __init__(
        self,
        member_id: str,
        *topics: str,
        prefix: str | None = None,
        instance_id: str | None = None,
    ) -> None:
        super().__init__(member_id, topics)
        self.prefix = prefix
        self.instance_id = instance_id
        if prefix is not None:
            self.appends = 2  # the topics of the pattern follow

    def subscribes_to(self, topic: str) -> bool:
        is_match = self.prefix is not None and topic.startswith(self.prefix)
        return is_match or super().subscribes_to(topic)

    def request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        is_full = epoch == 0 or self.is_disconnected
        owned = [
            TopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in self.owned.items()
        ]
        return ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if is_full else -1,
            subscribed_topic_names=self.topics if is_full else None,
            subscribed_topic_regex=f"{self.prefix}.*" if is_full and self.prefix else None,
            topic_partitions=owned if epoch >= 0 else None,
        )


class ShareGroupClient(_PartitionClient):
    """
    A member of a share group. The states of three partitions may be initialized, one by one.
    """

    is_exclusive = False
    appends = 1 + 3 + 1

    def __init__(self, member_id: str, *topics: str, group_id: str = GROUP) -> None:
        super().__init__(member_id, topics)
        self.group_id = group_id

    def request(self, epoch: int) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            subscribed_topic_names=self.topics if epoch == 0 or self.is_disconnected else None,
        )


class StreamsClient(GroupClient):
    """
    A member of a streams group that runs *program*, alone in its process.
    """

    version = 0

    def __init__(self, member_id: str, program: Topology = COUNTER) -> None:
        super().__init__(member_id)
        self.program = program
        self.active: Mapping[str, list[int]] = {}
        self.standby: Mapping[str, list[int]] = {}

    @property
    def knowledge(self) -> object:
        return self.epoch, self.active, self.standby

    def forget(self) -> None:
        self.epoch, self.active, self.standby = 0, {}, {}

    def wants(self, topics: Topics) -> set[Part]:
        return {
            (each.subtopology_id, index)
            for each in self.program.subtopologies
            for index in range(max(topics[name].partition_count for name in each.source_topics))
        }

    def has(self, topics: Topics) -> list[Part]:
        return [(number, index) for number, tasks in self.active.items() for index in tasks]

    async def beat(self, wire: WireClient) -> ErrorCode:
        answer = await wire.ask(self.request(self.epoch), self.version)
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self.epoch = answer.member_epoch
            if answer.active_tasks is not None:
                self.active = _tasks(answer.active_tasks)
                self.standby = _tasks(answer.standby_tasks)
        return code

    def request(self, epoch: int) -> StreamsGroupHeartbeatRequest:
        joins, stays = epoch == 0, epoch >= 0
        return StreamsGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member_id,
            member_epoch=epoch,
            endpoint_information_epoch=0,
            topology=self.program if joins else None,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if joins else -1,
            process_id=f"process of {self.member_id}" if joins else None,
            active_tasks=task_ids(self.active) if stays else None,
            standby_tasks=task_ids(self.standby) if stays else None,
            warmup_tasks=[] if stays else None,
        )


class ClassicClient(GroupClient):
    """
    A member that uses the classic protocol, the only one of its group that does.
    """

    survives_lost_answers = False
    version = 4
    commit_version = 8
    appends = 3  # a new group, or a member that joins again; its assignment

    def __init__(self, topic: str) -> None:
        super().__init__("")
        self.topic = topic
        self.owned: list[int] = []

    @property
    def knowledge(self) -> object:
        return self.epoch, self.owned

    def forget(self) -> None:
        self.epoch, self.owned = 0, []

    def wants(self, topics: Topics) -> set[Part]:
        return _partitions(topics, [self.topic])

    def has(self, topics: Topics) -> list[Part]:
        return [(self.topic, index) for index in self.owned]

    async def beat(self, wire: WireClient) -> ErrorCode:
        if self.epoch > 0:
            answer = await wire.ask(self.request(self.epoch), self.version)
            code = ErrorCode(answer.error_code)
            if code is not ErrorCode.REBALANCE_IN_PROGRESS:
                return code
        joined = await self._join(wire)
        code = ErrorCode(joined.error_code)
        return await self._sync(wire, joined) if code is ErrorCode.NONE else code

    def request(self, epoch: int) -> Message:
        if epoch == LEAVING:
            return leave_request(self.version, GROUP, self.member_id)
        return heartbeat_request(GROUP, self.member_id, epoch)

    async def _join(self, wire: WireClient) -> JoinGroupResponse:
        """
        Join, with the member id that the broker has given to this client, or gives now.
        """
        owned = {self.topic: self.owned} if self.owned else {}
        protocols = [
            {"name": name, "metadata": metadata}
            for name, metadata in offer(self.topic, owned=owned)
        ]
        while True:
            answer: JoinGroupResponse = await wire.ask(
                join_request(GROUP, self.member_id, protocols=protocols), 9
            )
            code = ErrorCode(answer.error_code)
            if code in UNKNOWN and self.member_id:
                self.member_id = ""
            elif code is ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
            else:
                return answer

    async def _sync(self, wire: WireClient, joined: JoinGroupResponse) -> ErrorCode:
        assignments = []
        if joined.leader == self.member_id:
            topics = await known_topics(wire)
            mine = assignment_bytes([(self.topic, range(topics[self.topic].partition_count))], 3)
            assignments = [{"member_id": self.member_id, "assignment": mine}]
        request = sync_request(GROUP, self.member_id, joined.generation_id, assignments=assignments)
        answer = await wire.ask(request, 4)
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            version = int.from_bytes(answer.assignment[:2], "big")
            assigned = decode(ConsumerProtocolAssignment, version, answer.assignment[2:])
            parts = [part for each in assigned.assigned_partitions for part in each.partitions]
            # Before this answer nothing was promised.
            self.epoch, self.owned = joined.generation_id, sorted(parts)
        return code


def code_of_commit(answer: Any) -> ErrorCode:
    codes = {part.error_code for topic in answer.topics for part in topic.partitions}
    return ErrorCode(max(codes))


def _partitions(topics: Topics, names: Iterable[str]) -> set[Part]:
    return {(name, index) for name in names for index in range(topics[name].partition_count)}


def _tasks(tasks: Any) -> dict[str, list[int]]:
    return {each.subtopology_id: sorted(each.partitions) for each in tasks}
