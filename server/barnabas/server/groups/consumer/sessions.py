"""
The timeouts of members of consumer groups.

===========  ===========================================  ==================================
timeout      begins                                       ends
===========  ===========================================  ==================================
session      with each heartbeat                          with the next one
rebalance    when the member has to give partitions up    when it has given them up
join         when a classic member has to join again      with its JoinGroup
sync         with the JoinGroup of a classic member       with its SyncGroup
===========  ===========================================  ==================================

A member that runs into one is fenced: it is removed, and joins again if it is alive.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, TypeAlias

from barnabas.server.config.groups import GroupConfig
from barnabas.server.coordinator_runtime.result import NOTHING
from barnabas.server.coordinator_runtime.timers import Timers
from barnabas.server.groups.consumer.group import ConsumerGroup
from barnabas.server.groups.consumer.member import ConsumerGroupMember, MemberState
from barnabas.server.groups.groups import Groups
from barnabas.server.groups.records import GroupResult
from barnabas.server.groups.timeouts import Timeout

log = logging.getLogger(__name__)

ConfigOf: TypeAlias = Callable[[str], GroupConfig]
"""
Returns the configuration of a group.
"""
Fence: TypeAlias = Callable[[ConsumerGroup, Sequence[ConsumerGroupMember], int], GroupResult]
"""
Removes members from a group; its last argument is the time in ms.
"""

_REASONS: Final = {
    Timeout.SESSION: "its session has expired",
    Timeout.JOIN: "it has not joined within the rebalance timeout",
    Timeout.SYNC: "it has not synced within the rebalance timeout",
}


class Sessions:
    """
    Starts and ends the timeouts of the members of one partition.
    """

    def __init__(self, groups: Groups, timers: Timers, config_of: ConfigOf) -> None:
        self._groups = groups
        self._timers = timers
        self._config_of = config_of
        self.fence: Fence  # set before the first timeout begins

    def prolong(self, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
        """
        Start the session of a member again, by default for ``consumer.session.timeout.ms``.
        """
        if timeout_ms is None:
            timeout_ms = self._config_of(group_id).consumer_session_timeout_ms
        self._start(Timeout.SESSION, group_id, member_id, timeout_ms)

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

    def expect_revocation(self, group_id: str, member: ConsumerGroupMember) -> None:
        """
        Wait until a member has given up what it has to. One that has nothing to give up is not
        waited for.
        """
        key = (Timeout.REBALANCE, group_id, member.member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            operation = partial(
                self._revocation_ran_out, group_id, member.member_id, member.member_epoch
            )
            self._timers.schedule(key, member.rebalance_timeout_ms, operation)
        else:
            self._timers.cancel(key)

    def loaded(self, group: ConsumerGroup) -> None:
        """
        Start the timeouts of the members of a group that was loaded, at their full lengths.
        """
        for member in group.members.values():
            self.prolong(group.group_id, member.member_id)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self.expect_revocation(group.group_id, member)

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

    def end(self, group_id: str, member_ids: Iterable[str]) -> None:
        """
        End all timeouts of members.
        """
        for member_id in member_ids:
            for timeout in (Timeout.SESSION, Timeout.REBALANCE, Timeout.JOIN, Timeout.SYNC):
                self._timers.cancel((timeout, group_id, member_id))

    def _start(self, timeout: Timeout, group_id: str, member_id: str, delay_ms: int) -> None:
        operation = partial(self._ran_out, timeout, group_id, member_id)
        self._timers.schedule((timeout, group_id, member_id), delay_ms, operation)

    def _ran_out(self, timeout: Timeout, group_id: str, member_id: str, now_ms: int) -> GroupResult:
        group = self._groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if not isinstance(group, ConsumerGroup) or member is None:
            return NOTHING
        log.info("Group %s: %s is fenced: %s", group_id, member_id, _REASONS[timeout])
        return self.fence(group, [member], now_ms)

    def _revocation_ran_out(
        self, group_id: str, member_id: str, epoch: int, now_ms: int
    ) -> GroupResult:
        group = self._groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if not isinstance(group, ConsumerGroup) or member is None or member.member_epoch != epoch:
            return NOTHING
        log.info("Group %s: %s is fenced: it has stayed in epoch %d", group_id, member_id, epoch)
        return self.fence(group, [member], now_ms)
