"""
JoinGroup, SyncGroup, Heartbeat and LeaveGroup: the classic protocol, in groups of both types that
have members of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.coordination.coordinator_runtime.result import NOTHING
from barnabas.coordination.groups.caller import Caller
from barnabas.coordination.groups.classic.joining import Joining, Offer, offer_of
from barnabas.coordination.groups.classic.member import JoinReply, SyncReply
from barnabas.coordination.groups.classic.membership import Membership
from barnabas.coordination.groups.consumer.classic_members import ClassicMembers
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.records import GroupResult
from barnabas.coordination.steps import finished
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity
from barnabas.protocol.messages.sync_group import SyncGroupRequest


class ClassicProtocol:
    """
    Hands the requests of classic members to the class that handles groups of that type.
    """

    def __init__(
        self,
        groups: Groups,
        joining: Joining,
        membership: Membership,
        in_consumer_groups: ClassicMembers,
    ) -> None:
        self._groups = groups
        self._joining = joining
        self._membership = membership
        self._in_consumer_groups = in_consumer_groups

    def join(
        self,
        request: JoinGroupRequest,
        caller: Caller,
        reply: JoinReply,
        now_ms: int,
        offer: Offer | None = None,
    ) -> GroupResult:
        """
        Add a member, or refuse it. The reply is called at once, or when the member has its place.

        Args:
            offer: the result of ``offer_of`` the request, if the caller has it.

        Raises:
            KafkaError: the group refuses the member; the reply is not called.
        """
        if offer is None:
            offer = finished(offer_of(request))
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            return self._in_consumer_groups.join(
                group,
                request,
                protocols=offer.protocols,
                caller=caller,
                reply=reply,
                now_ms=now_ms,
            )
        return self._joining.join(request, caller, reply, now_ms, offer)

    def sync(self, request: SyncGroupRequest, reply: SyncReply, now_ms: int) -> GroupResult:
        """
        Give a member its assignment. The reply is called at once, or when there is one.

        Raises:
            KafkaError: the group refuses the request; the reply is not called.
        """
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            self._in_consumer_groups.sync(group, request, reply)
            return NOTHING
        return self._membership.sync(request, reply, now_ms)

    def heartbeat(self, request: HeartbeatRequest) -> None:
        """
        Prolong the session of a member.

        Raises:
            RebalanceInProgress: the session is prolonged, and the member has to join.
            KafkaError: the sender is no member.
        """
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            self._in_consumer_groups.heartbeat(group, request)
        else:
            self._membership.heartbeat(request)

    async def leave(
        self, group_id: str, leaving: Sequence[MemberIdentity], now_ms: int
    ) -> tuple[GroupResult, LeaveGroupResponse]:
        """
        Remove members.

        Raises:
            UnknownMemberId: the group does not exist.
        """
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return self._in_consumer_groups.leave(group, leaving, now_ms)
        return await self._membership.leave(group_id, leaving, now_ms)
