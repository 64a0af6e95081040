"""
The group coordinator: which shard takes a request, and when its answer may leave.

Each partition of ``__consumer_offsets`` that this broker leads is a ``Shard``; a group belongs to
the partition that its id hashes to. What a request means is decided below; here it is checked, sent
to its shard, and answered once what it changed is committed (Kafka's ``GroupCoordinatorService``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING

from barnabas.protocol.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    InvalidGroupId,
    InvalidSessionTimeout,
    KafkaError,
    NotCoordinator,
    UnknownMemberId,
)
from barnabas.protocol.messages.describe_groups import DescribedGroup
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import (
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from barnabas.protocol.messages.list_groups import ListedGroup
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from barnabas.server.cluster.topic_names import GROUP_METADATA_TOPIC
from barnabas.server.config.coordinators import GroupOptions
from barnabas.server.groups.answers import (
    NO_MEMBER_ID,
    coordinator_error,
    join_error,
    sync_error,
)
from barnabas.server.groups.changes import Changes
from barnabas.server.groups.classic.joining import Caller
from barnabas.server.groups.classic.member import Protocols
from barnabas.server.groups.deletion import GroupDeletion
from barnabas.server.groups.describing import describe, is_listed, listed
from barnabas.server.groups.member_memory import MemberMemory
from barnabas.server.groups.offsets.answers import (
    commit_error,
    fetch_error,
    transactional_commit_error,
)
from barnabas.server.groups.offsets.committing import DeletedTopic
from barnabas.server.groups.partitioning import partition_of
from barnabas.server.groups.shard import Shard
from barnabas.server.groups.shard_state import ShardState
from barnabas.server.groups.waiting import answer_after, reply_to
from barnabas.server.requests.delayed import Delayed
from barnabas.server.turns import Steps, Turns, finished, map_in_steps
from barnabas.storage.producers.entry import VerificationGuard

if TYPE_CHECKING:
    from barnabas.server.background import Background
    from barnabas.server.clock import ServerClock
    from barnabas.server.cluster.image import Topic
    from barnabas.server.partitions.partition import Partition
    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.topics.topics import Topics

log = logging.getLogger(__name__)


class GroupCoordinator:
    """
    All groups of this broker, and their committed offsets.

    Invariants:

    1. A shard is in ``_shards`` from the election of this broker until its resignation, loaded or
       not.
    2. No answer that speaks of a change leaves before the change is committed.

    Used on the event loop's thread only.
    """

    def __init__(
        self,
        *,
        options: GroupOptions,
        clock: ServerClock,
        io: Executor,
        background: Background,
        turns: Turns,
    ) -> None:
        self._options = options
        self._clock = clock
        self._io = io
        self._background = background
        self._turns = turns
        self._memory = MemberMemory()
        self._shards: dict[int, Shard] = {}
        self._partition_count = options.offsets_topic_num_partitions
        self._is_active = False

    # Coming and going

    def start(self) -> None:
        """
        Take requests.
        """
        self._is_active = True
        interval_ms = self._options.offsets_retention_check_interval_ms
        self._background.every("offset-expiry", interval_ms / 1000, self.expire_offsets)

    def follow(self, topics: Topics, partitions: Partitions) -> None:
        """
        Coordinate what the offsets topic has, now and when it comes, and forget what is committed
        for topics that go.
        """

        def created(topic: Topic) -> None:
            if topic.name == GROUP_METADATA_TOPIC:
                self.lead(partitions.of_topic(GROUP_METADATA_TOPIC), len(topic.partitions))

        def deleted(topics: Sequence[Topic]) -> Awaitable[None]:
            if any(topic.name == GROUP_METADATA_TOPIC for topic in topics):
                self.lead([], 0)
            return self.on_topics_deleted([DeletedTopic(topic.name, topic.id) for topic in topics])

        topics.on_topic_created.append(created)
        topics.on_topics_deleted.append(deleted)
        known = topics.get(GROUP_METADATA_TOPIC)
        if known is not None:
            created(known)

    def lead(self, partitions: Sequence[Partition], partition_count: int) -> None:
        """
        Coordinate what these partitions of the offsets topic have.

        Args:
            partition_count: how many the topic has, with those that are not ours or that could not
                be opened; 0 if there is no topic.
        """
        for index in tuple(self._shards):
            self.on_resignation(index)
        # The topic is created when a client first looks for a coordinator.
        self._partition_count = partition_count or self._options.offsets_topic_num_partitions
        for partition in partitions:
            self.on_election(partition)

    def stop(self) -> None:
        """
        Take no more requests; whoever waits is told to look for another coordinator.
        """
        self._is_active = False
        for index in tuple(self._shards):
            self.on_resignation(index)

    def on_election(self, partition: Partition) -> None:
        """
        Coordinate the groups of a partition of the offsets topic, as soon as it is replayed.
        """
        self.on_resignation(partition.index)
        shard = Shard(
            partition,
            options=self._options,
            clock=self._clock,
            io=self._io,
            memory=self._memory,
        )
        self._shards[partition.index] = shard
        if partition.log.log_end_offset == partition.log.log_start_offset:
            shard.open()
        else:
            self._background.spawn(f"load {shard}", self._load(shard))

    async def _load(self, shard: Shard) -> None:
        try:
            await shard.load()
        except asyncio.CancelledError:
            raise
        except Exception:
            # As in Kafka, its groups have no coordinator until somebody looks into it.
            log.exception("%r cannot be loaded", shard)
            if self._shards.get(shard.partition.index) is shard:
                self.on_resignation(shard.partition.index)

    def on_resignation(self, index: int) -> None:
        """
        Coordinate the groups of that partition no more; harmless if we do not.
        """
        shard = self._shards.pop(index, None)
        if shard is not None:
            shard.close()

    def on_topics_deleted(self, topics: Sequence[DeletedTopic]) -> Awaitable[None]:
        """
        Forget what is committed for topics that are no more.
        """
        steps = self._write_everywhere(lambda state: state.committing.forget_topics(topics))
        return self._turns.finish(steps)

    def expire_offsets(self) -> Awaitable[None]:
        """
        Forget offsets that nobody has asked to keep for so long.
        """
        now_ms = self._clock.now_ms()
        steps = self._write_everywhere(lambda state: state.committing.expire(now_ms))
        return self._turns.finish(steps)

    def _write_everywhere(
        self, operation: Callable[[ShardState], Iterator[Changes]]
    ) -> Steps[None]:
        for shard in tuple(self._shards.values()):
            try:
                for changes in operation(shard.state):
                    shard.write(changes)
                    yield
                    shard.check()
            except CoordinatorLoadInProgress:
                continue
            except KafkaError as error:
                log.warning("%r: %s", shard, error)

    # Where a group is

    def partition_for(self, group_id: str) -> int:
        """
        The partition of the offsets topic that a group belongs to.
        """
        if not self._is_active:
            raise CoordinatorNotAvailable
        return partition_of(group_id, self._partition_count)

    def state_of(self, group_id: str) -> ShardState:
        """
        Everything about the partition that a group belongs to.

        Raises:
            KafkaError: it is not coordinated here, or not loaded yet.
        """
        return self._shard_of(group_id).state

    def _shard_of(self, group_id: str) -> Shard:
        """
        The shard that a group belongs to.

        Raises:
            CoordinatorNotAvailable: we are starting, or stopping.
            NotCoordinator: the partition is not ours, or does not exist.
        """
        shard = self._shards.get(self.partition_for(group_id))
        if shard is None:
            raise NotCoordinator
        return shard

    def _shard_of_members(self, group_id: str) -> Shard:
        """
        As ``_shard_of``, for what only groups with members can be asked.

        Raises:
            InvalidGroupId: the empty group id is for offsets only.
        """
        self._check_name(group_id)
        return self._shard_of(group_id)

    def _check_name(self, group_id: str) -> None:
        if not self._is_active:
            raise CoordinatorNotAvailable
        if not group_id:
            raise InvalidGroupId

    def _check_session_timeout(self, timeout_ms: int) -> None:
        options = self._options
        least, most = options.group_min_session_timeout_ms, options.group_max_session_timeout_ms
        if not least <= timeout_ms <= most:
            raise InvalidSessionTimeout

    # Members

    async def join(
        self, request: JoinGroupRequest, caller: Caller, protocols: Protocols | None = None
    ) -> JoinGroupResponse:
        """
        Answer a JoinGroup, which may take as long as a round of joins.

        Args:
            protocols: what ``protocols_of`` the request says, if it was asked.
        """
        future: asyncio.Future[JoinGroupResponse] = asyncio.get_running_loop().create_future()
        try:
            self._check_name(request.group_id)
            self._check_session_timeout(request.session_timeout_ms)
        except KafkaError as error:
            return join_error(request.member_id, error.code)
        try:
            shard = self._shard_of(request.group_id)
            now_ms = self._clock.now_ms()
            joining = shard.state.joining
            shard.write(joining.join(request, caller, reply_to(future), now_ms, protocols))
        except KafkaError as error:
            return join_error(NO_MEMBER_ID, coordinator_error(error.code))
        return await future

    async def sync(self, request: SyncGroupRequest) -> SyncGroupResponse:
        """
        Answer a SyncGroup, which may take until the leader has sent its own.
        """
        future: asyncio.Future[SyncGroupResponse] = asyncio.get_running_loop().create_future()
        try:
            shard = self._shard_of_members(request.group_id)
            now_ms = self._clock.now_ms()
            shard.write(shard.state.membership.sync(request, reply_to(future), now_ms))
        except KafkaError as error:
            return sync_error(coordinator_error(error.code))
        return await future

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """
        Take note of a sign of life; the code is the whole answer.
        """
        try:
            self._shard_of_members(request.group_id).state.membership.heartbeat(request)
        except CoordinatorLoadInProgress:
            # Nobody's session runs out while we load, so all is well.
            return ErrorCode.NONE
        except KafkaError as error:
            return coordinator_error(error.code)
        return ErrorCode.NONE

    def leave(
        self, group_id: str, members: Sequence[MemberIdentity]
    ) -> Steps[LeaveGroupResponse | Delayed]:
        """
        Let members go.
        """

        def refused(error: ErrorCode) -> LeaveGroupResponse:
            return LeaveGroupResponse(error_code=error)

        try:
            shard = self._shard_of_members(group_id)
            changes, response = yield from shard.state.membership.leave(
                group_id, members, self._clock.now_ms()
            )
        except UnknownMemberId as error:
            unknown = yield from map_in_steps(partial(_refused, error.code), members)
            return LeaveGroupResponse(error_code=ErrorCode.NONE, members=unknown)
        except KafkaError as error:
            return refused(coordinator_error(error.code))
        return answer_after(shard, changes, response, refused)

    # Offsets

    def commit_offsets(
        self, request: OffsetCommitRequest, version: int
    ) -> Steps[OffsetCommitResponse | Delayed]:
        """
        Commit offsets of topics that have both a name and an id, and of partitions that exist.
        """

        def refused(error: ErrorCode) -> OffsetCommitResponse:
            return finished(commit_error(request, error))

        try:
            shard = self._shard_of(request.group_id)
            changes, response = yield from shard.state.committing.commit(
                request, version, self._clock.now_ms()
            )
            shard.check_size(changes)
        except KafkaError as error:
            return (yield from commit_error(request, coordinator_error(error.code)))
        return answer_after(shard, changes, response, refused)

    def commit_offsets_in_transaction(
        self, request: TxnOffsetCommitRequest, guard: VerificationGuard, version: int
    ) -> Steps[TxnOffsetCommitResponse | Delayed]:
        """
        Commit offsets of partitions that exist, as part of a transaction that the coordinator of
        transactions knows of.
        """

        def refused(error: ErrorCode) -> TxnOffsetCommitResponse:
            return finished(transactional_commit_error(request, error))

        try:
            shard = self._shard_of_members(request.group_id)
            changes, response = yield from shard.state.committing.commit_in_transaction(
                request, guard, version, self._clock.now_ms()
            )
            shard.check_size(changes)
        except KafkaError as error:
            code = coordinator_error(error.code)
            return (yield from transactional_commit_error(request, code))
        return answer_after(shard, changes, response, refused)

    def fetch_offsets(
        self, request: OffsetFetchRequestGroup, version: int, *, require_stable: bool
    ) -> Steps[OffsetFetchResponseGroup]:
        """
        Read committed offsets.
        """
        try:
            committing = self.state_of(request.group_id).committing
            return (yield from committing.fetch(request, require_stable=require_stable))
        except KafkaError as error:
            return fetch_error(request, coordinator_error(error.code), version)

    def delete_offsets(self, request: OffsetDeleteRequest) -> Steps[OffsetDeleteResponse | Delayed]:
        """
        Delete offsets of partitions that exist.
        """

        def refused(error: ErrorCode) -> OffsetDeleteResponse:
            return OffsetDeleteResponse(error_code=error, topics=[])

        try:
            shard = self._shard_of_members(request.group_id)
            changes, response = yield from shard.state.committing.delete(request)
            shard.check_size(changes)
        except KafkaError as error:
            return refused(coordinator_error(error.code))
        return answer_after(shard, changes, response, refused)

    # Transactions

    def check_loaded(self, index: int) -> None:
        """
        See whether a marker may be written to a partition of the offsets topic.

        Raises:
            NotCoordinator: the partition is not ours, or does not exist.
            CoordinatorLoadInProgress, KafkaError: not now.
        """
        shard = self._shards.get(index)
        if shard is None:
            raise NotCoordinator
        shard.check()

    def end_transaction(self, index: int, producer_id: int, *, committed: bool) -> None:
        """
        The marker of a transaction was written to a partition of the offsets topic: the offsets
        that the producer has left there count, or are gone.
        """
        self._shards[index].state.offsets.end_transaction(producer_id, committed=committed)

    # Groups

    def list_groups(self, states: Iterable[str], types: Iterable[str]) -> Steps[list[ListedGroup]]:
        """
        All groups that are in one of the states and of one of the types; none given means any.

        Raises:
            CoordinatorNotAvailable: we are starting, or stopping.
            CoordinatorLoadInProgress: some groups are not known yet.
        """
        if not self._is_active:
            raise CoordinatorNotAvailable
        wanted_states = {state.strip().lower() for state in states}
        wanted_types = {group_type.lower() for group_type in types}
        found = []
        for shard in tuple(self._shards.values()):
            for group in tuple(shard.state.groups):
                yield
                if is_listed(group, wanted_states, wanted_types):
                    found.append(listed(group))
        return found

    def describe_group(self, group_id: str, version: int) -> DescribedGroup:
        """
        All that is known of a classic group.

        Raises:
            KafkaError: we are not in a position to tell.
        """
        return describe(self.state_of(group_id).groups, group_id, version)

    def delete_groups(self, group_ids: Sequence[str]) -> Steps[Delayed]:
        """
        Delete groups without members, with all their offsets.
        """
        deletion = GroupDeletion(group_ids)
        yield from deletion.begin(self._shard_of)
        return deletion


def _refused(error: ErrorCode, member: MemberIdentity) -> MemberResponse:
    return MemberResponse(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        error_code=error,
    )
