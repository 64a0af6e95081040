"""
The timeouts of members of the later protocols.

=========  =====================================  =========================
timeout    begins                                 ends
=========  =====================================  =========================
session    with each heartbeat                    with the next one
rebalance  when the member has to give            when it has given it up
           something up
=========  =====================================  =========================

A member that runs into one is fenced: it is removed, and joins again if it is alive.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from barnabas.coordination.coordinator_runtime.result import NOTHING
from barnabas.coordination.coordinator_runtime.timers import Timers
from barnabas.coordination.groups.groups import Groups
from barnabas.coordination.groups.modern.group import ModernGroup
from barnabas.coordination.groups.modern.member import ModernMember
from barnabas.coordination.groups.records import GroupResult
from barnabas.coordination.groups.timeouts import Timeout
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.structs import replace

log = logging.getLogger(__name__)

_REASONS: Final = {
    Timeout.SESSION: "its session has expired",
    Timeout.JOIN: "it has not joined within the rebalance timeout",
    Timeout.SYNC: "it has not synced within the rebalance timeout",
}


class RevokingMember(ModernMember, Protocol):
    """
    A member that may have to give up what it has.
    """

    @property
    def rebalance_timeout_ms(self) -> int: ...
    @property
    def is_revoking(self) -> bool:
        """
        Whether it has to give something up, and has not shown yet that it did.
        """


M = TypeVar("M", bound=RevokingMember)
G = TypeVar("G", bound=ModernGroup[Any, Any])

Fence: TypeAlias = Callable[[G, Sequence[M], int], GroupResult]
"""
Removes members from a group; its last argument is the time in ms.
"""


class MemberSessions(Generic[G, M]):
    """
    Starts and ends the timeouts of the members of one partition, in groups of one type.
    """

    def __init__(
        self,
        groups: Groups,
        timers: Timers,
        group_class: type[G],
        session_timeout_ms_of: Callable[[str], int],
    ) -> None:
        """
        Args:
            session_timeout_ms_of: returns the session timeout of a group.
        """
        self._groups = groups
        self._timers = timers
        self._group_class = group_class
        self._session_timeout_ms_of = session_timeout_ms_of
        self.fence: Fence[G, M]  # set before the first timeout begins

    def prolong(self, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
        """
        Start the session of a member again, by default for the session timeout of its group.
        """
        if timeout_ms is None:
            timeout_ms = self._session_timeout_ms_of(group_id)
        self._start(Timeout.SESSION, group_id, member_id, timeout_ms)

    def expect_revocation(self, group_id: str, member: M) -> None:
        """
        Wait until a member has given up what it has to. One that has nothing to give up is not
        waited for.
        """
        key = (Timeout.REBALANCE, group_id, member.member_id)
        if member.is_revoking:
            operation = partial(
                self._revocation_ran_out, group_id, member.member_id, member.member_epoch
            )
            self._timers.schedule(key, member.rebalance_timeout_ms, operation)
        else:
            self._timers.cancel(key)

    def loaded(self, group: G) -> None:
        """
        Start the timeouts of the members of a group that was loaded, at their full lengths.
        """
        for member in group.members.values():
            self.prolong(group.group_id, member.member_id)
            if member.is_revoking:
                self.expect_revocation(group.group_id, member)

    def stay(self, group_id: str, members: Iterable[M]) -> None:
        """
        Start the timeouts of members again, whose removal could not be written.
        """
        for member in members:
            self.prolong(group_id, member.member_id)
            self.expect_revocation(group_id, member)

    def removing(self, group: G, members: Collection[M], result: GroupResult) -> GroupResult:
        """
        The result of the removal of members: their timeouts end, and begin again if it cannot be
        written.
        """
        self.end(group.group_id, [member.member_id for member in members])
        before = result.on_append

        def written(error: ErrorCode | None, now_ms: int) -> None:
            if before is not None:
                before(error, now_ms)
            if error is not None:
                self.stay(group.group_id, members)

        return replace(result, on_append=written)

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
        found = self._find(group_id, member_id)
        if found is None:
            return NOTHING
        log.info("Group %s: %s is fenced: %s", group_id, member_id, _REASONS[timeout])
        group, member = found
        return self.fence(group, [member], now_ms)

    def _revocation_ran_out(
        self, group_id: str, member_id: str, epoch: int, now_ms: int
    ) -> GroupResult:
        found = self._find(group_id, member_id)
        if found is None or found[1].member_epoch != epoch:
            return NOTHING
        log.info("Group %s: %s is fenced: it has stayed in epoch %d", group_id, member_id, epoch)
        group, member = found
        return self.fence(group, [member], now_ms)

    def _find(self, group_id: str, member_id: str) -> tuple[G, M] | None:
        group = self._groups.get(group_id)
        if not isinstance(group, self._group_class):
            return None
        member: Any = group.members.get(member_id)  # of the type M
        return None if member is None else (group, member)
