"""
A partition of the group coordinator without a server: a state, a log in a list, a clock that is
moved by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

from barnabas.coordination.config.coordinators import CoordinationOptions
from barnabas.coordination.config.groups import GroupConfig
from barnabas.coordination.coordinator_runtime.errors import coordinator_error
from barnabas.coordination.coordinator_runtime.result import CoordinatorResult
from barnabas.coordination.coordinator_runtime.timers import TimedOperation, TimerQueue
from barnabas.coordination.groups.caller import Caller
from barnabas.coordination.groups.classic.group import ClassicGroup
from barnabas.coordination.groups.classic.state import GroupState
from barnabas.coordination.groups.memory import GroupMemory
from barnabas.coordination.groups.modern.topics import SubscribedTopics
from barnabas.coordination.groups.records import (
    CoordinatorRecord,
    GroupResult,
    OffsetRecord,
    decode_record,
    encode_record,
)
from barnabas.coordination.groups.shard_state import ShardState
from barnabas.coordination.groups.timeouts import TimerKey
from barnabas.coordination.steps import finished
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from barnabas.protocol.records.batch import NO_PRODUCER_ID
from barnabas.storage.config.options import table
from barnabas.storage.units import MiB
from tests.support.build import build
from tests.support.group_requests import heartbeat_request, join_request, sync_request
from tests.support.topic_table import TopicTable

R = TypeVar("R")

START_MS = 1_700_000_000_000
GROUP = "group"
TOPIC_ID = UUID("00112233-4455-6677-8899-aabbccddeeff")
MEMORY = 256 * MiB
Offer = tuple[tuple[str, bytes], ...]
RANGE: Offer = (("range", b"range of anybody"),)


@table
class CoordinatorConfig(CoordinationOptions):
    """
    The configuration of a coordinator without a broker.
    """


def subscription(*topics: str) -> bytes:
    """
    What a consumer tells its leader, version 0.
    """
    listed = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + listed + b"\xff\xff\xff\xff"


class Answer(Generic[R]):
    """
    The answer to a request that may be parked: None until it comes.
    """

    def __init__(self) -> None:
        self.response: R | None = None
        self.count = 0

    def __call__(self, response: R) -> None:
        self.count += 1
        self.response = response

    @property
    def is_parked(self) -> bool:
        return self.count == 0

    @property
    def now(self) -> R:
        """
        The answer, which must be there, and only once.
        """
        assert self.count == 1, f"{self.count} answers"
        assert self.response is not None
        return self.response


class Work:
    """
    The work of a shard beside its requests: done when it is asked for.
    """

    def __init__(self, write: Callable[[GroupResult], None]) -> None:
        self._write = write
        self._scheduled: dict[str, Callable[[], Coroutine[Any, Any, GroupResult]]] = {}

    def schedule(self, key: str, work: Callable[[], Coroutine[Any, Any, GroupResult]]) -> None:
        assert key not in self._scheduled
        self._scheduled[key] = work

    def is_scheduled(self, key: str) -> bool:
        return key in self._scheduled

    def cancel_all(self) -> None:
        self._scheduled.clear()

    def do(self) -> int:
        """
        Do what is scheduled; return how many works that were.
        """
        scheduled, self._scheduled = self._scheduled, {}
        for work in scheduled.values():
            self._write(finished(work()))
        return len(scheduled)


class Coordination:
    """
    One partition of the coordinator.

    Args:
        topics: numbers of partitions, by name.
        options: those of ``CoordinatorConfig``, by attribute.
    """

    def __init__(self, topics: Mapping[str, int] | None = None, **options: Any) -> None:
        self.options = CoordinatorConfig(**options)
        self.now_ms = START_MS
        self.queue: TimerQueue[TimerKey, TimedOperation] = TimerQueue(lambda: self.now_ms / 1000)
        self.memory = GroupMemory(MEMORY)
        self.topics = TopicTable()
        self.group_configs: dict[str, GroupConfig] = {}
        self.executor = Work(self.write)
        self.subscribed = SubscribedTopics(self.topics)
        self.state = self.new_state(self.queue, self.subscribed)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.batches: list[list[CoordinatorRecord]] = []
        self.append_error: ErrorCode | None = None
        self.is_slow = False
        self._uncommitted: list[Callable[[ErrorCode | None], None]] = []
        for name, count in (topics or {}).items():
            self.create(name, count)

    def new_state(
        self,
        queue: TimerQueue[TimerKey, TimedOperation],
        subscribed: SubscribedTopics | None = None,
    ) -> ShardState:
        """
        The state of an empty log.
        """
        return ShardState(
            queue,
            self.options,
            executor=self.executor,
            topics=subscribed or SubscribedTopics(self.topics),
            config_of=lambda group_id: self.group_configs.get(group_id, GroupConfig()),
            memory=self.memory,
        )

    # The log and the clock

    def write_all(self, parts: Iterable[GroupResult]) -> None:
        for changes in parts:
            self.write(changes)

    def write(self, changes: GroupResult) -> None:
        """
        What the shard does: append, apply, and tell, unless commits are slow.
        """

        def settle(error: ErrorCode | None) -> None:
            if changes.on_append is not None:
                changes.on_append(None if error is None else coordinator_error(error), self.now_ms)

        if not changes.records:
            settle(None)
            return
        try:
            self.state.check_room(changes)
        except KafkaError as error:
            settle(error.code)
            return
        if self.append_error is not None:
            settle(self.append_error)
            return
        self.batches.append(list(changes.records))
        for record in changes.records:
            if changes.replay_records:
                self.state.apply(record, len(self.log), NO_PRODUCER_ID)
            self.log.append(encode_record(record))
        if self.is_slow:
            self._uncommitted.append(settle)
        else:
            settle(None)

    def set_config(self, group_id: str = GROUP, **options: Any) -> None:
        self.group_configs[group_id] = GroupConfig(**options)

    # Topics

    def create(self, name: str, partition_count: int) -> UUID:
        """
        Create a topic, and let the coordinator know.
        """
        topic_id = self.topics.put(name, partition_count)
        self.subscribed.created(name)
        return topic_id

    def grow(self, name: str, partition_count: int) -> None:
        self.topics.put(name, partition_count)
        self.subscribed.changed(name)

    def delete(self, name: str) -> None:
        self.topics.remove(name)
        self.subscribed.changed(name)

    def write_records(self, records: list[CoordinatorRecord]) -> None:
        """
        Append records that another broker might have written.
        """
        self.write(CoordinatorResult(records=records))

    def commit(self, error: ErrorCode | None = None) -> None:
        """
        End the wait of everything that was appended while commits were slow.
        """
        waiting, self._uncommitted = self._uncommitted, []
        for settle in waiting:
            settle(error)

    def commit_in_transaction(
        self, record: CoordinatorRecord, producer_id: int, partition: int
    ) -> None:
        """
        Apply a record like that one, for another partition and by a transactional producer.
        """
        assert isinstance(record, OffsetRecord)
        self.state.apply(record._replace(partition=partition), len(self.log), producer_id)

    def advance(self, ms: int) -> None:
        """
        Move the clock, firing what falls due on the way.
        """
        target = self.now_ms + ms
        while (when := self.queue.next_look()) is not None and when <= target:
            self.now_ms = max(self.now_ms, when)
            while (operation := self.queue.pop_due()) is not None:
                self.write(operation(self.now_ms))
        self.now_ms = target

    def replayed(self) -> ShardState:
        """
        What a coordinator would know that only has the log.
        """
        state = self.new_state(TimerQueue(lambda: self.now_ms / 1000))
        for offset, (key, value) in enumerate(self.log):
            record = decode_record(key, value)
            assert record is not None
            state.apply(record, offset, NO_PRODUCER_ID)
        return state

    def restart(self) -> None:
        self.queue.clear()
        self.subscribed = SubscribedTopics(self.topics)
        self.state = self.new_state(self.queue, self.subscribed)
        for offset, (key, value) in enumerate(self.log):
            record = decode_record(key, value)
            assert record is not None
            self.state.apply(record, offset, NO_PRODUCER_ID)
        self.state.loaded(self.now_ms)

    # Requests

    def join(
        self,
        member_id: str = "",
        *,
        group_id: str = GROUP,
        version: int = 9,
        instance_id: str | None = None,
        protocols: Iterable[tuple[str, bytes]] = RANGE,
        protocol_type: str = "consumer",
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 60_000,
        client_id: str = "client",
    ) -> Answer[JoinGroupResponse]:
        answer: Answer[JoinGroupResponse] = Answer()
        request = join_request(
            group_id,
            member_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[{"name": name, "metadata": metadata} for name, metadata in protocols],
        )
        caller = Caller(version, client_id, "/127.0.0.1")
        self.write(self.state.classic.join(request, caller, answer, self.now_ms))
        return answer

    def sync(
        self,
        member_id: str,
        generation_id: int,
        assignment: dict[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Answer[SyncGroupResponse]:
        answer: Answer[SyncGroupResponse] = Answer()
        request = sync_request(
            GROUP,
            member_id,
            generation_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                {"member_id": member, "assignment": assigned}
                for member, assigned in (assignment or {}).items()
            ],
        )
        self.write(self.state.classic.sync(request, answer, self.now_ms))
        return answer

    def heartbeat(
        self, member_id: str, generation_id: int, *, instance_id: str | None = None
    ) -> None:
        self.state.classic.heartbeat(
            heartbeat_request(GROUP, member_id, generation_id, group_instance_id=instance_id)
        )

    def leave(self, *members: tuple[str, str | None] | str) -> LeaveGroupResponse:
        identities = [
            MemberIdentity(member_id=m)
            if isinstance(m, str)
            else MemberIdentity(member_id=m[0], group_instance_id=m[1])
            for m in members
        ]
        steps = self.state.classic.leave(GROUP, identities, self.now_ms)
        changes, response = finished(steps)
        self.write(changes)
        return response

    def commit_offsets(
        self,
        offsets: dict[tuple[str, int], int],
        *,
        member_id: str = "",
        generation_id: int = -1,
        group_id: str = GROUP,
        version: int = 9,
        retention_ms: int = -1,
        metadata: str | None = "",
        leader_epoch: int = -1,
        topic_id: UUID = TOPIC_ID,
    ) -> OffsetCommitResponse:
        facts = {"committed_leader_epoch": leader_epoch, "committed_metadata": metadata}
        topics: dict[str, list[dict[str, Any]]] = {}
        for (topic, partition), offset in offsets.items():
            topics.setdefault(topic, []).append(
                {"partition_index": partition, "committed_offset": offset, **facts}
            )
        request = build(
            OffsetCommitRequest,
            group_id=group_id,
            generation_id_or_member_epoch=generation_id,
            member_id=member_id,
            retention_time_ms=retention_ms,
            topics=[
                {"name": name, "topic_id": topic_id, "partitions": partitions}
                for name, partitions in topics.items()
            ],
        )
        changes, response = finished(self.state.committing.commit(request, version, self.now_ms))
        self.write(changes)
        return response

    # Short cuts

    @property
    def group(self) -> ClassicGroup:
        group = self.state.groups.get_classic(GROUP)
        assert group is not None
        return group

    def is_in(self, state: GroupState) -> bool:
        """
        Whether the group is in that state.
        """
        return self.group.state is state

    def new_member(self, **options: Any) -> tuple[str, Answer[JoinGroupResponse]]:
        """
        A dynamic member as clients of v4 and later make one: with an id that was given out first.
        """
        required = self.join(**options).now
        assert required.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return required.member_id, self.join(required.member_id, **options)

    def stable(self, count: int = 1, *, offers: Sequence[Offer] = (), **options: Any) -> list[str]:
        """
        A stable group of that many dynamic members, the leader first; each is assigned its own id.
        """
        joins = [
            self.new_member(protocols=offers[i] if offers else RANGE, **options)
            for i in range(count)
        ]
        self.advance(self.options.group_initial_rebalance_delay_ms)
        while any(answer.is_parked for _, answer in joins):
            self.advance(self.options.group_initial_rebalance_delay_ms or 1)
        generation_id = joins[0][1].now.generation_id
        leader_id = joins[0][1].now.leader
        ids = sorted((i for i, _ in joins), key=lambda i: i != leader_id)
        syncs = [self.sync(i, generation_id) for i in ids[1:]]
        syncs.append(self.sync(ids[0], generation_id, {i: i.encode() for i in ids}))
        assert all(s.now.error_code == ErrorCode.NONE for s in syncs)
        return ids

    def durable(self) -> dict[str, Any]:
        """
        All that must survive a restart.
        """
        return durable(self.state)


class GroupFacts(NamedTuple):
    """
    All of a classic group that must survive a restart.
    """

    state: GroupState
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader_id: str | None
    subscribed_topics: frozenset[str] | None
    members: dict[str, tuple[Any, ...]]

    @property
    def is_simple(self) -> bool:
        """
        Whether it may be there without a record of its own.
        """
        return self.protocol_type is None and self.generation_id == 0


def durable(state: ShardState) -> dict[str, Any]:
    """
    All of a state that must survive a restart, as something that can be compared.
    """
    groups = {
        group.group_id: GroupFacts(
            group.state,
            group.generation_id,
            group.protocol_type,
            group.protocol_name,
            group.leader_id,
            group.subscribed_topics,
            {
                member.member_id: (
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    member.rebalance_timeout_ms,
                    member.session_timeout_ms,
                    [p.metadata for p in member.protocols if p.name == group.protocol_name],
                    member.assignment,
                )
                for member in group.members.values()
            },
        )
        for group in state.groups
        if isinstance(group, ClassicGroup)
    }
    return {"groups": groups, "offsets": sorted(state.offsets.committed)}
