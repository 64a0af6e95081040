"""
A classic group: its members, its generation and its state.

This is the state machine of Kafka's ``ClassicGroup``: no clock, no timer, no socket, no log.
Requests and time move it from state to state, in ``rebalance``, ``joining`` and ``membership``.

The GroupMetadata record (``records``) holds the durable part. A group that is rebalancing is ahead
of its record until the leader's assignment is written; after a restart it is back at the generation
before.
"""

from __future__ import annotations

from typing import Final

from barnabas.coordination.coordinator_runtime.memory import Held
from barnabas.coordination.groups.answers import NO_MEMBER_ID, join_error, sync_error
from barnabas.coordination.groups.classic.ballot import Ballot
from barnabas.coordination.groups.classic.member import (
    ClassicGroupMember,
    JoinReply,
    Protocols,
    SyncReply,
)
from barnabas.coordination.groups.classic.state import TRANSITIONS, GroupState
from barnabas.coordination.groups.classic.subscriptions import CONSUMER, subscribed_topics
from barnabas.coordination.groups.group_type import GroupType
from barnabas.protocol.errors import (
    CoordinatorNotAvailable,
    DecodeError,
    ErrorCode,
    FencedInstanceId,
    GroupIdNotFound,
    IllegalGeneration,
    NonEmptyGroup,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from barnabas.protocol.messages.sync_group import SyncGroupResponse

S = GroupState


class ClassicGroup:
    """
    The members of one group that uses the classic protocol.

    Invariants:

    1. ``state`` changes in ``become`` only, along ``TRANSITIONS``.
    2. While there are members, all are of the group's ``protocol_type``, some protocol is offered
       by all, and ``leader_id`` is one of them.
    3. ``awaiting_join`` counts the members with a parked JoinGroup.
    4. ``static_members`` maps the instance id of every static member to its member id.
    5. A pending id, which a client was given and has not joined with yet, is no member.

    Used on the event loop's thread only.
    """

    type: Final = GroupType.CLASSIC

    __slots__ = (
        "_ballot",
        "awaiting_join",
        "generation_id",
        "group_id",
        "held",
        "held_assignment",
        "leader_id",
        "members",
        "new_member_added",
        "pending_joins",
        "pending_syncs",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
    )

    def __init__(
        self,
        group_id: str,
        state: GroupState = S.EMPTY,
        *,
        state_timestamp_ms: int | None,
        generation_id: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        leader_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.state = state
        self.previous_state = S.DEAD
        self.state_timestamp_ms = state_timestamp_ms
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader_id = leader_id
        self.members: dict[str, ClassicGroupMember] = {}
        self.static_members: dict[str, str] = {}
        self.held: Held | None = None  # the memory of the group without its members
        self.held_assignment: Held | None = None
        self.pending_joins: dict[str, Held] = {}  # ids that MEMBER_ID_REQUIRED has given
        self.pending_syncs: set[str] = set()  # members of this generation that have not synced
        self.awaiting_join = 0
        self.new_member_added = False  # since the initial rebalance was last prolonged
        self.subscribed_topics: frozenset[str] | None = None
        self._ballot = Ballot()

    # State.

    def become(self, state: GroupState, now_ms: int) -> None:
        """
        Enter another state.
        """
        assert state in TRANSITIONS[self.state], f"{self.group_id}: {self.state} -> {state}"
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms

    @property
    def can_rebalance(self) -> bool:
        """
        Whether a new rebalance may begin.
        """
        return S.PREPARING_REBALANCE in TRANSITIONS[self.state]

    @property
    def is_empty(self) -> bool:
        return self.state is S.EMPTY

    @property
    def is_simple(self) -> bool:
        """
        Whether the group exists for offsets only, without a record of its own.
        """
        return self.protocol_type is None and self.is_empty and not self.pending_joins

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def listed_protocol_type(self) -> str:
        return self.protocol_type or ""

    def begin_generation(self, now_ms: int) -> None:
        """
        End the round of joins: the members of now are the next generation.
        """
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self.compute_subscribed_topics()
        self.become(S.COMPLETING_REBALANCE if self.members else S.EMPTY, now_ms)
        self.pending_syncs.clear()
        self.held_assignment = None

    # Members.

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id == member_id

    def add(self, member: ClassicGroupMember, reply: JoinReply | None = None) -> None:
        """
        Add a member; the first one becomes the leader and sets the protocol type.
        """
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members, member
            self.static_members[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        assert self.protocol_type == member.protocol_type, member
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._ballot.enter(member.protocols)
        member.join_reply = reply
        if reply is not None:
            self.awaiting_join += 1
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """
        Remove a member or a pending id. Its parked requests are answered ``UNKNOWN_MEMBER_ID``, so
        that its client joins again.
        """
        member = self.members.pop(member_id, None)
        if member is not None:
            self.answer_join(member, join_error(NO_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID))
            self.answer_sync(member, sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
            self._ballot.withdraw(member.protocols)
            if member.instance_id is not None:
                del self.static_members[member.instance_id]
        if self.is_leader(member_id):
            self.leader_id = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.discard(member_id)

    def update(
        self,
        member: ClassicGroupMember,
        protocols: Protocols,
        *,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        reply: JoinReply | None,
        held: Held | None,
    ) -> None:
        """
        Take the fields of a member's new JoinGroup, and park it.

        The JoinGroup that was parked before is answered; Kafka lets it time out at the client.
        """
        error = join_error(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS)
        self.answer_join(member, error)
        self._ballot.withdraw(member.protocols)
        self._ballot.enter(protocols)
        member.protocols = protocols
        member.held = held
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        member.join_reply = reply
        if reply is not None:
            self.awaiting_join += 1

    def replace_static_member(
        self, instance_id: str, old_id: str, new_id: str
    ) -> ClassicGroupMember:
        """
        Replace a static member by its next incarnation, and fence the previous one.
        """
        old = self.members.pop(old_id)
        self.answer_join(old, join_error(old_id, ErrorCode.FENCED_INSTANCE_ID))
        self.answer_sync(old, sync_error(ErrorCode.FENCED_INSTANCE_ID))
        new = old.renamed(new_id)
        self.members[new_id] = new
        if self.is_leader(old_id):
            self.leader_id = new_id
        self.static_members[instance_id] = new_id
        return new

    def validate_member(self, member_id: str, instance_id: str | None) -> None:
        """
        See whether a member is in the group, and no later incarnation has replaced it.

        Raises:
            UnknownMemberId: the member id, or the instance id, is not in the group.
            FencedInstanceId: the instance id belongs to another member.
        """
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is not None and current != member_id:
                raise FencedInstanceId
            if current is None:
                raise UnknownMemberId
        if member_id not in self.members:
            raise UnknownMemberId

    # The round of joins.

    @property
    def rebalance_timeout_ms(self) -> int:
        """
        The duration of a round of joins: the longest rebalance timeout of the members.
        """
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def have_all_joined(self) -> bool:
        return len(self.members) == self.awaiting_join and not self.pending_joins

    def not_yet_rejoined(self) -> list[ClassicGroupMember]:
        return [member for member in self.members.values() if not member.awaits_join]

    def elect_leader_who_joined(self) -> bool:
        """
        Choose a leader that is in the round of joins, the current one if possible; false if the
        round is empty.
        """
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].awaits_join:
            return True
        for member in self.members.values():
            if member.awaits_join:
                self.leader_id = member.member_id
                return True
        return False

    def answer_join(self, member: ClassicGroupMember, response: JoinGroupResponse) -> None:
        """
        Answer a member's parked JoinGroup, if there is one.
        """
        reply = member.join_reply
        if reply is not None:
            member.join_reply = None
            self.awaiting_join -= 1
            reply(response)

    def park_sync(self, member: ClassicGroupMember, reply: SyncReply) -> None:
        """
        Park a member's SyncGroup, and answer the one that was parked before.
        """
        self.answer_sync(member, sync_error(ErrorCode.REBALANCE_IN_PROGRESS))
        member.sync_reply = reply

    def answer_sync(self, member: ClassicGroupMember, response: SyncGroupResponse) -> bool:
        """
        Answer a member's parked SyncGroup; false if there was none.
        """
        reply = member.sync_reply
        if reply is None:
            return False
        member.sync_reply = None
        reply(response)
        return True

    # Protocols.

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """
        Whether a member with these protocols may join the group.
        """
        if self.state is S.EMPTY:
            return bool(protocol_type) and bool(protocols)
        return self.protocol_type == protocol_type and self._ballot.offers_any(
            protocols, len(self.members)
        )

    def select_protocol(self) -> str:
        """
        The protocol of a generation that began now.
        """
        return self._ballot.elect(self.members.values())

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """
        The topics that the members of a consumer group subscribe to; None if a subscription cannot
        be decoded, or the group is of another protocol type.
        """
        if self.protocol_type != CONSUMER:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        try:
            return frozenset(
                topic
                for member in self.members.values()
                for topic in subscribed_topics(member.metadata(self.protocol_name))
            )
        except DecodeError:
            return None

    def is_subscribed_to(self, topic: str) -> bool:
        """
        Whether a member subscribes to the topic. Unknown subscriptions of consumers count as any.
        """
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER
        return topic in self.subscribed_topics

    def protocol_members(self) -> list[JoinGroupResponseMember]:
        """
        The members as the leader's JoinGroup response lists them.
        """
        assert self.state not in {S.DEAD, S.PREPARING_REBALANCE}, self.state
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(self.protocol_name),
            )
            for member in self.members.values()
        ]

    def held_by(self, member_id: str) -> Held | None:
        """
        The memory of a member or of a pending id; None if there is none.
        """
        member = self.members.get(member_id)
        return self.pending_joins.get(member_id) if member is None else member.held

    # Validation of requests.

    def validate_generation(
        self, member_id: str, instance_id: str | None, generation_id: int
    ) -> None:
        """
        See whether a request comes from a member of this generation.

        Raises:
            CoordinatorNotAvailable: the group is dead.
            UnknownMemberId, FencedInstanceId: see ``validate_member``.
            IllegalGeneration: the member names another generation.
        """
        if self.state is S.DEAD:
            raise CoordinatorNotAvailable
        self.validate_member(member_id, instance_id)
        if generation_id != self.generation_id:
            raise IllegalGeneration

    def validate_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_id: int,
        *,
        version: int,
        is_transactional: bool = False,
    ) -> None:
        """
        See whether the sender may commit offsets. A commit in a transaction need not name a member,
        and is accepted while the group waits for its assignment.

        Raises:
            CoordinatorNotAvailable, UnknownMemberId, FencedInstanceId, IllegalGeneration: see
                ``validate_generation``; UnknownMemberId also if no member is named, and the group
                has members.
            RebalanceInProgress: the generation has begun, but has no assignment yet.
        """
        if self.state is S.DEAD:
            raise CoordinatorNotAvailable
        if generation_id < 0 and self.is_empty:
            # The admin client, or a consumer that assigns partitions to itself.
            return
        if generation_id >= 0 or member_id or instance_id is not None:
            self.validate_generation(member_id, instance_id, generation_id)
        elif not is_transactional:
            raise UnknownMemberId
        if self.state is S.COMPLETING_REBALANCE and not is_transactional:
            raise RebalanceInProgress

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """
        See whether committed offsets may be read. Every client may read those of a classic group.

        Raises:
            GroupIdNotFound: the group is dead.
        """
        self._check_exists()

    def validate_offset_delete(self) -> None:
        """
        See whether single offsets may be deleted.

        Raises:
            GroupIdNotFound: the group is dead.
            NonEmptyGroup: it has members, whose subscriptions the coordinator cannot read.
        """
        self._check_exists()
        if not self.is_empty and self.protocol_type != CONSUMER:
            raise NonEmptyGroup

    def validate_delete(self) -> None:
        """
        See whether the group may be deleted.

        Raises:
            GroupIdNotFound: the group is dead.
            NonEmptyGroup: it has members.
        """
        self._check_exists()
        if not self.is_empty:
            raise NonEmptyGroup

    def _check_exists(self) -> None:
        if self.state is S.DEAD:
            raise GroupIdNotFound(f"Group {self.group_id} is in dead state.")

    def __repr__(self) -> str:
        return (
            f"<ClassicGroup {self.group_id} {self.state_name}"
            f" generation {self.generation_id} members {list(self.members)}>"
        )
