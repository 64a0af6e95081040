"""
The timeouts of members of consumer groups.

===========  ===========================================  ==================================
timeout      begins                                       ends
===========  ===========================================  ==================================
session      see ``MemberSessions``
rebalance    when the member has to give partitions up    when it has given them up
join         when a classic member has to join again      with its JoinGroup
sync         with the JoinGroup of a classic member       with its SyncGroup
===========  ===========================================  ==================================

A member that runs into one is fenced: it is removed, and joins again if it is alive.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from collections.abc import Iterable

from barnabas.coordination.config.groups import GroupConfigOf
from barnabas.coordination.coordinator_runtime.timers import Timers
from barnabas.coordination.groups.consumer.group import ConsumerGroup
from barnabas.coordination.groups.consumer.member import ConsumerGroupMember
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.modern.sessions import MemberSessions
from barnabas.coordination.groups.timeouts import Timeout


class Sessions(MemberSessions[ConsumerGroup, ConsumerGroupMember]):
    """
    Starts and ends the timeouts of the members of one partition.
    """

    def __init__(self, groups: Groups, timers: Timers, config_of: GroupConfigOf) -> None:
        super().__init__(
            groups,
            timers,
            ConsumerGroup,
            lambda group_id: config_of(group_id).consumer_session_timeout_ms,
        )

    def expect_join(self, group_id: str, member: ConsumerGroupMember) -> None:
        """
        Wait for the JoinGroup of a classic member, unless it is waited for already.
        """
        if (Timeout.JOIN, group_id, member.member_id) not in self._timers:
            self._start(Timeout.JOIN, group_id, member.member_id, member.rebalance_timeout_ms)

    def joined(self, group_id: str, member: ConsumerGroupMember) -> None:
        """
        Wait for the SyncGroup of a classic member, whose JoinGroup is there.
        """
        self._timers.cancel((Timeout.JOIN, group_id, member.member_id))
        self._start(Timeout.SYNC, group_id, member.member_id, member.rebalance_timeout_ms)

    def synced(self, group_id: str, member_id: str) -> None:
        """
        The SyncGroup of a classic member is there.
        """
        self._timers.cancel((Timeout.SYNC, group_id, member_id))

    def stay(self, group_id: str, members: Iterable[ConsumerGroupMember]) -> None:
        """
        Start the timeouts of members again, whose removal could not be written.
        """
        for member in members:
            classic = member.classic
            timeout_ms = None if classic is None else classic.session_timeout_ms
            self.prolong(group_id, member.member_id, timeout_ms)
            if classic is None:
                self.expect_revocation(group_id, member)
