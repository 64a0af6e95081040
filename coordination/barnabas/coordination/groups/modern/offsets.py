"""
Who may commit and read the offsets of a group whose members have epochs.
"""

# Compiled: see hatch_build.py.

from __future__ import annotations

from typing import Any, Final, Protocol, TypeVar

from barnabas.coordination.groups.modern.group import ModernGroup
from barnabas.coordination.groups.modern.member import ModernMember
from barnabas.protocol.errors import (
    IllegalGeneration,
    KafkaError,
    StaleMemberEpoch,
    UnsupportedVersion,
)

OFFSETS_OF_MEMBERS_SINCE: Final = 9
"""
The first version of OffsetCommit that members of these protocols may use.
"""


class CommittingMember(ModernMember, Protocol):
    """
    A member that may commit offsets.
    """

    @property
    def is_classic(self) -> bool:
        """
        Whether it uses the classic protocol.
        """


M = TypeVar("M", bound=CommittingMember)


def late_member(
    group: ModernGroup[M, Any],
    member_id: str,
    instance_id: str | None,
    epoch: int,
    *,
    version: int,
    is_transactional: bool,
) -> M | None:
    """
    The member that commits with an epoch that it has left; None if the sender may commit anything.

    Raises:
        UnknownMemberId: the group has members, and the sender is not one of them.
        UnsupportedVersion: a member sends a version that is older than its protocol.
        StaleMemberEpoch, IllegalGeneration: the member has not reached that epoch.
    """
    if epoch < 0 and group.is_empty:
        return None
    if is_transactional and epoch == -1 and not member_id and instance_id is None:
        return None
    member = group.expect_member(member_id)
    if not (is_transactional or member.is_classic) and version < OFFSETS_OF_MEMBERS_SINCE:
        raise UnsupportedVersion(
            "OffsetCommit version 9 or above must be used by members using the"
            f" {group.type.value} group protocol"
        )
    if epoch == member.member_epoch:
        return None
    if epoch > member.member_epoch:
        raise _stale(
            member,
            f"Received {_epoch_name(member)} {epoch} is newer than current member epoch"
            f" {member.member_epoch}.",
        )
    return member


def check_since(
    member: CommittingMember, epoch: int, since: int | None, kind: str, name: str
) -> None:
    """
    See whether a member had something at an epoch that it has left, and has it still (KIP-1251).
    Its request may have been on its way while the epoch changed.

    Args:
        since: the epoch at which the member got it; None if it does not have it.
        kind: what it is.

    Raises:
        StaleMemberEpoch, IllegalGeneration: it has not.
    """
    if since is None:
        sentence = f"{kind} {name} is not assigned or pending revocation for member."
        raise _stale(member, sentence)
    if epoch < since:
        raise _stale(
            member,
            f"Received {_epoch_name(member)} {epoch} is older than assignment epoch {since} for"
            f" {kind.lower()} {name}.",
        )


def validate_fetch(group: ModernGroup[M, Any], member_id: str | None, member_epoch: int) -> None:
    """
    See whether the sender may read committed offsets.

    Raises:
        UnknownMemberId: the sender names a member that the group does not have.
        StaleMemberEpoch, IllegalGeneration: the member's epoch is another one.
    """
    if member_id is None and member_epoch < 0:
        return
    member = group.expect_member(member_id or "")
    if member_epoch != member.member_epoch:
        raise _stale(
            member,
            f"The received {_epoch_name(member)} {member_epoch} does not match the expected member"
            f" epoch {member.member_epoch}.",
        )


def _stale(member: CommittingMember, sentence: str) -> KafkaError:
    return IllegalGeneration(sentence) if member.is_classic else StaleMemberEpoch(sentence)


def _epoch_name(member: CommittingMember) -> str:
    return "generation id" if member.is_classic else "member epoch"
