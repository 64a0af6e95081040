"""
The group coordinator: it finds the shard of a request, and answers once its records are committed.

Each partition of ``__consumer_offsets`` that this broker leads has a ``GroupShard``, whose state
decides what a request does (Kafka's ``GroupCoordinatorService``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.coordination.cluster.topic_names import GROUP_METADATA_TOPIC
from barnabas.coordination.config.groups import GroupConfigOf
from barnabas.coordination.groups.answers import NO_MEMBER_ID, join_error, sync_error
from barnabas.coordination.groups.caller import Caller
from barnabas.coordination.groups.classic.joining import Offer
from barnabas.coordination.groups.consumer import describing
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.consumer.heartbeats import check_heartbeat
from barnabas.coordination.groups.describing import describe, is_listed, listed
from barnabas.coordination.groups.groups import G
from barnabas.coordination.groups.memory import GroupMemory
from barnabas.coordination.groups.modern.topics import ClusterTopics, SubscribedTopics
from barnabas.coordination.groups.offsets.answers import (
    commit_error,
    fetch_error,
    transactional_commit_error,
)
from barnabas.coordination.groups.offsets.deleting import DeletedTopic
from barnabas.coordination.groups.offsets.fetching import fetch_offsets
from barnabas.coordination.groups.records import GroupResult
from barnabas.coordination.groups.shard_state import ShardState
from barnabas.coordination.groups.share import describing as share_describing
from barnabas.coordination.groups.share.group import ShareGroup
from barnabas.coordination.groups.share.heartbeats import check_heartbeat as check_share_heartbeat
from barnabas.coordination.groups.share.states import ShareGroupStates
from barnabas.coordination.groups.streams import describing as streams_describing
from barnabas.coordination.groups.streams.group import StreamsGroup
from barnabas.coordination.groups.streams.heartbeats import (
    check_heartbeat as check_streams_heartbeat,
)
from barnabas.coordination.groups.streams.topology import texts_of
from barnabas.coordination.steps import checkpoint, finished, map_in_turns
from barnabas.protocol.codec.schema import Message
from barnabas.protocol.compression import CompressionType
from barnabas.protocol.errors import (
    CoordinatorLoadInProgress,
    ErrorCode,
    InvalidGroupId,
    InvalidSessionTimeout,
    KafkaError,
    NotCoordinator,
)
from barnabas.protocol.messages.consumer_group_describe import (
    DescribedGroup as DescribedConsumerGroup,
)
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.create_topics import CreatableTopic
from barnabas.protocol.messages.delete_groups import DeleteGroupsResponse
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
    OffsetFetchResponsePartitions,
)
from barnabas.protocol.messages.share_group_describe import DescribedGroup as DescribedShareGroup
from barnabas.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from barnabas.protocol.messages.streams_group_describe import (
    DescribedGroup as DescribedStreamsGroup,
)
from barnabas.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from barnabas.server.config import BrokerConfig
from barnabas.server.coordinator_runtime.executor import TurnsExecutor
from barnabas.server.coordinator_runtime.partition_log import PartitionLog
from barnabas.server.coordinator_runtime.shard import CoordinatorShard, LogFormat
from barnabas.server.coordinator_runtime.shards import Shards
from barnabas.server.groups.deletion import GroupDeletion
from barnabas.server.groups.shard import GroupShard
from barnabas.server.scheduling.turns import Turns, settle
from barnabas.storage.producers.entry import VerificationGuard

if TYPE_CHECKING:
    from barnabas.coordination.clock import ServerClock
    from barnabas.server.partitions.partition import Partition
    from barnabas.server.partitions.partitions import Partitions
    from barnabas.server.scheduling.background import Background
    from barnabas.server.share.coordinator import ShareCoordinator
    from barnabas.server.topics.topics import Topics

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)

MOST_OF_A_FILTER: Final = 64
"""
How many characters of a state or type are compared: all names of them are shorter.
"""


class GroupCoordinator:
    """
    The groups of this broker, and their committed offsets.

    Invariants:

    1. The answer to a request that changes a group leaves after its records are committed.

    Used on the event loop's thread only.
    """

    def __init__(
        self,
        *,
        options: BrokerConfig,
        clock: ServerClock,
        io: Executor,
        background: Background,
        turns: Turns,
        topics: ClusterTopics,
        config_of: GroupConfigOf,
        share_coordinator: Callable[[], ShareCoordinator],
    ) -> None:
        """
        Args:
            config_of: returns the configuration of a group.
            share_coordinator: returns the one that keeps the states of share groups.
        """
        self._options = options
        self._clock = clock
        self._background = background
        self._turns = turns
        self._io = io
        self._memory = GroupMemory(options.barnabas_max_coordinator_bytes)
        self._config_of = config_of
        self._subscribed = SubscribedTopics(topics)
        self.shards = Shards(
            GROUP_METADATA_TOPIC,
            options.offsets_topic_num_partitions,
            make=self._make_shard,
            background=background,
        )
        self.share_states = ShareGroupStates(self.shards, topics, share_coordinator)

    def _make_shard(self, partition: Partition) -> GroupShard:
        options = self._options

        def write(result: GroupResult) -> None:
            shard.write(result)

        executor = TurnsExecutor(self._turns, write)
        shard = CoordinatorShard(
            PartitionLog(partition, self._io),
            log_format=LogFormat(
                base_sequence=0,
                load_buffer_bytes=options.offsets_load_buffer_size,
                compression=CompressionType.of(options.offsets_topic_compression_codec),
            ),
            clock=self._clock,
            make_state=lambda timers: ShardState(
                timers,
                options,
                executor=executor,
                topics=self._subscribed,
                config_of=self._config_of,
                memory=self._memory,
            ),
        )
        return shard

    def start(self) -> None:
        """
        Take requests, and expire offsets.
        """
        self.shards.start()
        interval_ms = self._options.offsets_retention_check_interval_ms
        self._background.every("offset-expiry", interval_ms / 1000, self.expire_offsets)

    def follow(self, topics: Topics, partitions: Partitions) -> None:
        """
        Lead the partitions of the offsets topic, and delete the offsets of deleted topics.
        """
        self.shards.follow(topics, partitions)
        topics.on_topic_created.append(lambda topic: self._subscribed.created(topic.name))
        topics.on_partitions_added.append(lambda topic: self._subscribed.changed(topic.name))
        topics.on_topics_deleted.append(
            lambda deleted: self.on_topics_deleted(
                [DeletedTopic(topic.name, topic.id) for topic in deleted]
            )
        )

    def stop(self) -> None:
        """
        Take no more requests, and answer those that wait with ``NOT_COORDINATOR``.
        """
        self.shards.stop()

    def on_topics_deleted(self, topics: Sequence[DeletedTopic]) -> Awaitable[None]:
        """
        Delete the offsets that are committed for deleted topics.
        """
        for topic in topics:
            self._subscribed.changed(topic.name)
        steps = self._write_everywhere(lambda state: state.deleting.forget_topics(topics))
        return self._turns.finish(steps)

    def expire_offsets(self) -> Awaitable[None]:
        """
        Delete the offsets past ``offsets.retention.minutes``.
        """
        now_ms = self._clock.now_ms()
        steps = self._write_everywhere(lambda state: state.deleting.expire(now_ms))
        return self._turns.finish(steps)

    async def _write_everywhere(
        self, operation: Callable[[ShardState], Iterator[GroupResult]]
    ) -> None:
        for shard in self.shards:
            try:
                for changes in operation(shard.state):
                    shard.write(changes)
                    await checkpoint()
                    shard.check()
            except CoordinatorLoadInProgress:
                continue
            except KafkaError as error:
                log.warning("%r: %s", shard, error)

    # Shards

    def partition_for(self, group_id: str) -> int:
        """
        The partition of the offsets topic that a group belongs to.

        Raises:
            CoordinatorNotAvailable: the broker is starting, or stopping.
        """
        self.shards.check_active()
        return self.shards.partition_for(group_id)

    def state_of(self, group_id: str) -> ShardState:
        """
        The state of the partition that a group belongs to.

        Raises:
            KafkaError: the partition is not coordinated here, or not loaded yet.
        """
        return self.shards.of(group_id).state

    def _shard_of_members(self, group_id: str) -> GroupShard:
        """
        The shard of a group that can have members.

        Raises:
            InvalidGroupId: the group id is empty, which is for offsets only.
            KafkaError: see ``Shards.of``.
        """
        self._check_name(group_id)
        return self.shards.of(group_id)

    def _check_name(self, group_id: str) -> None:
        self.shards.check_active()
        if not group_id:
            raise InvalidGroupId

    def _check_session_timeout(self, timeout_ms: int) -> None:
        options = self._options
        least, most = options.group_min_session_timeout_ms, options.group_max_session_timeout_ms
        if not least <= timeout_ms <= most:
            raise InvalidSessionTimeout

    # Members

    async def join(
        self, request: JoinGroupRequest, caller: Caller, offer: Offer | None = None
    ) -> JoinGroupResponse:
        """
        Answer a JoinGroup, at the end of the round of joins.

        Args:
            offer: the result of ``offer_of`` the request, if the caller has it.
        """
        future: asyncio.Future[JoinGroupResponse] = asyncio.get_running_loop().create_future()
        try:
            self._check_name(request.group_id)
            self._check_session_timeout(request.session_timeout_ms)
        except KafkaError as error:
            return join_error(request.member_id, error.code)
        try:
            shard = self.shards.of(request.group_id)
            now_ms = self._clock.now_ms()
            classic = shard.state.classic
            shard.write(classic.join(request, caller, partial(settle, future), now_ms, offer))
        except KafkaError as error:
            return join_error(NO_MEMBER_ID, error.code)
        return await future

    async def sync(self, request: SyncGroupRequest) -> SyncGroupResponse:
        """
        Answer a SyncGroup, once the leader has sent its own.
        """
        future: asyncio.Future[SyncGroupResponse] = asyncio.get_running_loop().create_future()
        try:
            shard = self._shard_of_members(request.group_id)
            now_ms = self._clock.now_ms()
            shard.write(shard.state.classic.sync(request, partial(settle, future), now_ms))
        except KafkaError as error:
            return sync_error(error.code)
        return await future

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """
        Prolong the session of a member; the code is the whole answer.
        """
        try:
            self._shard_of_members(request.group_id).state.classic.heartbeat(request)
        except CoordinatorLoadInProgress:
            # No session ends while the partition is loaded.
            return ErrorCode.NONE
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    async def leave(
        self, group_id: str, members: Sequence[MemberIdentity]
    ) -> LeaveGroupResponse | asyncio.Future[LeaveGroupResponse]:
        """
        Remove members from a group.
        """

        async def refused(error: ErrorCode) -> LeaveGroupResponse:
            if error is not ErrorCode.UNKNOWN_MEMBER_ID:
                return LeaveGroupResponse(error_code=error)
            unknown = await map_in_turns(partial(_unknown_member, error), members)
            return LeaveGroupResponse(error_code=ErrorCode.NONE, members=unknown)

        return await self._change(
            lambda: self._shard_of_members(group_id),
            lambda state: state.classic.leave(group_id, members, self._clock.now_ms()),
            refused,
        )

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller
    ) -> ConsumerGroupHeartbeatResponse | asyncio.Future[ConsumerGroupHeartbeatResponse]:
        """
        Let a member of a consumer group join, stay or leave.

        Raises:
            KafkaError: the request is refused.
        """
        self.shards.check_active()
        check_heartbeat(request, caller.version, self._options.group_consumer_assignors)
        shard = self.shards.of(request.group_id)
        shard.check_texts(set(request.subscribed_topic_names or ()))
        heartbeats = shard.state.consumers.heartbeats
        result, response = heartbeats.heartbeat(request, caller, self._clock.now_ms())
        if not result.records and shard.log.is_settled:
            return response
        return _when_written(
            shard, result, request, lambda: response, ConsumerGroupHeartbeatResponse
        )

    def streams_heartbeat(
        self,
        request: StreamsGroupHeartbeatRequest,
        caller: Caller,
        create_topics: Callable[
            [Mapping[str, CreatableTopic], StreamsGroupHeartbeatResponse],
            StreamsGroupHeartbeatResponse,
        ],
    ) -> StreamsGroupHeartbeatResponse | asyncio.Future[StreamsGroupHeartbeatResponse]:
        """
        Let a member of a streams group join, stay or leave.

        Args:
            create_topics: called with the internal topics that are missing, if any are; it returns
                the answer.

        Raises:
            KafkaError: the request is refused.
        """
        self.shards.check_active()
        check_streams_heartbeat(request)
        shard = self.shards.of(request.group_id)
        if request.topology is not None:
            shard.check_texts(texts_of(request.topology))
        heartbeats = shard.state.streams.heartbeats
        result, response, missing = heartbeats.heartbeat(request, caller, self._clock.now_ms())

        def answer() -> StreamsGroupHeartbeatResponse:
            return create_topics(missing, response) if missing else response

        if not result.records and shard.log.is_settled:
            return answer()
        return _when_written(shard, result, request, answer, StreamsGroupHeartbeatResponse)

    def share_heartbeat(
        self, request: ShareGroupHeartbeatRequest, caller: Caller
    ) -> ShareGroupHeartbeatResponse | asyncio.Future[ShareGroupHeartbeatResponse]:
        """
        Let a member of a share group join, stay or leave.

        Raises:
            KafkaError: the request is refused.
        """
        self.shards.check_active()
        check_share_heartbeat(request)
        shard = self.shards.of(request.group_id)
        shard.check_texts(set(request.subscribed_topic_names or ()))
        heartbeats = shard.state.shares
        result, response, wanted = heartbeats.heartbeat(request, caller, self._clock.now_ms())
        if not result.records and shard.log.is_settled:
            return response

        def answer() -> ShareGroupHeartbeatResponse:
            if wanted is not None:
                name = f"initialize states of {request.group_id}"
                self._background.spawn(name, self.share_states.initialize(wanted))
            return response

        return _when_written(shard, result, request, answer, ShareGroupHeartbeatResponse)

    # Offsets

    async def commit_offsets(
        self, request: OffsetCommitRequest, version: int
    ) -> OffsetCommitResponse | asyncio.Future[OffsetCommitResponse]:
        """
        Commit offsets of existing partitions. Each topic has both its name and its id.
        """
        return await self._change(
            lambda: self.shards.of(request.group_id),
            lambda state: state.committing.commit(request, version, self._clock.now_ms()),
            partial(commit_error, request),
        )

    async def commit_offsets_in_transaction(
        self, request: TxnOffsetCommitRequest, guard: VerificationGuard, version: int
    ) -> TxnOffsetCommitResponse | asyncio.Future[TxnOffsetCommitResponse]:
        """
        Commit offsets of existing partitions in a transaction that its coordinator has verified.
        """
        return await self._change(
            lambda: self._shard_of_members(request.group_id),
            lambda state: state.committing.commit_in_transaction(
                request, guard, version, self._clock.now_ms()
            ),
            partial(transactional_commit_error, request),
        )

    async def fetch_offsets(
        self,
        request: OffsetFetchRequestGroup,
        version: int,
        *,
        require_stable: bool,
        found_one: Callable[[OffsetFetchResponsePartitions], None] = lambda _: None,
    ) -> OffsetFetchResponseGroup:
        """
        Read committed offsets.

        Args:
            found_one: called with each partition of the answer; what it raises ends the reading.
        """
        try:
            state = self.state_of(request.group_id)
            return await fetch_offsets(
                state.groups,
                state.offsets,
                request,
                require_stable=require_stable,
                found_one=found_one,
            )
        except KafkaError as error:
            code = error.code
        return await fetch_error(request, code, version)

    async def delete_offsets(
        self, request: OffsetDeleteRequest
    ) -> OffsetDeleteResponse | asyncio.Future[OffsetDeleteResponse]:
        """
        Delete offsets of existing partitions.
        """

        async def refused(error: ErrorCode) -> OffsetDeleteResponse:
            return OffsetDeleteResponse(error_code=error, topics=[])

        return await self._change(
            lambda: self._shard_of_members(request.group_id),
            lambda state: state.deleting.delete(request),
            refused,
        )

    async def _change(
        self,
        find_shard: Callable[[], GroupShard],
        work: Callable[[ShardState], Awaitable[tuple[GroupResult, M]]],
        refused: Callable[[ErrorCode], Coroutine[Any, Any, M]],
    ) -> M | asyncio.Future[M]:
        """
        Do *work*, append its records, and answer once they are committed.

        Args:
            refused: makes the answer for an error of any of these steps.
        """
        try:
            shard = find_shard()
            result, response = await work(shard.state)
            shard.check_size(result)
        except KafkaError as error:
            return await refused(error.code)
        if not result.records and shard.log.is_settled:
            return response
        future: asyncio.Future[M] = asyncio.get_running_loop().create_future()
        reply = partial(settle, future)
        shard.write(
            result,
            lambda error: reply(response if error is None else finished(refused(error))),
        )
        return future.result() if future.done() else future

    # Transactions

    def check_loaded(self, index: int) -> None:
        """
        See whether a marker may be written to a partition of the offsets topic.

        Raises:
            NotCoordinator: the partition is not coordinated here, or does not exist.
            CoordinatorLoadInProgress, KafkaError: see ``CoordinatorShard.check``.
        """
        shard = self.shards.get(index)
        if shard is None:
            raise NotCoordinator
        shard.check()

    def end_transaction(self, index: int, producer_id: int, *, committed: bool) -> None:
        """
        Apply the marker of a transaction that was written to a partition of the offsets topic: the
        pending offsets of the producer are committed, or dropped.
        """
        shard = self.shards.get(index)
        assert shard is not None, "its marker was written"
        shard.state.offsets.end_transaction(producer_id, committed=committed)

    # Groups

    async def list_groups(
        self,
        states: Iterable[str],
        types: Iterable[str],
        found_one: Callable[[ListedGroup], None] = lambda _: None,
    ) -> list[ListedGroup]:
        """
        All groups in one of the states and of one of the types; an empty argument means any.

        Args:
            found_one: called with each of them; what it raises ends the list.

        Raises:
            CoordinatorNotAvailable: the broker is starting, or stopping.
            CoordinatorLoadInProgress: some groups are not loaded yet.
        """
        self.shards.check_active()
        wanted_states = await _in_lower_case(state.strip() for state in states)
        wanted_types = await _in_lower_case(types)
        found = []
        for shard in self.shards:
            for group in tuple(shard.state.groups):
                await checkpoint()
                if is_listed(group, wanted_states, wanted_types):
                    entry = listed(group)
                    found_one(entry)
                    found.append(entry)
        return found

    def describe_group(self, group_id: str, version: int) -> DescribedGroup:
        """
        A classic group with its members.

        Raises:
            KafkaError: the group is not coordinated here, or not loaded yet.
        """
        return describe(self.state_of(group_id).groups, group_id, version)

    def _find(self, group_id: str, group_class: type[G]) -> G:
        """
        The group, of that class.

        Raises:
            InvalidGroupId: the group id is empty.
            GroupIdNotFound: the group does not exist, or is of another type.
            KafkaError: the group is not coordinated here, or not loaded yet.
        """
        self._check_name(group_id)
        return self.state_of(group_id).groups.find(group_id, group_class)

    async def describe_consumer_group(self, group_id: str) -> DescribedConsumerGroup:
        """
        A consumer group with its members.

        Raises:
            KafkaError: see ``_find``.
        """
        group = self._find(group_id, ConsumerGroup)
        assignor = self._options.group_consumer_assignors[0]
        return await describing.describe(group, self._subscribed.topics, assignor)

    async def describe_share_group(self, group_id: str) -> DescribedShareGroup:
        """
        A share group with its members.

        Raises:
            KafkaError: see ``_find``.
        """
        group = self._find(group_id, ShareGroup)
        return await share_describing.describe(group, self._subscribed.topics)

    async def describe_streams_group(self, group_id: str) -> DescribedStreamsGroup:
        """
        A streams group with its members.

        Raises:
            KafkaError: see ``_find``.
        """
        group = self._find(group_id, StreamsGroup)
        return await streams_describing.describe(group)

    async def delete_groups(
        self, group_ids: Sequence[str]
    ) -> DeleteGroupsResponse | asyncio.Future[DeleteGroupsResponse]:
        """
        Delete groups without members, with all their offsets, and the states of share groups.
        """
        deletion = GroupDeletion(group_ids)
        with_states = []
        for group_id in group_ids:
            await checkpoint()
            if group_id and self.share_states.has_states(group_id):
                with_states.append(group_id)
        if not with_states:
            await deletion.begin(self.shards.of)
            return deletion.answer.result() if deletion.answer.done() else deletion.answer

        async def delete() -> None:
            failed = await self.share_states.delete_all(with_states)
            await self._turns.finish(deletion.begin(self.shards.of, failed))

        self._background.spawn("delete share groups", delete())
        return deletion.answer


async def _in_lower_case(names: Iterable[str]) -> set[str]:
    """
    The *names* in lower case, each cut off behind the longest name of a state or type.
    """
    found: set[str] = set()
    for name in names:
        await checkpoint()
        found.add(name[:MOST_OF_A_FILTER].lower())
    return found


def _when_written(
    shard: GroupShard,
    result: GroupResult,
    request: ConsumerGroupHeartbeatRequest
    | ShareGroupHeartbeatRequest
    | StreamsGroupHeartbeatRequest,
    answer: Callable[[], M],
    refusal: Callable[..., M],
) -> M | asyncio.Future[M]:
    """
    The answer to a heartbeat, once its records are committed.

    Args:
        answer: makes it.
        refusal: makes that for an error code.
    """
    future: asyncio.Future[M] = asyncio.get_running_loop().create_future()
    reply = partial(settle, future)

    def appended(error: ErrorCode | None) -> None:
        if error is None:
            reply(answer())
            return
        with suppress(KafkaError):  # the shard has resigned, and has no timeouts any more
            shard.state.forget_stranger(request.group_id, request.member_id)
        reply(refusal(error_code=error))

    shard.write(result, appended)
    return future.result() if future.done() else future


def _unknown_member(error: ErrorCode, member: MemberIdentity) -> MemberResponse:
    return MemberResponse(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        error_code=error,
    )
